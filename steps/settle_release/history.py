"""What happened, read from the Workflow object: the nodes of our templates, with their outputs and exit codes."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from seatrial.errors import Unavailable, shortened
from seatrial.ports import Manifest

_EXIT_CODE: Final = re.compile(r"^main: \w+ \(exit code \d+\)(: )?")
"""How Argo begins the message of a pod that failed; the code is kept apart. Source: inferFailedReason."""
NOT_RUN: Final = frozenset({"Skipped", "Omitted", "Pending"})


@dataclass(frozen=True, kw_only=True)
class Node:
    """How one step went, all its attempts together."""

    template: str
    phase: str
    message: str = ""
    exit_code: int | None = None
    """Of its last attempt that ended with one."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Empty when the step did not come to its end, whatever the template's defaults say."""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """Output file → key in the artifact store."""

    @property
    def succeeded(self) -> bool:
        """Whether the step came to its end."""
        return self.phase == "Succeeded"


def uid(workflow: Manifest) -> str:
    """The release's id."""
    return str(workflow["metadata"]["uid"])


def parameter(workflow: Manifest, name: str) -> str:
    """A parameter of the run: as it was submitted, else as its template has it; empty: neither."""
    stored = (workflow.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
    for spec in (workflow.get("spec") or {}, stored):
        for given in (spec.get("arguments") or {}).get("parameters") or ():
            if given.get("name") == name and given.get("value") is not None:
                return str(given["value"])
    return ""


def steps(workflow: Manifest) -> dict[str, Node]:
    """Template → how it went, of those that ran.

    Raises:
        Unavailable: The nodes are kept elsewhere or cannot be read.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for node in nodes(workflow.get("status") or {}).values():
        if node.get("type") in {"Pod", "Retry"} and node.get("phase") not in NOT_RUN:
            found.setdefault(_template(node), []).append(node)
    return {template: _joined(template, attempts) for template, attempts in found.items()}


def nodes(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """A run's nodes. Argo packs many of them, or keeps them in a database. Source: argo-workflows, workflow/packer.

    Raises:
        Unavailable: They are kept elsewhere or cannot be read.
    """
    packed = status.get("compressedNodes")
    if status.get("offloadNodeStatusVersion") and not status.get("nodes") and not packed:
        raise Unavailable("the workflow's nodes are kept in a database; turn nodeStatusOffLoad off for releases")
    if not packed:
        return dict(status.get("nodes") or {})
    try:
        unpacked: dict[str, Mapping[str, Any]] = json.loads(gzip.decompress(base64.b64decode(packed)))
    except (binascii.Error, OSError, EOFError, zlib.error, ValueError) as error:
        raise Unavailable(f"the workflow's packed nodes cannot be read: {shortened(error)}") from error
    return unpacked


def _template(node: Mapping[str, Any]) -> str:
    return str(node.get("templateName") or (node.get("templateRef") or {}).get("template", ""))


def _joined(template: str, attempts: list[Mapping[str, Any]]) -> Node:
    """A Retry node speaks for its attempts; without one the last attempt does. Exit codes stand at the attempts."""
    ordered = sorted(attempts, key=lambda node: str(node.get("finishedAt") or node.get("startedAt") or ""))
    whole = next((node for node in ordered if node.get("type") == "Retry"), ordered[-1])
    codes = [code for node in ordered if (code := (node.get("outputs") or {}).get("exitCode")) is not None]
    succeeded = whole.get("phase") == "Succeeded"
    outputs = whole.get("outputs") or {}
    return Node(
        template=template,
        phase=str(whole.get("phase")),
        message=shortened(_message(whole, [node for node in ordered if node is not whole][-1:])),
        exit_code=int(codes[-1]) if codes else None,
        inputs=_values((whole.get("inputs") or {}).get("parameters")),
        outputs=_values(outputs.get("parameters")) if succeeded else {},
        artifacts={
            str(artifact.get("name")): str((artifact.get("s3") or {}).get("key", ""))
            for artifact in outputs.get("artifacts") or ()
        },
    )


def _message(whole: Mapping[str, Any], last: list[Mapping[str, Any]]) -> str:
    """What the last attempt said; the Retry node over it only says why there was no other one."""
    return plain(next((str(node["message"]) for node in (*last, whole) if node.get("message")), ""))


def plain(message: str) -> str:
    """A node's message without the exit code, unless that is all of it."""
    return _EXIT_CODE.sub("", message) or message


def _values(parameters: list[Mapping[str, Any]] | None) -> dict[str, str]:
    return {str(p.get("name")): str(p["value"]) for p in parameters or () if p.get("value") is not None}
