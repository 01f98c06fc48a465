"""The real API server on all that infra/ installs: every field is known to it, and a misspelt one is refused."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest
import yaml
from real_cluster import ROOT, SERVING, STATE, WORKFLOWS, RealCluster

OVERLAYS: Final = (ROOT / "infra/overlays/dev", ROOT / "infra/overlays/prod", STATE / "overlay")
DRY: Final = (
    "apply", "--server-side", "--validate=strict", "--force-conflicts", "--dry-run=server",
    "--field-manager=seatrial-test", "-f", "-",
)  # fmt: skip
MISSPELT: Final = "misspelt"
RESTRICTED: Final = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def rendered(cluster: RealCluster, overlay: str) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all(cluster.kubectl("kustomize", overlay)) if found]


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_the_server_takes_every_object(overlay: Any, cluster: RealCluster) -> None:
    objects = rendered(cluster, str(overlay))
    said = cluster.kubectl(*DRY, given=yaml.safe_dump_all(objects))
    assert len([line for line in said.splitlines() if "serverside-applied" in line]) == len(objects)


def test_the_server_refuses_a_misspelt_field_in_every_object(cluster: RealCluster) -> None:
    objects = [misspelt(found) for found in rendered(cluster, str(OVERLAYS[0]))]
    said = cluster.kubectl(*DRY, given=yaml.safe_dump_all(objects), fine=False)
    assert "serverside-applied" not in said
    assert said.count(MISSPELT) >= len(objects)


def misspelt(found: dict[str, Any]) -> dict[str, Any]:
    """The object with one field that is nobody's, where its content is."""
    wrong = copy.deepcopy(found)
    wrong["spec" if isinstance(wrong.get("spec"), dict) else "metadata"][MISSPELT] = "x"
    return wrong


def test_what_the_overlay_says_is_installed(cluster: RealCluster) -> None:
    objects = rendered(cluster, str(STATE / "overlay"))
    there = cluster.kubectl("get", "-f", "-", "-o", "name", given=yaml.safe_dump_all(objects))
    assert len(there.splitlines()) == len(objects)


def test_an_upgrade_with_nothing_new_would_change_nothing(cluster: RealCluster) -> None:
    """The guide's look before an upgrade."""
    assert (
        cluster.kubectl("diff", "--server-side", "--field-manager=seatrial-install", "-k", str(STATE / "overlay")) == ""
    )


def test_the_look_before_everything_is_removed_names_the_namespaces(cluster: RealCluster) -> None:
    """The guide's look before an uninstall."""
    said = cluster.kubectl("delete", "--dry-run=server", "--ignore-not-found", "-k", str(STATE / "overlay"))
    assert {f'namespace "{WORKFLOWS}"', f'namespace "{SERVING}"'} <= {
        line.partition(" deleted")[0].partition(" (")[0] for line in said.splitlines()
    }


def test_every_image_that_a_workflow_names_is_pinned(cluster: RealCluster) -> None:
    images = [image for found in rendered(cluster, str(STATE / "overlay")) for image in _images(found)]
    assert len(images) >= 9
    assert [image for image in images if "@sha256:" not in image] == []


def _images(value: Any) -> list[str]:
    if isinstance(value, list):
        return [image for inner in value for image in _images(inner)]
    if not isinstance(value, dict):
        return []
    own = [value["container"]["image"]] if "container" in value else []
    return own + [image for inner in value.values() for image in _images(inner)]


def pod(namespace: str, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "guard", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "localhost/nothing:1", **container}]},
    }


def test_a_serving_pod_that_may_become_root_is_refused_and_a_builder_in_the_other_namespace_is_not(
    cluster: RealCluster,
) -> None:
    as_root = {"securityContext": {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}}
    assert "violates PodSecurity" in cluster.kubectl(*DRY, given=yaml.safe_dump(pod(SERVING, **as_root)), fine=False)
    cluster.kubectl(*DRY, given=yaml.safe_dump(pod(WORKFLOWS, **as_root)))
    mighty = pod(WORKFLOWS, securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})
    assert "violates PodSecurity" in cluster.kubectl(*DRY, given=yaml.safe_dump(mighty), fine=False)


def test_in_a_small_cluster_a_pod_asks_for_little_and_keeps_its_limits(cluster: RealCluster) -> None:
    amounts = {"cpu": "1", "memory": "4Gi"}
    for namespace, cpu in ((WORKFLOWS, "10m"), (SERVING, "60m")):
        wanted = pod(namespace, resources={"requests": amounts, "limits": amounts}, securityContext=RESTRICTED)
        taken = yaml.safe_load(cluster.kubectl(*DRY, "-o", "yaml", given=yaml.safe_dump(wanted)))
        resources = taken["spec"]["containers"][0]["resources"]
        assert resources["limits"] == amounts
        assert resources["requests"] == {"cpu": cpu, "memory": "64Mi", "ephemeral-storage": "64Mi"}
