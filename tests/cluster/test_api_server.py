"""What the API server answered when it was recorded is what it answers now."""

from __future__ import annotations

from real_cluster import RealCluster
from wire.control_api import exchanges
from wire.control_api.record import api_server, recorded


def test_the_api_server_answers_as_recorded(cluster: RealCluster, namespace: str) -> None:
    with api_server(str(cluster.kubeconfig)) as server:
        answers = exchanges.answers(server, namespace)
    assert answers == recorded()
