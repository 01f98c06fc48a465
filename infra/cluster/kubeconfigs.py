"""Kubeconfigs: one file each, with all that a client needs in it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from infra.cluster.places import API, CONTEXT, Place


def kubeconfig(pki: Path, user: str) -> dict[str, Any]:
    """The kubeconfig of the certificate `user` in the folder `pki`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [
            {"name": CONTEXT, "cluster": {"server": API, "certificate-authority-data": _data(pki / "ca.crt")}}
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _data(pki / f"{user}.crt"),
                    "client-key-data": _data(pki / f"{user}.key"),
                },
            }
        ],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user, "namespace": "seatrial"}}],
    }


def write_all(place: Place) -> None:
    """The administrator's for people, one for each part that calls the API. JSON, which is YAML too."""
    for user in ("kubelet", "controller-manager", "scheduler", "proxy", "kserve", "traefik"):
        _write(place.config / f"{user}.kubeconfig", kubeconfig(place.pki, user))
    _write(place.kubeconfig, kubeconfig(place.pki, "admin"))


def _write(path: Path, content: dict[str, Any]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.rename(path)


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
