"""What the API server answered when it was recorded is what it answers now."""

from __future__ import annotations

import sys

import pytest
from real_cluster import ROOT, RealCluster

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "wire" / "control_api")]

import exchanges  # noqa: E402 - found by the line above
from record import api_server, recorded  # noqa: E402


@pytest.mark.usefixtures("cluster")
def test_the_api_server_answers_as_recorded(cluster: RealCluster, namespace: str) -> None:
    with api_server(str(cluster.kubeconfig)) as server:
        answers = exchanges.answers(server, namespace)
    assert answers == recorded()
