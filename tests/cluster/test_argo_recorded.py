"""What the Argo controller made of each case when it was recorded is what it makes of it now."""

from __future__ import annotations

import pytest
from real_cluster import RealCluster
from wire.argo.case import all_cases
from wire.argo.record import changed

LIMIT_S = 600.0


@pytest.mark.long(4)
@pytest.mark.timeout(1800)
def test_the_controller_does_what_was_recorded(cluster: RealCluster) -> None:
    assert changed(all_cases(), kubeconfig=str(cluster.kubeconfig), limit_s=LIMIT_S) == {}
