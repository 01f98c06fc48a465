from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from infra.images import debian, unpacked
from seatrial.errors import StepError

FILES = {
    "./usr/bin/tool": b"tool",
    "./usr/bin/perl": b"perl",
    "./usr/share/doc/tool/copyright": b"licence",
    "./usr/share/doc/tool/changelog.gz": b"long",
    "./usr/share/man/man1/tool.1.gz": b"long",
    "./var/cache/apt/archives/tool.deb": b"long",
    "./var/lib/dpkg/status": b"not ours",
    "./var/lib/dpkg/status.d/tool": b"Package: tool",
    "./var/lib/dpkg/status.d/perl": b"Package: perl",
    "./var/lib/dpkg/info/perl.list": b"./usr/\n./usr/bin/\n./bin/perl\n",
    "./etc/apt/sources.list": b"deb",
    "./usr/share/ca-certificates/mozilla/A.crt": b"one",
    "./usr/share/ca-certificates/mozilla/B.crt": b"two\n",
}


def whole(folder: Path, files: dict[str, bytes] | None = None, link: tuple[str, str] | None = None) -> Path:
    path = folder / "whole.tar"
    with tarfile.open(path, "w") as archive:
        for name, data in (FILES if files is None else files).items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.uid, entry.uname, entry.mtime = len(data), 0o4755, 7, "seven", 99
            archive.addfile(entry, io.BytesIO(data))
        if link:
            entry = tarfile.TarInfo(link[0])
            entry.type, entry.linkname = tarfile.LNKTYPE, link[1]
            archive.addfile(entry)
    return path


def packed(
    folder: Path,
    source: Path,
    *,
    less: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    below: tuple[Path, ...] = (),
) -> Path:
    target = folder / f"packed-{len(below)}.tar"
    unpacked.pack(source, target, without=frozenset({"perl"}), less=less, keep=keep, below=below)
    return target


def members(path: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(path) as archive:
        return {member.name.removeprefix("./"): member for member in archive}


def test_documents_and_what_apt_left_are_gone_and_licences_stay(tmp_path: Path) -> None:
    assert sorted(members(packed(tmp_path, whole(tmp_path)))) == [
        "etc/ssl/certs/ca-certificates.crt",
        "usr/bin/tool",
        "usr/share/ca-certificates/mozilla/A.crt",
        "usr/share/ca-certificates/mozilla/B.crt",
        "usr/share/doc/tool/copyright",
        "var/lib/dpkg/status.d/tool",
    ]


def test_a_package_that_nobody_calls_is_gone_with_its_entry(tmp_path: Path) -> None:
    found = members(packed(tmp_path, whole(tmp_path)))
    assert "usr/bin/perl" not in found
    assert "var/lib/dpkg/status.d/perl" not in found


def test_one_program_of_a_package_that_is_left_out_may_stay(tmp_path: Path) -> None:
    found = members(packed(tmp_path, whole(tmp_path), keep=("usr/bin/perl",)))
    assert "usr/bin/perl" in found
    assert "var/lib/dpkg/status.d/perl" not in found


def test_files_are_roots_of_no_time_and_lend_no_rights(tmp_path: Path) -> None:
    found = members(packed(tmp_path, whole(tmp_path)))
    assert {(m.uid, m.gid, m.uname, m.mtime) for m in found.values()} == {(0, 0, "", 0)}
    assert oct(found["usr/bin/tool"].mode) == "0o755"


def test_the_lowest_root_holds_the_certificates_as_one_file(tmp_path: Path) -> None:
    with tarfile.open(packed(tmp_path, whole(tmp_path))) as archive:
        content = archive.extractfile(unpacked.BUNDLE)
        assert content is not None
        assert content.read() == b"one\ntwo\n"


def test_what_the_roots_below_hold_is_not_held_again(tmp_path: Path) -> None:
    below = packed(tmp_path, whole(tmp_path))
    more = whole(tmp_path, {**FILES, "./usr/bin/git": b"git"})
    assert sorted(members(packed(tmp_path, more, below=(below,)))) == ["usr/bin/git"]


def test_a_path_may_be_left_out_with_all_below_it(tmp_path: Path) -> None:
    found = members(packed(tmp_path, whole(tmp_path), less=("usr/share/doc",)))
    assert "usr/share/doc/tool/copyright" not in found


def test_a_hard_link_to_nothing_is_a_fault_of_the_rules(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="hard link"):
        packed(tmp_path, whole(tmp_path, link=("./usr/bin/perl5", "./usr/bin/perl")))


def test_the_same_packages_give_the_same_bytes(tmp_path: Path) -> None:
    first = packed(tmp_path, whole(tmp_path)).read_bytes()
    assert packed(tmp_path, whole(tmp_path)).read_bytes() == first


def test_a_roots_digest_tells_its_own_rules_and_those_below(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: debian.digest(name) for name in debian.ROOTS}
    assert len(set(before.values())) == len(before)
    changed = debian.Root(packages=("base-files",), compiled=True)
    monkeypatch.setattr(debian, "ROOTS", {**debian.ROOTS, "base": changed})
    assert not [name for name in before if debian.digest(name) == before[name]]
