"""The overlay on disk, and from there into the cluster by kubectl, as an operator does it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.install.overlay import SECRETS, SERVING, WORKFLOWS
from seatrial.app.sandbox.places import write
from seatrial.errors import InvalidInput, Unavailable

CALL_S: Final = 180
KINDS: Final = (
    "workflowtemplates.argoproj.io",
    "cronworkflows.argoproj.io",
    "inferenceservices.serving.kserve.io",
    "httproutes.gateway.networking.k8s.io",
    "gateways.gateway.networking.k8s.io",
)
"""What must have been installed before: Argo Workflows, KServe, Gateway API."""


@dataclass(frozen=True)
class Kubectl:
    """Kubectl for one context."""

    program: str
    kubeconfig: Path
    context: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What came of it."""
        command = [self.program, f"--kubeconfig={self.kubeconfig}", f"--context={self.context}", *arguments]
        cache = self.kubeconfig.parent / "kubectl-cache"
        surroundings = {**os.environ, "KUBECACHEDIR": str(cache)}
        try:
            return subprocess.run(
                command, env=surroundings, capture_output=True, text=True, timeout=CALL_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"kubectl {' '.join(arguments[:3])} did not end: {error}") from error


def write_overlay(files: Mapping[str, str], folder: Path) -> None:
    """Write every file; the one with secrets for its owner only."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write(folder / name, text.encode(), mode=0o600 if name == SECRETS else 0o644)


def apply(kubectl: Kubectl, folder: Path) -> list[str]:
    """Apply the overlay and wait until the cluster has taken it in; kubectl's line for each object.

    Raises:
        Unavailable: The cluster does not answer, or does not take it in.
        InvalidInput: It lacks a kind that we need, or refuses an object, like one with an unknown field.
    """
    ready = kubectl.run("get", "--raw=/readyz")
    if ready.returncode != 0:
        raise Unavailable(f"the cluster of context {kubectl.context} does not answer: {ready.stderr.strip()}")
    for kind in KINDS:
        if kubectl.run("wait", "--for=condition=Established", f"crd/{kind}", "--timeout=60s").returncode != 0:
            raise InvalidInput(
                f"the cluster does not know {kind}: install Argo Workflows, KServe and Gateway API first"
            )
    done = kubectl.run(
        # Server-side: Argo's CRDs are too big for the other way. Strict: a misspelt field is refused, not dropped.
        "apply", "--server-side", "--validate=strict", "--force-conflicts", "--field-manager=seatrial-install",
        "-k", str(folder),
    )  # fmt: skip
    if done.returncode != 0:
        raise InvalidInput(f"the cluster refuses the overlay: {done.stderr.strip()}")
    for namespace, what in (
        (SERVING, ("--for=condition=Programmed", "gateway/seatrial")),
        (WORKFLOWS, ("--for=jsonpath={.data.token}", "secret/seatrial-executor.service-account-token")),
    ):
        taken = kubectl.run("-n", namespace, "wait", *what, "--timeout=60s")
        if taken.returncode != 0:
            raise Unavailable(f"{what[1]} in {namespace} is not taken in: {taken.stderr.strip()}")
    return done.stdout.splitlines()


def program(beside: Path) -> str:
    """Kubectl on PATH, else in the cluster's own folder of programs.

    Raises:
        InvalidInput: It is in neither.
    """
    found = shutil.which("kubectl") or shutil.which("kubectl", path=str(beside))
    if found is None:
        raise InvalidInput(f"kubectl is neither on PATH nor in {beside}: run `python -m infra.cluster build`")
    return found
