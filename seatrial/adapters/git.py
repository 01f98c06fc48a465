"""`Sources` over a folder or a git repository, by the git command.

A source holds one folder a model: `models/<name>/model.yaml`, or `<name>/model.yaml` where there is no `models/`.
Files whose name begins with a dot and `__pycache__` are left out. What git gives is taken by tree and blob, not by
checkout: no filter, hook or attribute of the repository has a say in the bytes.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from seatrial.adapters import git_access
from seatrial.adapters.git_access import Access
from seatrial.errors import InvalidInput, StepError, Unavailable, shortened
from seatrial.names import model_name as checked_name
from seatrial.spec import SPEC_FILE

SOURCE: Final = "SEATRIAL_SOURCE"
STEP_IMAGES: Final = "SEATRIAL_STEP_IMAGES"
CALL_S: Final = 300
"""Seconds for one git command, a clone included."""
MODELS: Final = "models"
WORKTREE: Final = "worktree"

_URL = re.compile(r"(?:https?|ssh|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_LFS = b"version https://git-lfs.github.com/spec/"
_AWAY = re.compile(
    rb"could not resolve|unable to access|connection|timed out|early EOF|hung up",
    re.IGNORECASE,
)
"""What git says when the network fails: it exits with 128 on everything, so its words are all there is."""


@dataclass(frozen=True)
class Folder:
    """A folder on disk, as it is."""

    root: Path

    @property
    def base(self) -> Path:
        """Where the models' folders are."""
        return self.root / MODELS if (self.root / MODELS).is_dir() else self.root

    def models(self) -> list[str]:
        """The models' names, sorted."""
        return sorted(path.parent.name for path in self.base.glob(f"*/{SPEC_FILE}") if _is_name(path.parent.name))

    def files(self, model_name: str) -> Iterator[tuple[str, bytes]]:
        """Path in the model's folder and content."""
        folder = self.base / model_name
        if folder.is_symlink():
            raise InvalidInput(f"{model_name} is a symlink: a model's folder must hold its own files")
        yield from self._below(folder, folder)

    def _below(self, folder: Path, top: Path) -> Iterator[tuple[str, bytes]]:
        for path in sorted(folder.iterdir()):
            name = path.relative_to(top).as_posix()
            if _left_out(name):
                continue
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise InvalidInput(
                    f"{top.name}/{name} is a symlink or no file: a model's folder must hold its own files"
                )
            if path.is_dir():
                yield from self._below(path, top)
            else:
                yield name, path.read_bytes()


@dataclass(frozen=True)
class Commit:
    """A commit of a repository."""

    repository: Path
    sha: str
    access: Mapping[str, str] = field(default_factory=dict, repr=False)
    """A clone without blobs fetches each as it is read."""

    def models(self) -> list[str]:
        """The models' names, sorted."""
        paths = [PurePosixPath(path) for _, path, _ in self._entries()]
        base = self._base(paths)
        found = {path.parts[len(base.parts)] for path in paths if _is_spec(path, base)}
        return sorted(name for name in found if _is_name(name))

    def files(self, model_name: str) -> Iterator[tuple[str, bytes]]:
        """Path in the model's folder and content."""
        entries = [(mode, PurePosixPath(path), blob) for mode, path, blob in self._entries()]
        folder = self._base([path for _, path, _ in entries]) / model_name
        for mode, path, blob in entries:
            if not path.is_relative_to(folder):
                continue
            name = path.relative_to(folder).as_posix()
            if ".." in path.parts:
                raise InvalidInput(f"{shortened(path)} leads out of the folder of {model_name}")
            if _left_out(name):
                continue
            if mode not in {"100644", "100755"}:
                raise InvalidInput(
                    f"{model_name}/{name} is a symlink or a submodule: a model's folder must hold its own files"
                )
            yield name, git(self.repository, "cat-file", "blob", blob, access=self.access)

    def _base(self, paths: list[PurePosixPath]) -> PurePosixPath:
        return PurePosixPath(MODELS if any(path.parts[0] == MODELS for path in paths) else "")

    def _entries(self) -> Iterator[tuple[str, str, str]]:
        """Mode, path and object of every file. Source: git-ls-tree(1), output format with -z."""
        for line in git(self.repository, "ls-tree", "-r", "-z", self.sha).split(b"\0"):
            if line:
                head, _, path = line.partition(b"\t")
                mode, _, blob = head.decode().split(" ")
                yield mode, os.fsdecode(path), blob


class GitSources:
    """Models' folders from a folder on disk, a git checkout or a git URL."""

    def __init__(self, source: str, access: Access = Access()) -> None:  # noqa: B008 - frozen
        """A source.

        Args:
            source: A folder's path or a git URL (https, ssh, file).
            access: What a private repository asks for.

        Raises:
            InvalidInput: It is neither.
        """
        if not _URL.fullmatch(source) and not (source and Path(source).is_dir()):
            raise InvalidInput(
                f"{SOURCE} must be a folder or a git URL (https, ssh, file); got {shortened(repr(source))}"
            )
        self._source, self._access = source, access

    def models(self, revision: str) -> list[str]:
        """The models at a revision, sorted; an empty revision is the folder as it is, or the URL's default branch."""
        with self._tree(revision) as (tree, _):
            return tree.models()

    def export(self, model_name: str, revision: str, into: Path) -> str:
        """Write the model's folder at `revision` to `into`; give back the exact revision that it is.

        Returns:
            A commit; `<commit>+worktree` for a checkout as it is on disk; `worktree` for a folder without git.

        Raises:
            InvalidInput: No such model or revision; a symlink, a submodule or an LFS pointer is among the files.
            Unavailable: The repository cannot be reached.
        """
        checked_name(model_name)
        with self._tree(revision) as (tree, exact):
            if model_name not in tree.models():
                raise InvalidInput(f"no model {model_name!r} at {exact}; there are {tree.models()}")
            for name, content in tree.files(model_name):
                if content.startswith(_LFS):
                    raise InvalidInput(
                        f"{model_name}/{name} is a Git LFS pointer, not the file: run `git lfs pull` in the source, or "
                        "keep the file out of LFS"
                    )
                path = into / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return exact

    @contextmanager
    def _tree(self, revision: str) -> Iterator[tuple[Folder | Commit, str]]:
        if revision.startswith("-"):
            raise InvalidInput(f"a revision is a commit, branch or tag; got {shortened(repr(revision))}")
        if not _URL.fullmatch(self._source):
            folder = Path(self._source)
            yield self._on_disk(folder) if not revision else self._at(folder, revision)
            return
        with tempfile.TemporaryDirectory() as place, self._access.environment(self._source) as access:
            clone = Path(place, "source.git")
            arguments = ("clone", "--quiet", "--bare", "--filter=blob:none", "--", self._source, str(clone))
            git(Path(place), *arguments, access=access)
            yield self._at(clone, revision or "HEAD", access)

    def _on_disk(self, folder: Path) -> tuple[Folder, str]:
        try:
            head = git(folder, "rev-parse", "--verify", "--quiet", "HEAD").decode().strip()
        except StepError:  # no checkout, no commit yet, or no git: the folder is what counts
            return Folder(folder), WORKTREE
        return Folder(folder), f"{head}+{WORKTREE}"

    def _at(self, repository: Path, revision: str, access: Mapping[str, str] | None = None) -> tuple[Commit, str]:
        try:
            asked = f"{revision}^{{commit}}"
            sha = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", asked).decode().strip()
        except InvalidInput as error:
            raise InvalidInput(
                f"the source has no commit, branch or tag {shortened(repr(revision))}; it must be pushed, and fetched "
                "where the source is a checkout"
            ) from error
        return Commit(repository, sha, access or {}), sha


def from_environment(environment: Mapping[str, str] = os.environ) -> GitSources:
    """The source that SEATRIAL_SOURCE names, with the credentials that the environment holds."""
    return GitSources(environment.get(SOURCE, ""), git_access.from_environment(environment))


def step_images(environment: Mapping[str, str] = os.environ) -> str:
    """The digest over the step images, from SEATRIAL_STEP_IMAGES.

    Raises:
        InvalidInput: It is not set, or no digest.
    """
    digest = environment.get(STEP_IMAGES, "")
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise InvalidInput(f"{STEP_IMAGES} must be sha256:<64 hex digits>; got {shortened(repr(digest))}")
    return digest


def git(folder: Path, *arguments: str, access: Mapping[str, str] | None = None) -> bytes:
    """What a git command prints; it may ask nobody and reach nothing but https, http, ssh and files.

    Raises:
        InvalidInput: git refuses.
        Unavailable: git is not installed, takes too long, or cannot reach the other side.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    fixed = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:http:https:ssh", "LC_ALL": "C"}
    environment = {**inherited, **fixed, **(access or {})}
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=CALL_S, env=environment, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise Unavailable("the git command is not installed here") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"git {arguments[0]} did not end within {CALL_S} s") from error
    if done.returncode != 0:
        said = shortened(_without_credentials(done.stderr.decode(errors="replace")))
        kind = Unavailable if _AWAY.search(done.stderr) else InvalidInput
        raise kind(f"git {arguments[0]} failed with {done.returncode}: {said or 'no reason given'}")
    return done.stdout


_OF_ANOTHER_REPOSITORY: Final = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)
"""Set inside a git hook: they would make `-C` mean nothing."""


def _without_credentials(text: str) -> str:
    return re.sub(r"://[^/@\s]+@", "://", text)


def _left_out(name: str) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in PurePosixPath(name).parts)


def _is_spec(path: PurePosixPath, base: PurePosixPath) -> bool:
    return path.name == SPEC_FILE and len(path.parts) == len(base.parts) + 2 and path.is_relative_to(base)


def _is_name(text: str) -> bool:
    try:
        checked_name(text)
    except InvalidInput:
        return False
    return True
