"""The overlay's files: what an operator writes by hand for a cluster of their own. Facts in, texts out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from infra.install.facts import CHECKOUT, SERVING_BASE, SOURCE, Facts
from seatrial.app.sandbox.environment import public_key

BASE: Final = CHECKOUT / "infra" / "overlays" / "dev"
IMAGE_FIELDS: Final = CHECKOUT / "infra" / "overlays" / "prod" / "image-fields.yaml"
ARTIFACTS: Final = CHECKOUT / "infra" / "base" / "workflows" / "artifacts.yaml"
HEADER: Final = "# Written by `python -m infra.install`.\n"
WORKFLOWS: Final = "seatrial"
SERVING: Final = "seatrial-serving"
SECRETS: Final = "secrets.yaml"
"""The one file that only its owner may read."""

Object = dict[str, Any]


def files(facts: Facts, folder: Path) -> dict[str, str]:
    """Name → text of every file of the overlay.

    Args:
        facts: Of the cluster.
        folder: Where the overlay will lie; kustomize takes relative paths only.
    """
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(BASE, folder), SECRETS],
        "patches": [{"path": "settings.yaml"}, {"path": "network.yaml"}],
        "configurations": [IMAGE_FIELDS.name],
        "images": [
            {"name": name, "newName": image.repository, "digest": image.digest}
            for name, image in sorted(facts.images.items())
        ],
    }
    return {
        "kustomization.yaml": _text([kustomization]),
        IMAGE_FIELDS.name: IMAGE_FIELDS.read_text(encoding="utf-8"),
        "settings.yaml": _text(settings(facts)),
        "network.yaml": _text(network(facts)),
        SECRETS: _text(secrets(facts)),
    }


def settings(facts: Facts) -> list[Object]:
    """The ConfigMaps of the steps, with this cluster's values."""
    at = facts.addresses
    values = {
        "seatrial-store": {"SEATRIAL_STORE": f"s3://{at.bucket}", "AWS_ENDPOINT_URL_S3": at.store},
        "seatrial-gateway": {
            "SEATRIAL_GATEWAY_URL": at.gateway,
            "SEATRIAL_GATEWAY_METRICS_URL": f"{at.gateway_metrics}/metrics",
        },
        "seatrial-tracking": {"MLFLOW_TRACKING_URI": at.tracking},
        "seatrial-trusted-keys": {"SEATRIAL_TRUSTED_KEYS": public_key(facts.signing_key)},
        "seatrial-registry": {
            # Apart from the steps' own images: a model may have any name.
            "SEATRIAL_REGISTRY": f"{at.registry}/models",
            "SEATRIAL_SERVING_BASE": facts.images[SERVING_BASE].pinned,
        },
        "seatrial-source": {SOURCE: facts.source.get(SOURCE, ""), "SEATRIAL_STEP_IMAGES": facts.step_images},
        "artifact-repositories": {"store": artifacts(facts)},
    }
    return [_config_map(name, data) for name, data in values.items()]


def artifacts(facts: Facts) -> str:
    """The base's artifact repository with this cluster's bucket; its keys and credentials stay as they are."""
    repository = yaml.safe_load(yaml.safe_load(ARTIFACTS.read_text(encoding="utf-8"))["data"]["store"])
    place = urlsplit(facts.addresses.store)
    repository["s3"] |= {
        "bucket": facts.addresses.bucket,
        "endpoint": place.netloc,
        "region": "us-east-1",
        "insecure": place.scheme == "http",
    }
    return yaml.safe_dump(repository, sort_keys=False)


def network(facts: Facts) -> list[Object]:
    """Everything beside the cluster has the node's address here."""
    at = facts.addresses
    ports = {
        "to-api-server": (at.api_port,),
        "to-store": (_port(at.store),),
        "to-tracking": (_port(at.tracking),),
        "to-registry": (_port(f"//{at.registry}"),),
        "to-gateway": (_port(at.gateway), _port(at.gateway_metrics)),
    }
    node = [{"ipBlock": {"cidr": f"{at.node}/32"}}]
    outwards = [
        _policy(name, WORKFLOWS, {"egress": [{"to": node, "ports": [_tcp(port) for port in of]}]})
        for name, of in ports.items()
    ]
    git = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "seatrial-git"}}}
    source = {"egress": [{"to": [git], "ports": [_tcp(2222), _tcp(8080)]}]}
    inwards = _policy("from-gateway", SERVING, {"ingress": [{"from": node, "ports": [_tcp(8080)]}]})
    return [*outwards, _policy("to-source", WORKFLOWS, source), inwards]


def secrets(facts: Facts) -> list[Object]:
    """What an operator makes with `kubectl create secret`."""
    access = {name: value for name, value in facts.source.items() if name != SOURCE}
    values = {
        "seatrial-store-credentials": dict(facts.store_credentials),
        "seatrial-signing-key": {"SEATRIAL_SIGNING_KEY": facts.signing_key},
        **({"seatrial-source-credentials": access} if access else {}),
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": WORKFLOWS},
            "type": "Opaque",
            "stringData": data,
        }
        for name, data in values.items()
    ]


def _config_map(name: str, data: Mapping[str, str]) -> Object:
    metadata = {"name": name, "namespace": WORKFLOWS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def _policy(name: str, namespace: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _tcp(port: int) -> Object:
    return {"protocol": "TCP", "port": port}


def _port(url: str) -> int:
    place = urlsplit(url)
    return place.port or {"http": 80, "https": 443}[place.scheme]


def _text(documents: Iterable[Object]) -> str:
    return HEADER + yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120)
