"""Debian roots by mmdebstrap: packages unpacked, not installed. No shell, no package manager, no script has run.

What apt brings along only for the packages' install scripts is left out again, and so are documents. Every package that
is in an image stands in its /var/lib/dpkg/status.d, where scanners look for it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from infra.images import unpacked
from infra.images.place import Cache
from infra.images.programs import run
from seatrial import digests

SUITE: Final = "bookworm"
RECIPE: Final = 1
"""Raise it when the code of this file or of `unpacked` makes another root of the same packages."""
SCRIPTS_ONLY: Final = frozenset(
    {
        "adduser", "debconf", "debianutils", "dmsetup", "dpkg", "init-system-helpers", "libdebconfclient0", "lsb-base",
        "libsemanage-common", "libsemanage2", "libsepol2", "mawk", "passwd", "runit-helper", "sensible-utils",
        "sysvinit-utils", "tar", "ucf",
    }
)  # fmt: skip
"""Packages that only install scripts need."""
PERL: Final = frozenset(
    {"libgdbm-compat4", "libgdbm6", "liberror-perl", "libperl5.36", "perl", "perl-base", "perl-modules-5.36"}
)
GNUPG: Final = frozenset(
    {
        "dirmngr", "gnupg", "gnupg-l10n", "gnupg-utils", "gpg", "gpg-agent", "gpg-wks-client", "gpg-wks-server",
        "gpgconf", "gpgsm", "gpgv", "libksba8", "libldap-2.5-0", "libnpth0", "pinentry-curses",
    }
)  # fmt: skip

# Written as one hook a line: `$1` is the root's folder.
_STATUS: Final = (
    'cd "$1" && mkdir -p var/lib/dpkg/status.d && for deb in var/cache/apt/archives/*.deb; do '
    'name=$(dpkg-deb -f "$deb" Package); dpkg-deb -f "$deb" > "var/lib/dpkg/status.d/$name"; '
    'dpkg-deb --fsys-tarfile "$deb" | tar -t > "var/lib/dpkg/info/$name.list"; done'
)
_COMPILE: Final = (
    'PYTHONHASHSEED=0 chroot "$1" /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash '
    "/usr/lib/python3.11"
)


@dataclass(frozen=True, kw_only=True)
class Root:
    """What one root holds."""

    packages: tuple[str, ...]
    without: frozenset[str] = frozenset()
    """Packages that apt adds and nobody here calls."""
    less: tuple[str, ...] = ()
    """Paths that are left out, like usr/bin/scalar."""
    keep: tuple[str, ...] = ()
    """Paths that stay of packages that are left out."""
    over: str | None = None
    """The root below: what it holds is not held again."""
    compiled: bool = field(default=False)
    """Compile Python's library: nobody may write into the image later."""


ROOTS: Final[Mapping[str, Root]] = {
    "base": Root(
        packages=(
            "base-files", "ca-certificates", "coreutils", "libgomp1", "libstdc++6", "netbase", "python3", "tzdata",
        ),
        without=frozenset({"coreutils", "libgmp10"}),
        keep=("usr/bin/cat", "var/lib/dpkg/status.d/coreutils"),  # joblib reads by it how many cores there are
        less=(
            "usr/bin/openssl", "usr/bin/c_rehash", "usr/sbin/update-ca-certificates", "usr/lib/x86_64-linux-gnu/gconv",
            "usr/lib/python3.11/pydoc_data", "usr/lib/python3.11/test", "usr/share/zoneinfo/posix",
            "usr/share/zoneinfo/right",
        ),
        compiled=True,
    ),
    "git": Root(
        packages=("dash", "git", "openssh-client"),
        without=PERL | {"git-man"},
        less=(
            "usr/bin/scalar", "usr/lib/git-core/scalar", "usr/lib/git-core/git-imap-send",
            "usr/lib/git-core/git-http-push", "usr/lib/git-core/git-daemon", "usr/lib/git-core/git-shell",
            "usr/lib/git-core/git-sh-i18n--envsubst", "usr/share/perl5", "usr/share/git-core/contrib",
        ),
        over="base",
    ),
    "git-server": Root(packages=("openssh-server",), over="git", less=("etc/ssh/moduli",)),
    "triton": Root(packages=("bash", "coreutils", "dash", "libpython3.11"), over="base"),
    "kaniko": Root(
        packages=("skopeo",),
        without=GNUPG | {"containernetworking-plugins", "iptables"},
        over="base",
    ),
}  # fmt: skip


def digest(name: str) -> str:
    """The digest of all that decides what the root holds, Debian's own updates apart."""
    root = ROOTS[name]
    below = digest(root.over) if root.over else ""
    wanted = {key: sorted(value) if isinstance(value, frozenset) else value for key, value in asdict(root).items()}
    return digests.of_json({"root": wanted, "below": below, "recipe": RECIPE, "suite": SUITE})


def path(name: str, cache: Cache) -> Path:
    """Where the root lies once it is made."""
    return cache.root(f"{name}-{digests.short(digest(name))}")


def make(name: str, cache: Cache) -> None:
    """Make the root, and the one below it; made once, then found.

    Raises:
        Unavailable: Debian's archive cannot be reached.
    """
    below = ROOTS[name].over
    if below is not None:
        make(below, cache)
    with cache.exclusive(f"root-{name}"):
        if not path(name, cache).exists():
            tars = [path(other, cache) for other in _below(name)]
            _make(ROOTS[name], path(name, cache), tars, cache.log(f"root-{name}"))


def forget(cache: Cache) -> None:
    """Let every root be made anew, with the packages that Debian has by then."""
    shutil.rmtree(cache.root("any").parent, ignore_errors=True)


def _below(name: str) -> list[str]:
    over = ROOTS[name].over
    return [] if over is None else [over, *_below(over)]


def _make(root: Root, target: Path, below: list[Path], log: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        whole, partial = Path(folder, "whole.tar"), Path(folder, "packed.tar")
        command = [
            "mmdebstrap", "--quiet", "--variant=extract", "--mode=root", f"--include={','.join(root.packages)}",
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", f"--extract-hook={_STATUS}",
            *([f"--extract-hook={_COMPILE}"] if root.compiled else []),
            SUITE, str(whole),
        ]  # fmt: skip
        run(command, log=log, environment={**os.environ, "SOURCE_DATE_EPOCH": "0", "LC_ALL": "C.UTF-8"})
        unpacked.pack(whole, partial, without=root.without | SCRIPTS_ONLY, less=root.less, keep=root.keep, below=below)
        partial.rename(target)
