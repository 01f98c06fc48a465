"""The overlay that the test cluster is installed from, and what kubectl is asked."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from kustomization import BASE, objects, steps

from infra.install import facts, overlay
from infra.install.apply import KINDS, Kubectl, apply, program, write_overlay
from infra.install.facts import Addresses, Facts
from seatrial.app.sandbox.environment import public_key
from seatrial.errors import InvalidInput, Unavailable

ADDRESSES = Addresses(
    node="10.0.0.9",
    api_port=6443,
    store="http://10.0.0.9:8333",
    tracking="http://10.0.0.9:5001",
    registry="10.0.0.9:5000",
    gateway="http://10.0.0.9:8000",
    gateway_metrics="http://10.0.0.9:8082",
    bucket="models",
)
IMAGES = sorted({template["container"]["image"] for template in steps()} | {"seatrial/triton"})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    images = {
        name: {"repository": f"10.0.0.9:5000/{name}", "digest": f"sha256:{index:064x}", "bytes": 1}
        for index, name in enumerate(IMAGES)
    }
    (tmp_path / "images.json").write_text(json.dumps(images))
    return tmp_path


def gathered(state: Path, source: str | None = "http://git/models.git") -> Facts:
    return facts.gathered(ADDRESSES, state=state, source=source)


def test_every_image_is_pinned(state: Path) -> None:
    kustomization = yaml.safe_load(overlay.files(gathered(state), state / "overlay")["kustomization.yaml"])
    assert [one["name"] for one in kustomization["images"]] == IMAGES
    assert all(one["newName"] == f"10.0.0.9:5000/{one['name']}" for one in kustomization["images"])
    assert (state / "overlay" / kustomization["resources"][0]).resolve() == overlay.BASE


def test_every_setting_of_the_base_has_a_value_and_no_other_is_made(state: Path) -> None:
    base = {name: dict(found["data"]) for name, found in objects(BASE).of("ConfigMap").items()}
    for found in overlay.settings(gathered(state)):
        name = found["metadata"]["name"]
        assert found["data"].keys() <= base[name].keys()
        base[name] |= found["data"]
    assert [key for data in base.values() for key, value in data.items() if not value] == []


def test_artifacts_go_to_this_clusters_bucket_and_stay_where_the_base_says(state: Path) -> None:
    repository = yaml.safe_load(overlay.artifacts(gathered(state)))
    assert repository["s3"]["endpoint"] == "10.0.0.9:8333"
    assert repository["s3"]["bucket"] == "models"
    assert repository["s3"]["insecure"] is True
    assert repository["s3"]["keyFormat"].startswith("runs/")
    assert repository["archiveLogs"] is True


def test_every_policy_of_the_base_gets_its_address(state: Path) -> None:
    policies = {(f["metadata"]["namespace"], f["metadata"]["name"]) for f in overlay.network(gathered(state))}
    base = {
        (f["metadata"]["namespace"], f["metadata"]["name"]) for f in objects(BASE).all if f["kind"] == "NetworkPolicy"
    }
    assert base - policies == {
        ("seatrial", "default-deny"),
        ("seatrial", "to-dns"),
        ("seatrial-serving", "default-deny"),
    }
    assert policies <= base


def test_the_key_that_is_trusted_is_the_one_that_signs(state: Path) -> None:
    known = gathered(state)
    trusted = next(f for f in overlay.settings(known) if f["metadata"]["name"] == "seatrial-trusted-keys")
    load_pem_public_key(trusted["data"]["SEATRIAL_TRUSTED_KEYS"].encode())
    assert public_key(known.signing_key) == trusted["data"]["SEATRIAL_TRUSTED_KEYS"]


def test_secrets_are_in_one_file_that_is_its_owners_alone(state: Path) -> None:
    known, folder = gathered(state), state / "overlay"
    write_overlay(overlay.files(known, folder), folder)
    secret = (known.signing_key.splitlines()[1], known.store_credentials["AWS_SECRET_ACCESS_KEY"])
    holding = [path.name for path in folder.iterdir() if any(text in path.read_text() for text in secret)]
    assert holding == ["secrets.yaml"]
    assert stat.S_IMODE((folder / "secrets.yaml").stat().st_mode) == 0o600
    assert not any(text in repr(known) for text in secret)


def test_a_second_time_gives_the_same(state: Path) -> None:
    folder = state / "overlay"
    assert overlay.files(gathered(state), folder) == overlay.files(gathered(state, None), folder)


def test_another_image_changes_what_stands_for_all_of_them(state: Path) -> None:
    before = gathered(state).step_images
    images = json.loads((state / "images.json").read_text())
    images["seatrial/train-model"]["digest"] = "sha256:" + "f" * 64
    (state / "images.json").write_text(json.dumps(images))
    assert gathered(state).step_images != before


def test_a_private_source_gives_its_credentials_to_a_secret_only(state: Path) -> None:
    (state / "source.json").write_text(json.dumps({"SEATRIAL_SOURCE": "http://g/m.git", "SEATRIAL_SOURCE_TOKEN": "t"}))
    known = gathered(state, None)
    kept = {f["metadata"]["name"]: f["stringData"] for f in overlay.secrets(known)}
    assert kept["seatrial-source-credentials"] == {"SEATRIAL_SOURCE_TOKEN": "t"}
    setting = next(f for f in overlay.settings(known) if f["metadata"]["name"] == "seatrial-source")
    assert setting["data"]["SEATRIAL_SOURCE"] == "http://g/m.git"
    assert "SEATRIAL_SOURCE_TOKEN" not in setting["data"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"a": {"repository": "r", "digest": "latest"}}'])
def test_images_that_are_not_pinned_are_refused(broken: str, state: Path) -> None:
    (state / "images.json").write_text(broken)
    with pytest.raises(InvalidInput, match="must map names to repository and digest"):
        gathered(state)


def test_an_image_that_was_not_pushed_is_named(state: Path) -> None:
    images = json.loads((state / "images.json").read_text())
    del images["seatrial/run-canary"]
    (state / "images.json").write_text(json.dumps(images))
    with pytest.raises(InvalidInput, match=r"lacks \['seatrial/run-canary'\]"):
        gathered(state)
    (state / "images.json").unlink()
    with pytest.raises(InvalidInput, match="is not there"):
        gathered(state)


def kubectl(tmp_path: Path, fails_on: str) -> Kubectl:
    """A kubectl that fails when it is asked for something, and notes what it was asked."""
    script = tmp_path / "kubectl"
    script.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\n'
        f'case "$*" in *"{fails_on}"*) echo "no: {fails_on}" >&2; exit 1;; esac\necho done\n'
    )
    script.chmod(0o755)
    return Kubectl(str(script), tmp_path / "kubeconfig", "c")


def test_the_overlay_is_applied_by_the_server_strictly_after_the_kinds_are_known(tmp_path: Path) -> None:
    assert apply(kubectl(tmp_path, "nothing at all"), tmp_path) == ["done"]
    asked = (tmp_path / "asked").read_text().splitlines()
    applied = next(index for index, line in enumerate(asked) if " apply " in line)
    assert {"--server-side", "--validate=strict", "-k"} <= set(asked[applied].split())
    assert [line.split("crd/")[1].split()[0] for line in asked[1:applied]] == [*KINDS]
    assert all(line.startswith(f"--kubeconfig={tmp_path / 'kubeconfig'} --context=c ") for line in asked)
    assert len(asked) == applied + 3


@pytest.mark.parametrize(
    ("fails_on", "error"),
    [
        ("--raw=/readyz", Unavailable),
        ("crd/inferenceservices", InvalidInput),
        ("apply", InvalidInput),
        ("gateway/seatrial", Unavailable),
        ("secret/seatrial-executor", Unavailable),
    ],
)
def test_what_kubectl_cannot_do_is_said(fails_on: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        apply(kubectl(tmp_path, fails_on), tmp_path)


def test_without_kubectl_the_way_to_get_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidInput, match=r"infra\.cluster build"):
        program(tmp_path)
