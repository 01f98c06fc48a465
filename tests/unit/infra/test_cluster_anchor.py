"""The cluster's processes are found by what they are, never by a number alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.cluster import anchor, status
from infra.cluster.places import Place, place_of

ROOT = Path("/srv/clone/.seatrial/cluster")


def test_only_a_process_with_this_clusters_name_in_its_environment_is_its_anchor() -> None:
    processes: list[tuple[int, dict[str, str]]] = [
        (10, {"SEATRIAL_CLUSTER_ANCHOR": str(ROOT)}),
        (11, {"SEATRIAL_CLUSTER_ANCHOR": "/srv/other/.seatrial/cluster"}),
        (12, {"PATH": str(ROOT)}),
        (13, {}),
    ]
    assert anchor.anchors(processes, ROOT) == [10]


def test_a_number_that_became_a_strangers_is_left_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.supervisor.mkdir()
    (place.supervisor / "supervisord.pid").write_text("1")
    assert anchor.find(place) is None
    assert anchor.end(place) is False


@pytest.mark.parametrize(
    ("numbers", "inner"),
    [("NSpid:\t4711\t12\n", 12), ("NSpid:\t4711\n", 0), ("Name:\tx\n", 0), ("NSpid:\t9\t8\t1\n", 8)],
)
def test_the_second_number_is_the_one_inside(numbers: str, inner: int) -> None:
    assert status.inner_pid(f"Name:\tetcd\n{numbers}Threads:\t1\n") == inner


def test_two_clones_share_neither_sockets_nor_cgroups() -> None:
    one, other = place_of(Path("/srv/one")), place_of(Path("/srv/other"))
    assert one.run != other.run
    assert one.cgroup != other.cgroup
    assert one == place_of(Path("/srv/one"))


def test_sockets_lie_on_paths_that_the_kernel_takes() -> None:
    place = place_of(Path("/a" * 200))
    assert len(str(place.containerd_socket)) < 60
