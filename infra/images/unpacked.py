"""From what mmdebstrap unpacked to what an image holds: no documents, no leftovers, no package without a caller."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from seatrial.errors import StepError

LISTS: Final = re.compile(r"var/lib/dpkg/info/([a-z0-9][a-z0-9+.-]*)\.list")
STATUS: Final = "var/lib/dpkg/status.d/"
CERTIFICATES: Final = "usr/share/ca-certificates/mozilla/"
BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
_LEFT_OUT: Final = re.compile(
    r"dev/.+|boot|media|mnt|srv|opt|home|usr/(games|include|src|local/.+)"
    r"|libx?32|usr/libx?32|etc/(apt|bash_completion\.d|cron\..+|default|dpkg|init\.d|issue.*|logrotate\.d|motd|pam\.d)(/.*)?"
    r"|etc/(perl|security|selinux|update-motd\.d)(/.*)?"
    r"|(usr/)?lib/(systemd|udev|dpkg|init|tmpfiles\.d|sysusers\.d)(/.*)?"
    r"|usr/share/(man|locale|info|lintian|bug|bash-completion|menu|pixmaps|applications|debconf|doc-base)(/.*)?"
    r"|usr/share/doc/[^/]+/(?!copyright$).+"
    r"|var/(cache|log|backups|mail|local|opt|spool)(/.+)?|var/lib/(?!dpkg(/status\.d(/.*)?)?$).+"
)


def pack(
    whole: Path,
    target: Path,
    *,
    without: AbstractSet[str] = frozenset(),
    less: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    below: Sequence[Path] = (),
) -> None:
    """Write what an image holds of a root.

    Args:
        whole: As mmdebstrap wrote it, with a file list for each package.
        target: The tar to write.
        without: Packages that are left out.
        less: Paths that are left out, with all below them.
        keep: Paths that stay of packages that are left out.
        below: The tars of the roots below; what they hold is left out. The lowest root gets the certificates.

    Raises:
        StepError: A hard link's file was left out: the rules do not fit these packages.
    """
    held = {name for tar in below for name in _names(tar)}
    with tarfile.open(whole) as source:
        dropped = ({f"{STATUS}{name}" for name in without} | _files(source, without)) - set(keep)
        kept = [
            member
            for member in source
            if (name := _name(member)) not in held and name not in dropped and not _left_out(name, less)
        ]
        names = {_name(member) for member in kept}
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as packed:
            for member in kept:
                if member.islnk() and _name(member, linked=True) not in names:
                    raise StepError(f"{member.name} is a hard link to {member.linkname}, which is left out")
                packed.addfile(_plain(member), source.extractfile(member) if member.isreg() else None)
            if not below:
                bundle = b"".join(_certificates(source))
                entry = tarfile.TarInfo(BUNDLE)
                entry.size, entry.mode = len(bundle), 0o644
                packed.addfile(entry, io.BytesIO(bundle))


def _files(source: tarfile.TarFile, without: AbstractSet[str]) -> set[str]:
    """The files of some packages; a folder, which many share, is none."""
    found: set[str] = set()
    for member in source:
        named = LISTS.fullmatch(_name(member))
        content = source.extractfile(member) if named and named.group(1) in without else None
        if content is not None:
            lines = content.read().decode().splitlines()
            found |= {_merged(line) for line in lines if not line.endswith("/")}
    return found


def _certificates(source: tarfile.TarFile) -> Iterator[bytes]:
    for member in source:
        content = source.extractfile(member) if _name(member).startswith(CERTIFICATES) and member.isreg() else None
        if content is not None:
            yield content.read().rstrip(b"\n") + b"\n"


def _names(tar: Path) -> set[str]:
    with tarfile.open(tar) as source:
        return {_name(member) for member in source if not member.isdir()}


def _name(member: tarfile.TarInfo, *, linked: bool = False) -> str:
    return _merged(member.linkname if linked else member.name)


def _merged(name: str) -> str:
    """The path without its beginning; packages still say /bin, /sbin and /lib, which are links to /usr/…."""
    path = name.removeprefix("./").strip("/")
    return f"usr/{path}" if path.startswith(("bin/", "sbin/", "lib/", "lib64/")) else path


def _left_out(name: str, less: tuple[str, ...]) -> bool:
    return bool(_LEFT_OUT.fullmatch(name)) or any(name == path or name.startswith(f"{path}/") for path in less)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owned by root, of no time, lending nobody its rights."""
    member.mode &= 0o1777
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.pax_headers = {}
    return member
