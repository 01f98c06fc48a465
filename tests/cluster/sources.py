"""Models pushed to the cluster's git server, as their owners would push them."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from real_cluster import ROOT, STATE, RealCluster

from infra.cluster.places import BUCKET
from seatrial.app.data import prepared

REPOSITORY = "/models.git"
ALWAYS = "2026-01-01T00:00:00Z"
"""Equal content is an equal commit, whoever pushes it."""
MODEL = "cart_abandonment"
"""The project's own model that is released; what is ready-made is made of it."""


@dataclass
class Source:
    """A checkout of the cluster's repository of models."""

    cluster: RealCluster
    folder: Path
    url: str = field(repr=False)
    token: str = field(repr=False)

    def git(self, *arguments: str) -> str:
        """What git prints."""
        secret = base64.b64encode(f"git:{self.token}".encode()).decode()
        environment = {
            **os.environ,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {secret}",
            "GIT_AUTHOR_DATE": ALWAYS,
            "GIT_COMMITTER_DATE": ALWAYS,
            "GIT_AUTHOR_NAME": "A model's owner",
            "GIT_AUTHOR_EMAIL": "owner@example.com",
            "GIT_COMMITTER_NAME": "A model's owner",
            "GIT_COMMITTER_EMAIL": "owner@example.com",
        }
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {arguments[0]}: {done.stderr}"
        return done.stdout.strip()

    def pushed(self, branch: str, models: Path) -> str:
        """The commit of `branch` on the server, which holds the folder `models` and nothing else."""
        target = self.folder / "models"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(models, target, ignore=shutil.ignore_patterns("__pycache__"))
        self.git("checkout", "--quiet", "-B", branch)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", f"models of {branch}")
        with (STATE / "push.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.git("push", "--quiet", "--force", self.url, f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")


@contextmanager
def source(cluster: RealCluster) -> Iterator[Source]:
    """A checkout of a new repository, with the project's own models on the server's main branch."""
    secret = cluster.object("secret", "git-server", "seatrial-git")
    service = cluster.object("service", "git-server", "seatrial-git")
    assert secret is not None
    assert service is not None, "the git server is installed with the cluster"
    token = base64.b64decode(secret["data"]["token"]).decode()
    with tempfile.TemporaryDirectory() as folder:
        url = f"http://{service['spec']['clusterIP']}:8080{REPOSITORY}"
        checkout = Source(cluster, Path(folder), url, token)
        checkout.git("init", "--quiet", "--initial-branch=main")
        checkout.pushed("main", ROOT / "models")
        yield checkout


@dataclass(frozen=True)
class First:
    """The release of the project's own model that the other tests start from."""

    said: dict[str, Any]
    """What `seatrial submit --json` printed; promoted on a new cluster, unchanged on one that has it."""
    rows: Path
    data: str
    """The same rows, where steps read them."""


def first_release(cluster: RealCluster, repository: Source) -> First:
    """Release MODEL once in a run of the tests: whoever comes first does it, the others wait and read what it said."""
    rows = prepared(ROOT / "models" / MODEL, home=ROOT / ".seatrial", say=print)
    data = f"s3://{BUCKET}/data/{MODEL}/{rows.name}"
    kept = STATE / f"first-release-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}.json"
    with (STATE / "first-release.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_file():
            cluster.upload(rows, f"data/{MODEL}/{rows.name}")
            revision = repository.git("rev-parse", "HEAD")
            options = ("--data", data, "--revision", revision, "--reason", "the first one")
            code, said = cluster.seatrial("submit", MODEL, *options)
            assert (code, said["outcome"]) in {(0, "promoted"), (0, "unchanged")}, said
            kept.write_text(json.dumps(said))
    return First(json.loads(kept.read_text()), rows, data)


def with_parameter(models: Path, model: str, name: str, value: object) -> None:
    """Change one training parameter in a copy of a model's folder."""
    spec = models / model / "model.yaml"
    lines = [
        f"{line.partition(name)[0]}{name}: {json.dumps(value)}" if line.strip().startswith(f"{name}:") else line
        for line in spec.read_text().splitlines()
    ]
    spec.write_text("\n".join(lines) + "\n")
