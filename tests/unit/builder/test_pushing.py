from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import fakes_skopeo
import pytest

from seatrial.app import builder, oci
from seatrial.app.pushing import may_be_plain

REGISTRY = "10.199.0.1:5000"
MODEL = f"{REGISTRY}/seatrial/m"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SEATRIAL_IMAGES", raising=False)
    monkeypatch.setenv("SEATRIAL_IO", str(tmp_path / "io"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return fakes_skopeo.install(tmp_path, monkeypatch)


@pytest.fixture
def base(tmp_path: Path, registry: Path) -> str:
    """A base of one layer, in the registry."""
    (tmp_path / "triton").write_bytes(b"a server")
    layout = oci.Layout(tmp_path / "base")
    config = {**oci.EMPTY.config, "config": {"User": "10001:10001"}, "history": [{"created_by": "ADD root.tar /"}]}
    layer = layout.layer({"opt/triton": tmp_path / "triton"})
    digest = layout.write(oci.Image(config=config, layers=(layer,)))
    fakes_skopeo.store(registry, tmp_path / "base", digest, f"{REGISTRY}/seatrial/triton")
    return f"{REGISTRY}/seatrial/triton@{digest}"


def context(folder: Path, base: str) -> None:
    place = folder / "io/in"
    place.mkdir(parents=True, exist_ok=True)
    files = {"Dockerfile": f'FROM {base}\nCOPY models/ /models/\nLABEL a="b"\n'.encode(), "models/m/1/model.onnx": b"m"}
    with tarfile.open(place / "context", "w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def build(*more: str, tag: str = "t1", repository: str = MODEL) -> int:
    arguments = ["--context=tar:///io/in/context", f"--destination={repository}:{tag}", "--push-retry=3"]
    return builder.main([*arguments, "--digest-file=/io/out/params/digest", *more])


def digest(folder: Path) -> str:
    return (folder / "io/out/params/digest").read_text()


def pushed(registry: Path, reference: str) -> dict[str, Any]:
    return dict(json.loads((registry / MODEL / reference).read_bytes()))


def test_an_image_stands_on_its_base_in_the_registry(tmp_path: Path, registry: Path, base: str) -> None:
    context(tmp_path, base)
    assert build() == 0
    below = json.loads((registry / base.replace("@", "/")).read_bytes())
    manifest = pushed(registry, "t1")
    assert manifest["layers"][:1] == below["layers"]
    assert len(manifest["layers"]) == 2
    config = json.loads((registry / MODEL / "blobs" / manifest["config"]["digest"]).read_bytes())
    assert config["config"] == {"User": "10001:10001", "Labels": {"a": "b"}}
    assert [entry["created_by"] for entry in config["history"]] == ["ADD root.tar /", "COPY models/ /models/"]


def test_the_digest_file_names_what_the_registry_holds(tmp_path: Path, registry: Path, base: str) -> None:
    context(tmp_path, base)
    assert build() == 0
    assert pushed(registry, digest(tmp_path)) == pushed(registry, "t1")


def test_the_same_context_twice_is_one_image(tmp_path: Path, registry: Path, base: str) -> None:
    context(tmp_path, base)
    assert build(tag="t1") == 0
    first = digest(tmp_path)
    assert build(tag="t2") == 0
    assert digest(tmp_path) == first


def test_a_bases_layers_are_fetched_only_where_the_registry_lacks_them(
    tmp_path: Path, registry: Path, base: str
) -> None:
    context(tmp_path, base)
    assert build(tag="t1") == 0
    assert [call for call in fakes_skopeo.calls(registry) if f"docker://{base} oci:" in call]
    (registry / "calls").unlink()
    assert build(tag="t2") == 0
    assert not [call for call in fakes_skopeo.calls(registry) if f"docker://{base} oci:" in call]


def test_an_image_from_nothing_asks_for_no_base(tmp_path: Path, registry: Path) -> None:
    context(tmp_path, "scratch")
    assert build() == 0
    assert [call.split()[1] for call in fakes_skopeo.calls(registry)] == ["copy"]


def test_without_a_push_the_registry_gets_nothing(tmp_path: Path, registry: Path, base: str) -> None:
    context(tmp_path, base)
    assert build("--no-push") == 0
    assert digest(tmp_path).startswith("sha256:")
    assert not (registry / MODEL).exists()


def test_a_registry_that_is_away_is_said_on_the_first_line(
    tmp_path: Path, registry: Path, base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    context(tmp_path, base)
    (registry / "away").touch()
    assert build() == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"error: {base}: the registry cannot be read: pinging container registry")
    assert said[0].endswith("connection refused")
    assert not (tmp_path / "io/out/params/digest").exists()


def test_a_base_that_is_not_there_is_named(tmp_path: Path, registry: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = f"{REGISTRY}/seatrial/triton@sha256:{'0' * 64}"
    context(tmp_path, missing)
    assert build() == 1
    assert capsys.readouterr().err == (
        f"error: {missing}: the registry cannot be read: manifest unknown: manifest unknown\n"
    )


def test_a_registry_that_gives_another_base_is_not_believed(
    tmp_path: Path, registry: Path, base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    context(tmp_path, base)
    place = registry / base.replace("@", "/")
    place.write_bytes(place.read_bytes() + b" ")
    assert build() == 1
    assert "where sha256:" in capsys.readouterr().err


def test_credentials_are_named_where_they_are_mounted(tmp_path: Path, registry: Path, base: str) -> None:
    context(tmp_path, base)
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker/config.json").write_text("{}")
    assert build() == 0
    assert {f"--authfile={tmp_path}/docker/config.json" in call for call in fakes_skopeo.calls(registry)} == {True}


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        ("10.199.0.1:5000", True),
        ("127.0.0.1:5055", True),
        ("localhost:5000", True),
        ("registry.localhost:5000", True),
        ("172.16.0.1", True),
        ("172.15.255.255", False),
        ("192.168.1.1:80", True),
        ("11.0.0.1:5000", False),
        ("127.0.0.2:5000", False),
        ("registry.example:5000", False),
        ("[::1]:5000", True),
        ("10.example.org", False),
    ],
)
def test_plain_http_is_tried_where_kaniko_tries_it(host: str, plain: bool) -> None:  # noqa: FBT001 - a table
    assert may_be_plain(host) is plain


def test_another_registry_speaks_tls_unless_it_is_named(tmp_path: Path, registry: Path) -> None:
    context(tmp_path, "scratch")
    name = "registry.example:5000/seatrial/m"
    assert build(repository=name) == 0
    assert build("--insecure-registry=registry.example:5000", repository=name) == 0
    assert ["tls-verify=false" in call for call in fakes_skopeo.calls(registry)] == [False, True]
