"""What all tests share: the corpus, and the rule that CI skips nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes is begun first."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under CI a skipped test fails the run: a tier that did not run is not green."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
