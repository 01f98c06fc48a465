"""The running test cluster, as its tests see it: `make test-cluster` starts it and runs them inside its network."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_cluster import ROOT, STATE, RealCluster

sys.path[:0] = [str(ROOT / "tests")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the cluster."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(1200))


@pytest.fixture(scope="session")
def cluster() -> RealCluster:
    """The cluster of this checkout; without it a reason to skip, which fails under CI."""
    kubeconfig = STATE / "kubeconfig"
    if not kubeconfig.is_file() or os.environ.get("KUBECONFIG") != str(kubeconfig):
        pytest.skip("the test cluster is not up, or this is not its network: `make test-cluster` runs these tests")
    return RealCluster(kubeconfig)


@pytest.fixture
def namespace(cluster: RealCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty namespace of the test's own."""
    name = f"test-{abs(hash(request.node.nodeid)) % 10**8}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
