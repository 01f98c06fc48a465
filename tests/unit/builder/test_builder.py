from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from pipelines import _kaniko
from seatrial import digests
from seatrial.app import builder, oci
from seatrial.app.order import Order, order_of
from seatrial.errors import InvalidInput, StepError

FILES = {"models/m/config.pbtxt": b"name: 'm'", "models/m/1/model.onnx": b"\x08\x08" * 4000}


def context(path: Path, dockerfile: str, files: dict[str, bytes] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in {"Dockerfile": dockerfile.encode(), **(FILES if files is None else files)}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), 1_700_000_000
            archive.addfile(entry, io.BytesIO(data))
    return path


def ordered(path: Path, *more: str) -> Order:
    return order_of([f"--context=tar://{path}", "--destination=localhost/seatrial/m:t", *more], path.parent)


def built(tmp_path: Path, dockerfile: str, files: dict[str, bytes] | None = None) -> oci.Image:
    layout = oci.Layout(tmp_path / "images")
    order = ordered(context(tmp_path / "c.tar.gz", dockerfile, files))
    return layout.read(builder.build(order, layout))


def members(tmp_path: Path, layer: oci.Layer) -> dict[str, tarfile.TarInfo]:
    blob = tmp_path / "images/blobs/sha256" / layer.digest.removeprefix("sha256:")
    with tarfile.open(blob) as archive:
        return {member.name: member for member in archive}


def test_the_same_context_gives_the_same_image(tmp_path: Path) -> None:
    base = builder.ensure_base(tmp_path / "images")
    text = f'FROM {base}\nCOPY models/ /models/\nLABEL a="b c"\n'
    layout = oci.Layout(tmp_path / "images")
    first = builder.build(ordered(context(tmp_path / "a.tar.gz", text)), layout)
    again = builder.build(ordered(context(tmp_path / "b.tar.gz", text)), layout)
    assert first == again


def test_another_content_gives_another_image(tmp_path: Path) -> None:
    one = built(tmp_path, "FROM scratch\nCOPY models/ /models/\n")
    other = built(tmp_path, "FROM scratch\nCOPY models/ /models/\n", {**FILES, "models/m/1/model.onnx": b"other"})
    assert one.layers[0].diff_id != other.layers[0].diff_id


def test_a_layer_holds_the_folders_content_without_times_and_owners(tmp_path: Path) -> None:
    image = built(tmp_path, "FROM scratch\nCOPY models/ /models/\n")
    found = members(tmp_path, image.layers[0])
    assert list(found) == ["models", "models/m", "models/m/1", "models/m/1/model.onnx", "models/m/config.pbtxt"]
    assert {(m.mtime, m.uid, m.gid, m.uname) for m in found.values()} == {(0, 0, 0, "")}
    assert {oct(m.mode) for m in found.values() if m.isfile()} == {"0o644"}


def test_digests_in_the_layout_are_those_of_the_blobs(tmp_path: Path) -> None:
    image = built(tmp_path, "FROM scratch\nCOPY models/ /models/\n")
    blobs = list((tmp_path / "images/blobs/sha256").iterdir())
    assert {digests.of_file(blob) for blob in blobs} == {f"sha256:{blob.name}" for blob in blobs}
    packed = (tmp_path / "images/blobs/sha256" / image.layers[0].digest.removeprefix("sha256:")).read_bytes()
    assert digests.of_bytes(gzip.decompress(packed)) == image.layers[0].diff_id


def test_the_config_says_what_the_dockerfile_says(tmp_path: Path) -> None:
    text = (
        'FROM scratch\nENV A=1 B="two words"\nENV A=3\nLABEL x=y\nUSER 10001\nWORKDIR /app\nWORKDIR in\n'
        'ENTRYPOINT ["run", "it"]\n# a comment\nCMD ["-v"]\nCOPY models/m/config.pbtxt \\\n  here.txt\n'
    )
    image = built(tmp_path, text)
    assert image.config["config"] == {
        "Env": ["A=3", "B=two words"],
        "Labels": {"x": "y"},
        "User": "10001",
        "WorkingDir": "/app/in",
        "Entrypoint": ["run", "it"],
        "Cmd": ["-v"],
    }
    assert "app/in/here.txt" in members(tmp_path, image.layers[0])


def test_the_base_is_a_stub_that_says_so_and_is_made_once(tmp_path: Path) -> None:
    name = builder.ensure_base(tmp_path / "images")
    assert builder.ensure_base(tmp_path / "images") == name
    repository, _, digest = name.partition("@")
    image = oci.Layout(tmp_path / "images").read(digest)
    assert repository == builder.BASE_REPOSITORY
    assert builder.STAND_IN_LABEL in image.config["config"]["Labels"]
    assert image.layers == ()


def test_a_name_means_the_last_image_pushed_to_it(tmp_path: Path) -> None:
    layout = oci.Layout(tmp_path / "images")
    old = layout.write(oci.EMPTY)
    new = builder.ensure_base(tmp_path / "images").partition("@")[2]
    layout.tag(old, "r/x:t")
    layout.tag(new, "r/x:t")
    named = {e["annotations"][oci.REF_NAME]: e["digest"] for e in layout.index()}
    assert named["r/x:t"] == new
    assert json.loads((tmp_path / "images/oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_an_altered_blob_is_no_image(tmp_path: Path) -> None:
    layout = oci.Layout(tmp_path / "images")
    digest = layout.write(oci.EMPTY)
    (tmp_path / "images/blobs/sha256" / digest.removeprefix("sha256:")).write_text("{}")
    with pytest.raises(StepError, match="was altered"):
        layout.read(digest)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("COPY a /b\n", "exactly one FROM"),
        ("FROM scratch\nFROM scratch\n", "exactly one FROM"),
        ("FROM scratch\nRUN make\n", "line 2: RUN is not built here"),
        ("FROM scratch\nADD models /m\n", "ADD is not built here"),
        ("FROM python:3.11\n", "must be pinned"),
        (f"FROM r/x@sha256:{'0' * 64}\n", "no image"),
        ("FROM scratch\nCOPY ../x /m/\n", "leads out of the context"),
        ("FROM scratch\nCOPY nothing /m/\n", "the context has no nothing"),
        ("FROM scratch\nCOPY models /io/models/\n", "would be hidden"),
        ("FROM scratch\nCOPY models /kaniko/x\n", "would be hidden"),
        ("FROM scratch\nCOPY models /m/../io/\n", "within the image"),
        ("FROM scratch\nCOPY --chown=1:1 models /m/\n", "no flags"),
        ("FROM scratch\nENV X=$Y\n", "variables are not replaced"),
        ("FROM scratch\nENTRYPOINT run it\n", "must be a list"),
        ("FROM scratch\nLABEL x\n", "NAME=value"),
        ("FROM scratch\nCOPY models \\\n", "ends inside"),
    ],
)
def test_what_kaniko_would_do_otherwise_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        built(tmp_path, text)


@pytest.mark.parametrize("name", ["../evil", "models/../../evil", "/evil"])
def test_a_context_that_reaches_out_of_itself_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"must be a tar\.gz.*leads out of it"):
        built(tmp_path, "FROM scratch\n", {name: b""})


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_context_of_anything_but_files_and_folders_is_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "c.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = kind, "Dockerfile"
        archive.addfile(entry)
    with pytest.raises(InvalidInput, match="is a link or a device"):
        builder.build(ordered(path), oci.Layout(tmp_path / "images"))


def test_a_program_in_the_context_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "c.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, mode, data in (("Dockerfile", 0o600, b"FROM scratch\nCOPY run /bin/\n"), ("run", 0o700, b"#!")):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(data)
            archive.addfile(entry, io.BytesIO(data))
    layout = oci.Layout(tmp_path / "images")
    image = layout.read(builder.build(ordered(path), layout))
    assert oct(members(tmp_path, image.layers[0])["bin/run"].mode) == "0o755"


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.tar.gz").write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match=r"must be a tar\.gz"):
        builder.build(ordered(tmp_path / "c.tar.gz"), oci.Layout(tmp_path / "images"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--context=s3://b/k", "--destination=r/x:t"], "must be tar://"),
        (["--context=tar:///c"], "--destination=repository:tag is needed"),
        (["--context=tar:///c", "--destination=@:"], "must be registry/repository:tag"),
        (["--context=tar:///c", "--destination=r/x"], "must be registry/repository:tag"),
        (["--context=tar:///c", "--single-snapshot"], "unknown flag"),
        (["--context=tar:///c", "--context=tar:///d", "--no-push"], "given twice"),
        (["--context"], "needs a value"),
        (["word"], "unknown flag"),
    ],
)
def test_a_wrong_command_line_is_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        order_of(arguments, tmp_path)


def test_kanikos_own_command_line_is_understood(tmp_path: Path) -> None:
    given = [a.replace("{{inputs.parameters.repository}}", "localhost/seatrial/m") for a in _kaniko.arguments()]
    given = [a.replace("{{inputs.parameters.tag}}", "abc") for a in given]
    order = order_of(given, tmp_path)
    assert order.context == tmp_path / "in/context"
    assert order.digest_file == tmp_path / "out/params/digest"
    assert order.destinations == ("localhost/seatrial/m:abc",)


def test_it_writes_the_digest_without_a_newline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "io/in").mkdir(parents=True)
    context(tmp_path / "io/in/context", "FROM scratch\nCOPY models/ /models/\n")
    monkeypatch.setenv("SEATRIAL_IO", str(tmp_path / "io"))
    monkeypatch.setenv("SEATRIAL_IMAGES", str(tmp_path / "images"))
    arguments = ["--context=tar:///io/in/context", "--destination", "r/x:t", "--digest-file=/io/out/params/digest"]
    assert builder.main(arguments) == 0
    digest = (tmp_path / "io/out/params/digest").read_text()
    assert len(oci.Layout(tmp_path / "images").read(digest).layers) == 1


def test_without_a_push_no_name_is_given(tmp_path: Path) -> None:
    layout = oci.Layout(tmp_path / "images")
    builder.build(ordered(context(tmp_path / "c.tar.gz", "FROM scratch\n"), "--no-push"), layout)
    assert layout.index() == []


def test_every_fault_exits_1_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEATRIAL_IMAGES", str(tmp_path / "images"))
    assert builder.main(["--context=tar:///nowhere", "--destination=r/x:t"]) == 1
    assert capsys.readouterr().err.startswith("error: the context /nowhere must be a tar.gz")
    monkeypatch.delenv("SEATRIAL_IMAGES")
    assert builder.main([]) == 1
