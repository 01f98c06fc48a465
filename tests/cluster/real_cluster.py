"""What tests do to the cluster: kubectl, the command of a person, data and source where steps find them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from infra.cluster import places
from infra.cluster.places import BUCKET, CONTEXT, GATEWAY, GATEWAY_METRICS, S3
from seatrial.adapters import s3

ROOT: Final = places.CHECKOUT
STATE: Final = ROOT / ".seatrial" / "cluster"
WORKFLOWS: Final = "seatrial"
SERVING: Final = "seatrial-serving"
METRICS: Final = f"{GATEWAY_METRICS}/metrics"
ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


@dataclass(frozen=True)
class RealCluster:
    """The test cluster."""

    kubeconfig: Path

    def run(self, *command: str) -> str:
        """What a command prints; a failure fails the test."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def part(self, what: str, name: str) -> None:
        """Stop, start or restart a part of the control plane."""
        self.run(sys.executable, "-m", "infra.cluster", what, name)

    def kubectl(self, *arguments: str, given: str | None = None, fine: bool = True) -> str:
        """What kubectl prints; with `fine` a failure fails the test."""
        done = subprocess.run(
            ["kubectl", *arguments], input=given, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0 or not fine, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout if fine else done.stdout + done.stderr

    def object(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        """An object, or None."""
        text = self.kubectl("-n", namespace, "get", kind, name, "-o", "json", "--ignore-not-found")
        found: dict[str, Any] | None = json.loads(text) if text.strip() else None
        return found

    def workflow(self, name: str) -> dict[str, Any]:
        """A Workflow that must be there."""
        found = self.object("workflow", name, WORKFLOWS)
        assert found is not None, f"there is no Workflow {name}"
        return found

    def ended(self, name: str, within_s: float = 600) -> dict[str, Any]:
        """The Workflow when it has ended."""
        found: dict[str, Any] = until(lambda: self._if_ended(name), within_s, f"Workflow {name} to end")
        return found

    def _if_ended(self, name: str) -> dict[str, Any] | None:
        found = self.workflow(name)
        return found if found.get("status", {}).get("phase") in ENDED else None

    def seatrial(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code and printed JSON of the person's command."""
        return self.printed(self.started(*arguments))

    def printed(self, process: subprocess.Popen[str], within_s: float = 900) -> tuple[int, dict[str, Any]]:
        """Exit code and printed JSON of a command that was begun."""
        out, err = process.communicate(timeout=within_s)
        assert out.strip(), f"{process.args!r} printed nothing; stderr: {err[-3000:]}"
        printed: dict[str, Any] = json.loads(out)
        return process.returncode, printed

    def done(self, *arguments: str) -> None:
        """A person's command that prints no facts, and succeeds."""
        process = self.started(*arguments, as_json=False)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, f"seatrial {' '.join(arguments)}: {out[-1000:]} {err[-3000:]}"

    def started(self, *arguments: str, as_json: bool = True) -> subprocess.Popen[str]:
        """The person's command, begun."""
        command = [sys.executable, "-m", "seatrial.app.cli", *arguments, "--context", CONTEXT]
        command += ["--json"] if as_json else []
        environment = {**os.environ, "NO_COLOR": "1"}
        return subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def store(self) -> s3.S3Store:
        """The store, with the credentials that the installation made."""
        credentials = json.loads((STATE / "secrets" / "store.json").read_text())
        environment = {
            **credentials,
            "SEATRIAL_STORE": f"s3://{BUCKET}",
            "AWS_ENDPOINT_URL_S3": S3,
            "AWS_REGION": "us-east-1",
        }
        return s3.from_environment(environment)

    def upload(self, file: Path, key: str) -> str:
        """Put a file into the store; its DATA_URI."""
        self.store().write(key, file.read_bytes())
        return f"s3://{BUCKET}/{key}"

    def ask(self, model: str, body: bytes, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """One request through the gateway."""
        url = f"{GATEWAY}/v2/models/{model}/infer"
        return httpx.post(
            url, content=body, headers={"content-type": "application/json", **(headers or {})}, timeout=10
        )


def until(look: Callable[[], Any], within_s: float, what: str, every_s: float = 0.5) -> Any:
    """What `look` gives as soon as that is something.

    Raises:
        AssertionError: It took too long.
    """
    deadline = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {within_s:g} s for {what}"
        time.sleep(every_s)
