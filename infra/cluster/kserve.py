"""KServe's own manifests, changed for a controller beside the API server: Standard mode, Gateway API, no Istio."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

NAMESPACE: Final = "kserve"

_INGRESS: Final = {
    "enableGatewayApi": True,
    "kserveIngressGateway": "seatrial-serving/seatrial",
    "ingressDomain": "example.com",
    "disableIstioVirtualHost": True,
}


def defaults(config: Path) -> list[dict[str, Any]]:
    """The namespace and the ConfigMap that the controller reads when it starts.

    Args:
        config: KServe's folder of that name.
    """
    found = yaml.safe_load((config / "configmap" / "inferenceservice.yaml").read_text())
    data = {name: value for name, value in found["data"].items() if name != "_example"}
    data["deploy"] = json.dumps({**json.loads(data["deploy"]), "defaultDeploymentMode": "Standard"})
    data["ingress"] = json.dumps({**json.loads(data["ingress"]), **_INGRESS})
    metadata = {**found["metadata"], "namespace": NAMESPACE}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [namespace, {**found, "metadata": metadata, "data": data}]


def webhooks(config: Path, *, url: str, authority: bytes) -> list[dict[str, Any]]:
    """Every webhook of KServe, called at `url` instead of a service; `authority` is the PEM that vouches for it."""
    found = yaml.safe_load_all((config / "webhook" / "manifests.yaml").read_text())
    return by_url((document for document in found if document), url=url, authority=authority)


def by_url(documents: Iterable[Mapping[str, Any]], *, url: str, authority: bytes) -> list[dict[str, Any]]:
    """Webhook configurations with `clientConfig.service` turned into a URL of the same path."""
    bundle = base64.b64encode(authority).decode()
    return [
        {
            **document,
            "metadata": {"name": document["metadata"]["name"]},
            "webhooks": [
                {**hook, "clientConfig": {"url": url + hook["clientConfig"]["service"]["path"], "caBundle": bundle}}
                for hook in document["webhooks"]
            ],
        }
        for document in documents
    ]
