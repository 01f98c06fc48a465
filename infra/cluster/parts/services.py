"""What the pipelines need beside Kubernetes: registry, object store, MLflow, KServe's controller and the gateway."""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path

from infra.cluster import health
from infra.cluster.build import Programs
from infra.cluster.packages import which
from infra.cluster.parts.part import Part, flags, supervised, write
from infra.cluster.places import (
    BUCKET,
    CHECKOUT,
    GATEWAY_METRICS,
    NODE_ADDRESS,
    REGISTRY,
    S3,
    TRACKING,
    Place,
)
from seatrial.app.sandbox.programs import QUIET, traefik
from seatrial.errors import InvalidInput

WEBHOOK_URL = "https://127.0.0.1:19443"
_KSERVE_HEALTH = "127.0.0.1:18081"


def registry(place: Place, programs: Programs) -> Part:
    """Debian's docker-registry, over plain http; what is in it may be deleted."""
    config = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": f"{place.data}/registry"}, "delete": {"enabled": True}},
        "http": {"addr": REGISTRY},
    }
    file = write(place.config / "registry.json", json.dumps(config, indent=1))
    command = (programs.program("docker-registry", "usr/bin/docker-registry"), "serve", str(file))
    return Part(
        program=supervised(place, "registry", command), healthy=lambda: health.answers(f"http://{REGISTRY}/v2/")
    )


def object_store(place: Place) -> Part:
    """SeaweedFS. The S3 API on its own port; its servers talk to each other on the inner ones."""
    inner = ["s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc"]
    inner += ["filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc"]
    folder = place.data / "s3"
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "dir": folder,
        "ip": NODE_ADDRESS,
        "ip.bind": NODE_ADDRESS,
        "bucket": BUCKET,
        "master.telemetry": "false",
        "admin.ui": "false",
        "webdav": "false",
        "s3.iam": "false",
        "s3.port": S3.rpartition(":")[2],
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        **{name: place.inner_port + offset for offset, name in enumerate(inner)},
        "filer.localSocket": place.run / "filer.sock",
        "s3.localSocket": place.run / "s3.sock",
    }
    command = (_beside_python("weed"), "mini", *flags(values, "-"))
    return Part(
        # It does not care for SIGTERM in good time, and what it took is on the disk.
        program=supervised(place, "s3", command, stop_s=3, **QUIET, **store_credentials(place)),
        healthy=lambda: health.answers(f"{S3}/healthz"),
    )


def store_sockets(place: Place) -> list[Path]:
    """The sockets that SeaweedFS leaves in /tmp, where they are named by its ports."""
    ports = range(place.inner_port, place.inner_port + 10)
    return [path for port in ports for path in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock")]  # noqa: S108


def store_credentials(place: Place) -> dict[str, str]:
    """The one identity that the object store knows; made on the first call and kept."""
    path = place.secrets / "store.json"
    if not path.exists():
        place.secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        pair = {"AWS_ACCESS_KEY_ID": "seatrial", "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20)}
        path.write_text(json.dumps(pair))
    return {str(name): str(value) for name, value in json.loads(path.read_text()).items()}


def tracking(place: Place) -> Part:
    """MLflow in one process."""
    folder = place.data / "mlflow"
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "database": folder / "mlflow.db",
        "artifacts": folder / "artifacts",
        "host": NODE_ADDRESS,
        "port": TRACKING.rpartition(":")[2],
    }
    command = (sys.executable, "-m", "seatrial.app.sandbox.mlflow_server", *flags(values))
    surroundings = {
        **QUIET,
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUNBUFFERED": "1",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    return Part(
        program=supervised(place, "mlflow", command, stop_s=3, **surroundings),
        healthy=lambda: health.answers(f"{TRACKING}/health"),
    )


def kserve(place: Place, programs: Programs) -> Part:
    """KServe's controller with its webhooks. Where they find their certificate is fixed beneath $TMPDIR."""
    tmp = place.config / "kserve"
    certificates = tmp / "k8s-webhook-server" / "serving-certs"
    certificates.mkdir(parents=True, exist_ok=True, mode=0o700)
    for suffix in ("crt", "key"):
        target = certificates / f"tls.{suffix}"
        if not target.is_symlink():
            target.symlink_to(place.pki / f"kserve-webhook.{suffix}")
    values = {
        "metrics-addr": "127.0.0.1:18080",
        "webhook-port": WEBHOOK_URL.rpartition(":")[2],
        "health-probe-addr": _KSERVE_HEALTH,
    }
    surroundings = {
        "KUBECONFIG": str(place.config / "kserve.kubeconfig"),
        "POD_NAMESPACE": "kserve",
        "TMPDIR": str(tmp),
    }
    command = (programs.program("kserve", "kserve-manager"), *flags(values))
    return Part(
        program=supervised(place, "kserve", command, stop_s=3, **surroundings),
        healthy=lambda: health.answers(f"http://{_KSERVE_HEALTH}/readyz"),
    )


def gateway(place: Place) -> Part:
    """Traefik as implementation of the Gateway API; the listener's port is the entry point's."""
    provider = {
        "kubernetesgateway": "true",
        "kubernetesgateway.statusaddress.ip": NODE_ADDRESS,
        "providersthrottleduration": "100ms",
    }
    values = traefik(f"{NODE_ADDRESS}:8000", f"{NODE_ADDRESS}:8082", provider)
    command = (_beside_python("traefik"), *flags(values))
    surroundings = {**QUIET, "KUBECONFIG": str(place.config / "traefik.kubeconfig")}
    return Part(
        program=supervised(place, "traefik", command, stop_s=3, **surroundings),
        healthy=lambda: health.answers(f"{GATEWAY_METRICS}/ping"),
    )


def _beside_python(name: str) -> str:
    """A program that came with the environment that this Python runs in, or stands on PATH."""
    beside = Path(sys.executable).with_name(name)
    if os.access(beside, os.X_OK):
        return str(beside)
    found = which(name)
    if found is None:
        raise InvalidInput(f"the program {name} is missing: looked beside {sys.executable} and on PATH; run `make run`")
    return found
