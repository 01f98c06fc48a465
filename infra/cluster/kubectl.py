"""kubectl, as the administrator."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from seatrial.errors import Unavailable, shortened

_CALL_S: Final = 300
"""A busy machine takes minutes for the largest CRDs."""
_OWNER: Final = "--field-manager=seatrial-cluster"


@dataclass(frozen=True)
class Kubectl:
    """Calls one cluster; what it caches stays out of the home folder."""

    program: str
    kubeconfig: Path
    cache: Path

    def __call__(self, *arguments: str, text: str | None = None) -> str:
        """What kubectl answers.

        Raises:
            Unavailable: It failed.
        """
        surroundings = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.cache)}
        try:
            done = subprocess.run(
                [self.program, *arguments],
                input=text,
                env=surroundings,
                capture_output=True,
                text=True,
                timeout=_CALL_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"kubectl {' '.join(arguments[:3])} … did not end in {_CALL_S} s") from error
        except OSError as error:
            raise Unavailable(f"kubectl cannot be run: {error}") from error
        if done.returncode != 0:
            raise Unavailable(f"kubectl {' '.join(arguments[:3])} … failed: {shortened(done.stderr or done.stdout)}")
        return done.stdout

    def succeeds(self, *arguments: str) -> bool:
        """Whether kubectl succeeds; `wait` fails on an object that has no conditions yet, so it is asked again."""
        try:
            self(*arguments)
        except Unavailable:
            return False
        return True

    def apply(self, *what: str, text: str | None = None) -> None:
        """Apply server-side: full CRDs are too big for the annotation that the other way writes."""
        self("apply", "--server-side", "--force-conflicts", "--validate=false", _OWNER, *what, text=text)

    def apply_objects(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Apply objects as they are."""
        self.apply("-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def rendered(self, folder: Path) -> list[dict[str, Any]]:
        """The objects of a kustomization."""
        return list(yaml.load_all(self("kustomize", str(folder)), Loader=yaml.CSafeLoader))
