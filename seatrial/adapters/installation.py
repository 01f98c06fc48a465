"""A seatrial that is installed on a cluster, as a person with a kubeconfig finds it: with that person's own rights."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kubernetes import client, config

from seatrial.adapters import kubernetes
from seatrial.adapters.kubernetes import Cluster, translating
from seatrial.adapters.pods import PodLogs
from seatrial.errors import InvalidInput, StepError, shortened

SERVING_NAMESPACE: Final = "SEATRIAL_NAMESPACE"
CREDENTIALS: Final = "seatrial-store-credentials"
_TIME_LIMIT_S: Final = (3.0, 15.0)
"""To connect, to answer."""


@dataclass(frozen=True)
class Installation:
    """What was found; what could not be read is told by who asks for it."""

    namespace: str
    """Of the services and routes."""
    cluster: Cluster
    pods: PodLogs
    """Of the Workflows."""
    store: Mapping[str, str] | StepError
    """Settings and credentials of the store, or why there are none."""
    gateway: Mapping[str, str] | StepError
    """Settings of the gateway, or why there are none."""


def kubeconfig(environment: Mapping[str, str] = os.environ) -> str:
    """The person's kubeconfig: KUBECONFIG, which may name several files, else ~/.kube/config."""
    return environment.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())


def contexts(path: str) -> list[str]:
    """The names of a kubeconfig's contexts, sorted.

    Raises:
        InvalidInput: There is no kubeconfig, or none that can be read.
    """
    try:
        found, _ = config.list_kube_config_contexts(config_file=path)
    except (config.ConfigException, OSError) as error:
        raise InvalidInput(f"no kubeconfig can be read at {path}: {shortened(error)}; set KUBECONFIG") from error
    return sorted(str(one["name"]) for one in found)


def find(
    context: str, namespace: str, *, path: str | None = None, environment: Mapping[str, str] = os.environ
) -> Installation:
    """The installation in a namespace of the cluster that a context names.

    Args:
        context: Of the kubeconfig.
        namespace: Of its ConfigMaps and Workflows.
        path: The kubeconfig; None: the person's.
        environment: Credentials of the store, and whatever the person knows better than the ConfigMaps, like
            SEATRIAL_GATEWAY_URL of a port that is forwarded.

    Raises:
        InvalidInput: There is no such context, or seatrial is not there, or it may not be read.
        Unavailable: The API does not answer.
    """
    path = path or kubeconfig(environment)
    known = contexts(path)
    if context not in known:
        raise InvalidInput(f"the kubeconfig has no context {shortened(context)!r}; it has {', '.join(known) or 'none'}")
    core = client.CoreV1Api(kubernetes.api_client(path, context))
    settings = _config_map(core, namespace, "seatrial-cluster")
    serving = settings.get(SERVING_NAMESPACE, "")
    if not serving:
        raise InvalidInput(f"the ConfigMap seatrial-cluster in namespace {namespace} lacks {SERVING_NAMESPACE}")
    return Installation(
        namespace=serving,
        cluster=kubernetes.connect(serving, path, workflows_namespace=namespace, context=context),
        pods=PodLogs(core, namespace),
        store=_or_why(lambda: _store(core, namespace, environment)),
        gateway=_or_why(lambda: _gateway(core, namespace, serving, environment)),
    )


def _or_why(read: Any) -> Mapping[str, str] | StepError:  # noqa: ANN401 - a function without arguments
    try:
        found: Mapping[str, str] = read()
    except StepError as error:
        return error
    return found


def _store(core: Any, namespace: str, environment: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ANN401
    settings = _config_map(core, namespace, "seatrial-store")
    given = {name: value for name, value in environment.items() if name.startswith(("AWS_", "SEATRIAL_STORE"))}
    if "AWS_ACCESS_KEY_ID" in given or "AWS_PROFILE" in given:
        return {**settings, **given}
    try:
        return {**settings, **_secret(core, namespace, CREDENTIALS), **given}
    except InvalidInput as error:
        raise InvalidInput(
            "the store is not seen, so ledger, outcomes and papers are not known: AWS_ACCESS_KEY_ID and "
            f"AWS_SECRET_ACCESS_KEY are not set here, and the Secret {CREDENTIALS} is not there or not yours to read"
        ) from error


def _gateway(core: Any, namespace: str, serving: str, environment: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ANN401
    settings = _config_map(core, namespace, "seatrial-gateway")
    given = {name: value for name, value in environment.items() if name.startswith("SEATRIAL_GATEWAY_")}
    return {**settings, **given, SERVING_NAMESPACE: serving}


def _config_map(core: Any, namespace: str, name: str) -> Mapping[str, str]:  # noqa: ANN401
    found = _read(core.read_namespaced_config_map, namespace, name, f"ConfigMap {name}")
    return dict(found.data or {})


def _secret(core: Any, namespace: str, name: str) -> Mapping[str, str]:  # noqa: ANN401
    found = _read(core.read_namespaced_secret, namespace, name, f"Secret {name}")
    try:
        return {key: base64.b64decode(value).decode() for key, value in (found.data or {}).items()}
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"the Secret {name} in namespace {namespace} holds no text") from error


def _read(call: Any, namespace: str, name: str, what: str) -> Any:  # noqa: ANN401 - the client's own
    """The object.

    Raises:
        InvalidInput: It is not there, or may not be read.
    """
    with translating(f"read {what}"):
        try:
            return call(name=name, namespace=namespace, _request_timeout=_TIME_LIMIT_S)
        except client.ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    raise InvalidInput(
        f"there is no {what} in namespace {namespace}: seatrial is not installed there, or in another --namespace"
    )
