"""What all tests share: the corpus, and the rule that CI skips nothing."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parent.parent
CLUSTER_TESTS = ROOT / "tests" / "cluster"
sys.path[:0] = [str(CLUSTER_TESTS)]

if TYPE_CHECKING:
    from real_cluster import RealCluster


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real files that tests read; a bare clone does not have it."""
    folder = ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"the corpus is missing at {folder}; CI must have it")
        pytest.skip("the corpus of real files is not beside this clone")
    return folder


@pytest.fixture(scope="session")
def installed_triton() -> Path:
    """Triton's own environment, installed once in the checkout: `bin/tritonserver` starts it."""
    from seatrial.app import sandbox  # noqa: PLC0415 - only where a real server is wanted

    return sandbox.install_triton(ROOT / ".seatrial", print).parents[1]


@pytest.fixture(scope="session")
def new_home(installed_triton: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes homes for sandboxes; they share Triton's environment and what the examples' prepare.py downloaded."""

    def make() -> Path:
        home = tmp_path_factory.mktemp("home").resolve()
        (home / "triton").symlink_to(installed_triton)
        for raw in (ROOT / ".seatrial" / "data").glob("*/raw"):
            (home / "data" / raw.parent.name).mkdir(parents=True)
            (home / "data" / raw.parent.name / "raw").symlink_to(raw)
        return home

    return make


@pytest.fixture(scope="session")
def cluster() -> RealCluster:
    """The test cluster of this checkout; without it a reason to skip, which fails under CI."""
    from real_cluster import STATE, RealCluster  # noqa: PLC0415 - only where the cluster is wanted

    kubeconfig = STATE / "kubeconfig"
    if not kubeconfig.is_file() or os.environ.get("KUBECONFIG") != str(kubeconfig):
        pytest.skip("the test cluster is not up, or this is not its network: `make test-cluster` runs these tests")
    return RealCluster(kubeconfig)


@pytest.fixture
def namespace(cluster: RealCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty namespace of the test's own, in the test cluster."""
    name = f"test-{zlib.crc32(f'{request.node.nodeid} {os.getpid()}'.encode())}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that disturbs the cluster runs while no other test of it does, in whichever worker.

    Who waits to be alone holds the turnstile, so that nobody new comes in before.
    """
    if CLUSTER_TESTS not in item.path.parents:
        return (yield)
    with (
        Path(tempfile.gettempdir(), "seatrial-cluster-turnstile").open("w") as turnstile,
        Path(tempfile.gettempdir(), "seatrial-cluster-tests").open("w") as tests,
    ):
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(tests, fcntl.LOCK_EX if item.get_closest_marker("disturbs") else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Whatever lies in tests/cluster needs the cluster, and `-m` must know it; what takes minutes is begun first."""
    for item in items:
        if CLUSTER_TESTS in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(1200))
    yield
    items.sort(key=lambda item: -_minutes(item))


def _minutes(item: pytest.Item) -> int:
    """How long the file of a test takes, roughly; what takes longest is begun first."""
    marker = item.get_closest_marker("long")
    return 0 if marker is None else (marker.args or (1,))[0]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under CI a skipped test fails the run: a tier that did not run is not green."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
