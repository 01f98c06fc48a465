"""Sources: a folder, a checkout, a repository; what is refused in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.adapters import git
from seatrial.adapters.git import GitSources
from seatrial.errors import InvalidInput, Unavailable


def write(root: Path, name: str, text: str = "x") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def committed(root: Path) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A", "-f"], [*identity, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(root), *command], check=True, capture_output=True)
    return subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source with two models, one of them with things that are left out."""
    source = tmp_path / "source"
    write(source, "models/tea/model.yaml", "model: tea")
    write(source, "models/tea/sub/train.py", "print()")
    write(source, "models/tea/.hidden")
    write(source, "models/tea/__pycache__/train.pyc")
    write(source, "models/coffee/model.yaml")
    write(source, "models/no_model/readme.md")
    write(source, "models/Bad-Name/model.yaml")
    write(source, "elsewhere/model.yaml")
    return source


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_folder_without_git_is_taken_as_it_is(root: Path, tmp_path: Path) -> None:
    sources = GitSources(str(root))
    assert sources.models("") == ["coffee", "tea"]
    assert sources.export("tea", "", tmp_path / "out") == "worktree"
    assert files(tmp_path / "out") == ["model.yaml", "sub/train.py"]


def test_a_checkout_as_it_is_on_disk_says_so(root: Path, tmp_path: Path) -> None:
    sha = committed(root)
    write(root, "models/tea/model.yaml", "model: changed")
    assert GitSources(str(root)).export("tea", "", tmp_path / "out") == f"{sha}+worktree"
    assert (tmp_path / "out/model.yaml").read_text() == "model: changed"


@pytest.mark.parametrize("revision", ["main", "HEAD", "v1", "sha"])
def test_a_revision_is_taken_from_git_and_not_from_disk(root: Path, tmp_path: Path, revision: str) -> None:
    sha = committed(root)
    subprocess.run(["git", "-C", str(root), "tag", "v1"], check=True)
    write(root, "models/tea/model.yaml", "model: changed")
    asked = sha if revision == "sha" else revision
    assert GitSources(str(root)).export("tea", asked, tmp_path / "out") == sha
    assert files(tmp_path / "out") == ["model.yaml", "sub/train.py"]
    assert (tmp_path / "out/model.yaml").read_text() == "model: tea"


def test_a_url_is_cloned(root: Path, tmp_path: Path) -> None:
    sha = committed(root)
    sources = GitSources(f"file://{root}")
    assert sources.models("") == ["coffee", "tea"]
    assert sources.export("tea", "", tmp_path / "out") == sha
    assert files(tmp_path / "out") == ["model.yaml", "sub/train.py"]


def test_models_at_the_top_count_where_there_is_no_models_folder(tmp_path: Path) -> None:
    write(tmp_path, "tea/model.yaml")
    assert GitSources(str(tmp_path)).models("") == ["tea"]
    committed(tmp_path)
    assert GitSources(str(tmp_path)).models("HEAD") == ["tea"]


def test_an_unknown_model_is_refused_and_the_known_ones_are_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no model 'cocoa'.*\['coffee', 'tea'\]"):
        GitSources(str(root)).export("cocoa", "", tmp_path / "out")


@pytest.mark.parametrize("name", ["../tea", "A b", "$(id)", "{{x}}", "t" * 31, ""])
def test_a_malformed_name_never_becomes_a_path(root: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="a model name is"):
        GitSources(str(root)).export(name, "", tmp_path / "out")


@pytest.mark.parametrize("revision", ["--upload-pack=touch /tmp/x", "-h", "nowhere", "HEAD~99", "main:models/tea"])
def test_a_revision_that_is_none_is_refused(root: Path, revision: str) -> None:
    committed(root)
    with pytest.raises(InvalidInput, match=r"revision|no commit"):
        GitSources(str(root)).models(revision)


@pytest.mark.parametrize("revision", ["", "HEAD"])
def test_a_symlink_is_refused(root: Path, tmp_path: Path, revision: str) -> None:
    (root / "models/tea/passwd").symlink_to("/etc/passwd")
    committed(root)
    with pytest.raises(InvalidInput, match="tea/passwd is a symlink"):
        GitSources(str(root)).export("tea", revision, tmp_path / "out")


def test_a_model_folder_that_is_a_symlink_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "models/cocoa").symlink_to(root / "models/tea")
    with pytest.raises(InvalidInput, match="cocoa is a symlink"):
        GitSources(str(root)).export("cocoa", "", tmp_path / "out")


@pytest.mark.parametrize("revision", ["", "HEAD"])
def test_a_git_lfs_pointer_is_refused(root: Path, tmp_path: Path, revision: str) -> None:
    write(root, "models/tea/model.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 5\n")
    committed(root)
    with pytest.raises(InvalidInput, match=r"tea/model\.onnx is a Git LFS pointer"):
        GitSources(str(root)).export("tea", revision, tmp_path / "out")


def test_a_tree_whose_path_leads_out_of_the_folder_is_refused(root: Path, tmp_path: Path) -> None:
    committed(root)
    blob = git.git(root, "rev-parse", "HEAD:models/tea/model.yaml").decode().strip()
    entry = f"100644 blob {blob}"
    escape = _tree(root, f"{entry}\t..", f"{entry}\tmodel.yaml")
    models = _tree(root, f"040000 tree {escape}\ttea")
    top = _tree(root, f"040000 tree {models}\tmodels")
    commit = subprocess.run(
        ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-m", "x", top],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    with pytest.raises(InvalidInput, match="leads out of the folder"):
        GitSources(str(root)).export("tea", commit, tmp_path / "out")


def _tree(root: Path, *entries: str) -> str:
    """A tree object as no honest git would write it."""
    raw = b""
    for entry in entries:
        head, name = entry.split("\t")
        mode, _, sha = head.split(" ")
        raw += f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(sha)
    done = subprocess.run(
        ["git", "-C", str(root), "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        input=raw,
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


def test_a_repository_that_is_not_there_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="git clone failed"):
        GitSources(f"file://{tmp_path}/nowhere").models("")


def test_a_repository_that_cannot_be_reached_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="git clone failed"):
        GitSources("http://127.0.0.1:9/x.git").models("")


@pytest.mark.parametrize("source", ["", "/nowhere/at/all", "ext::sh -c id", "ftp://x/y"])
def test_a_source_is_a_folder_or_a_git_url(source: str) -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_SOURCE must be"):
        git.from_environment({"SEATRIAL_SOURCE": source})


def test_a_message_holds_no_credentials() -> None:
    with pytest.raises(Unavailable) as raised:
        GitSources("http://me:secret@127.0.0.1:9/x.git").models("")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("digest", ["", "latest", "sha256:12"])
def test_the_step_images_are_named_by_digest(digest: str) -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_STEP_IMAGES"):
        git.step_images({"SEATRIAL_STEP_IMAGES": digest})
