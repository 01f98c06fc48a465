"""Small serving images, written by hand into an OCI layout: a model that multiplies; its answer tells which it is."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODEL = "doubler"

CONFIG = """\
name: "doubler"
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching { }
"""


def onnx_model(factor: float) -> bytes:
    """y = factor · x, opset 17, IR 8."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "factor"], ["y"])],
        "multiply",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])],
        [numpy_helper.from_array(np.array([factor], dtype=np.float32), "factor")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def model_files(version: int, factor: float) -> dict[str, bytes]:
    """The files of one version's image."""
    return {
        f"models/{MODEL}/config.pbtxt": CONFIG.encode(),
        f"models/{MODEL}/{version}/model.onnx": onnx_model(factor),
    }


def layer(files: dict[str, bytes]) -> bytes:
    """A gzipped tar of `files`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), mtime=0)


def write_blob(layout: Path, data: bytes) -> dict[str, Any]:
    """Put a blob; the descriptor's digest and size."""
    digest = hashlib.sha256(data).hexdigest()
    path = layout / "blobs" / "sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def write_image(layout: Path, *layers: dict[str, bytes], labels: dict[str, str] | None = None) -> str:
    """Write an image of these layers; its manifest's digest."""
    about = {"os": "linux", "architecture": "amd64", "n": len(layers), "config": {"Labels": labels}}
    config = write_blob(layout, json.dumps(about).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
        "layers": [
            {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **write_blob(layout, layer(files))}
            for files in layers
        ],
    }
    return str(write_blob(layout, json.dumps(manifest).encode())["digest"])


def service(
    version: int,
    digest: str,
    *,
    replicas: int = 1,
    memory: str = "1Gi",
    node_selector: dict[str, str] | None = None,
    namespace: str = "seatrial",
) -> dict[str, Any]:
    """An InferenceService as deploy_model makes it."""
    probe = {"httpGet": {"path": f"/v2/models/{MODEL}/versions/{version}/ready", "port": 8080}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": f"{MODEL}-v{version}",
            "namespace": namespace,
            "labels": {"seatrial.dev/model": MODEL, "networking.kserve.io/visibility": "cluster-local"},
            "annotations": {
                "serving.kserve.io/deploymentMode": "Standard",
                "serving.kserve.io/autoscalerClass": "none",
            },
        },
        "spec": {
            "predictor": {
                "minReplicas": replicas,
                "serviceAccountName": "seatrial-serving",
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 30,
                "nodeSelector": node_selector or {},
                "containers": [
                    {
                        "name": "kserve-container",
                        "image": f"localhost/seatrial/{MODEL}@{digest}",
                        "args": [
                            "--model-repository=/models",
                            "--model-control-mode=explicit",
                            "--load-model=*",
                            "--strict-readiness=true",
                            "--http-port=8080",
                            "--grpc-port=9000",
                            "--metrics-port=8002",
                            "--exit-timeout-secs=5",
                        ],
                        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                        "resources": {
                            "requests": {"cpu": "1", "memory": memory},
                            "limits": {"cpu": "1", "memory": memory},
                        },
                        "startupProbe": {**probe, "periodSeconds": 1, "failureThreshold": 60},
                        "readinessProbe": {**probe, "periodSeconds": 1, "failureThreshold": 2},
                        "livenessProbe": {
                            "httpGet": {"path": "/v2/health/live", "port": 8080},
                            "periodSeconds": 5,
                            "failureThreshold": 3,
                        },
                        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
                    }
                ],
            }
        },
    }


def route(weights: dict[int, int], *, candidate: int | None = None, namespace: str = "seatrial") -> dict[str, Any]:
    """An HTTPRoute: version → weight, and the version that the header reaches."""
    path = {"path": {"type": "PathPrefix", "value": f"/v2/models/{MODEL}"}}
    header = {"headers": [{"type": "Exact", "name": "x-seatrial-arm", "value": "canary"}]}
    direct = [{"matches": [{**path, **header}], "backendRefs": [backend(candidate, 1)]}] if candidate else []
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": MODEL, "namespace": namespace, "annotations": {"seatrial.dev/owner": "a-release"}},
        "spec": {
            "parentRefs": [{"name": "seatrial"}],
            "rules": [
                *direct,
                {"matches": [path], "backendRefs": [backend(version, weight) for version, weight in weights.items()]},
            ],
        },
    }


def backend(version: int, weight: int) -> dict[str, Any]:
    """One backendRef."""
    return {"name": f"{MODEL}-v{version}-predictor", "port": 80, "weight": weight}


def request(x: float) -> bytes:
    """A request body."""
    return json.dumps({"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [x]}]}).encode()
