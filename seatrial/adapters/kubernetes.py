"""InferenceServices, HTTPRoutes and Workflows over the Kubernetes API; locally over the sandbox's control API.

Every call has a time limit and no hidden retry: the caller knows whether trying again is right.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import urllib3
from kubernetes import client, config

from seatrial.adapters.argo import ArgoWorkflows, WorkflowTemplates
from seatrial.errors import Conflict, IntegrityError, InvalidInput, StepError, Unavailable, shortened
from seatrial.names import kebab
from seatrial.ports import Manifest

MODEL_LABEL: Final = "seatrial.dev/model"
"""On every InferenceService of ours: the model's name in kebab case."""

_TIME_LIMIT_S: Final = (3.0, 15.0)
"""To connect, to answer."""

_SERVICES: Final = ("serving.kserve.io", "v1beta1", "inferenceservices")
_ROUTES: Final = ("gateway.networking.k8s.io", "v1", "httproutes")
_WORKFLOWS: Final = ("argoproj.io", "v1alpha1", "workflows")
_TEMPLATES: Final = ("argoproj.io", "v1alpha1", "workflowtemplates")
_NAMESPACES: Final = ("SEATRIAL_NAMESPACE", "SEATRIAL_WORKFLOWS_NAMESPACE")
_MERGE_PATCH: Final = "application/merge-patch+json"


@dataclass(frozen=True)
class Cluster:
    """The ports; services and routes lie in one namespace, Workflows and their templates may lie in another."""

    namespace: str
    """Of the services and routes."""
    services: InferenceServices
    routes: HttpRoutes
    workflows: ArgoWorkflows
    templates: WorkflowTemplates


def from_environment(environment: Mapping[str, str] = os.environ) -> Cluster:
    """The cluster of KUBECONFIG, else the one that this pod runs in.

    Services and routes are those of SEATRIAL_NAMESPACE, Workflows those of SEATRIAL_WORKFLOWS_NAMESPACE.

    Raises:
        InvalidInput: A namespace is not set, or neither a kubeconfig nor a service account is there.
    """
    namespaces = [environment.get(name, "") for name in _NAMESPACES]
    missing = [name for name, value in zip(_NAMESPACES, namespaces, strict=True) if not value]
    if missing:
        raise InvalidInput(f"{', '.join(missing)} not set; they come from the ConfigMap seatrial-cluster")
    serving, workflows = namespaces
    return connect(serving, environment.get("KUBECONFIG") or None, workflows_namespace=workflows)


def replicas_min() -> int:
    """Fewest pods of a version here, whatever its spec says, from SEATRIAL_REPLICAS_MIN.

    Raises:
        InvalidInput: It is not set, or no positive number.
    """
    text = os.environ.get("SEATRIAL_REPLICAS_MIN", "")
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise InvalidInput(f"SEATRIAL_REPLICAS_MIN must be 1 or more; got {shortened(repr(text))}")
    return int(text)


def connect(
    namespace: str, kubeconfig: str | None, *, workflows_namespace: str | None = None, context: str | None = None
) -> Cluster:
    """The cluster that `kubeconfig` names; without one, the cluster that this pod runs in.

    Args:
        namespace: Of the services and routes.
        kubeconfig: A file.
        workflows_namespace: Of the Workflows; None: the same one.
        context: Of the file; None: its current one.

    Raises:
        InvalidInput: The file does not lead to a cluster, or this is no pod.
    """
    api = client.CustomObjectsApi(api_client(kubeconfig, context))
    services, routes = (Resource(api, namespace, *kind) for kind in (_SERVICES, _ROUTES))
    workflows, templates = (Resource(api, workflows_namespace or namespace, *kind) for kind in (_WORKFLOWS, _TEMPLATES))
    return Cluster(
        namespace,
        InferenceServices(services),
        HttpRoutes(routes),
        ArgoWorkflows(workflows),
        WorkflowTemplates(templates),
    )


def api_client(kubeconfig: str | None, context: str | None = None) -> client.ApiClient:
    """The way to the API.

    Raises:
        InvalidInput: The file does not lead to a cluster, or this is no pod.
    """
    settings = client.Configuration()
    try:
        if kubeconfig:
            config.load_kube_config(config_file=kubeconfig, context=context, client_configuration=settings)
        else:
            config.load_incluster_config(client_configuration=settings)
    except (config.ConfigException, OSError) as error:
        raise InvalidInput(f"no way to the Kubernetes API: {shortened(error)}; set KUBECONFIG") from error
    settings.retries = False
    return client.ApiClient(settings)


class InferenceServices:
    """The port `Services`."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def get(self, name: str) -> Manifest | None:
        """The object; None when there is none."""
        return self._resource.get(name)

    def create(self, manifest: Manifest) -> None:
        """Create; the same object already there is fine.

        Raises:
            IntegrityError: Another object has the name.
        """
        name = manifest["metadata"]["name"]
        try:
            self._resource.create(manifest)
        except Conflict as error:
            found = self._resource.get(name)
            if found is None:
                raise Unavailable(f"InferenceService {name} was there and is gone; try again") from error
            if not contains(found, manifest):
                raise IntegrityError(
                    f"an InferenceService {name} with other contents is there already; a version is made once: "
                    "look who made it, and delete it if nobody needs it"
                ) from error

    def delete(self, name: str) -> None:
        """Delete; nothing there is fine."""
        self._resource.delete(name)

    def names(self, model_name: str) -> list[str]:
        """The services of a model's versions."""
        return sorted(name_of(item) for item in self._resource.items(f"{MODEL_LABEL}={kebab(model_name)}"))

    def models(self) -> list[str]:
        """The models that have a service, sorted."""
        return _models(self._resource.items())


class HttpRoutes:
    """The port `Routes`."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def get(self, name: str) -> Manifest | None:
        """The object; None when there is none."""
        return self._resource.get(name)

    def models(self) -> list[str]:
        """The models that have a route, sorted."""
        return _models(self._resource.items())

    def create(self, manifest: Manifest) -> None:
        """Create. Raises Conflict when the name is taken."""
        self._resource.create(manifest)

    def replace(self, name: str, patch: Manifest, *, resource_version: str) -> None:
        """Merge-patch the object read at `resource_version`. Raises Conflict when it changed since, or is gone."""
        metadata = {**patch.get("metadata", {}), "resourceVersion": resource_version}
        self._resource.patch(name, {**patch, "metadata": metadata})

    def delete(self, name: str, *, resource_version: str) -> None:
        """Delete the object read at `resource_version`. Raises Conflict when it changed since, or is gone."""
        self._resource.delete_at(name, resource_version)


class Resource:
    """One kind of object in one namespace; the only place where the client's errors are met."""

    def __init__(self, api: Any, namespace: str, group: str, version: str, plural: str) -> None:  # noqa: ANN401
        self._api = api
        self._where = {"group": group, "version": version, "namespace": namespace, "plural": plural}
        self._plural = plural

    def get(self, name: str) -> Manifest | None:
        """The object; None when there is none."""
        found: Manifest | None = self._present(self._api.get_namespaced_custom_object, name=name)
        return found

    def create(self, manifest: Manifest) -> Manifest:
        """Create. Raises Conflict when the name is taken."""
        metadata = manifest["metadata"]
        with translating(f"{self._plural}: create {metadata.get('name') or metadata.get('generateName')}"):
            made: Manifest = self._call(
                self._api.create_namespaced_custom_object, body=manifest, field_validation="Strict"
            )
            return made

    def patch(self, name: str, patch: Manifest) -> None:
        """Merge-patch. Raises Conflict when it changed since, or is gone."""
        patching = self._api.patch_namespaced_custom_object
        with translating(f"{self._plural}: patch {name}", gone_is_conflict=True):
            self._call(patching, name=name, body=patch, field_validation="Strict", _content_type=_MERGE_PATCH)

    def delete(self, name: str) -> None:
        """Delete; nothing there is fine."""
        self._present(self._api.delete_namespaced_custom_object, name=name)

    def delete_at(self, name: str, resource_version: str) -> None:
        """Delete what was read at `resource_version`. Raises Conflict when it changed since, or is gone."""
        options = {"preconditions": {"resourceVersion": resource_version}}
        with translating(f"{self._plural}: delete {name}", gone_is_conflict=True):
            self._call(self._api.delete_namespaced_custom_object, name=name, body=options)

    def items(self, selector: str = "") -> list[Manifest]:
        """Every object whose labels the selector likes; without one every object."""
        with translating(f"{self._plural}: list {selector}".rstrip()):
            found = self._call(
                self._api.list_namespaced_custom_object, **({"label_selector": selector} if selector else {})
            )
            items: list[Manifest] = found["items"]
            return items

    def _present(self, call: Callable[..., Any], *, name: str) -> Any:  # noqa: ANN401 - the client's answer
        """The call's answer; None when there is no such object."""
        with translating(f"{self._plural}: get or delete {name}"):
            try:
                return self._call(call, name=name)
            except client.ApiException as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return None
                raise

    def _call(self, call: Callable[..., Any], **arguments: object) -> Any:  # noqa: ANN401
        return call(**self._where, **arguments, _request_timeout=_TIME_LIMIT_S)


@contextmanager
def translating(what: str, *, gone_is_conflict: bool = False) -> Iterator[None]:
    """The client's errors as ours, inside the block."""
    try:
        yield
    except client.ApiException as error:
        if gone_is_conflict and error.status == HTTPStatus.NOT_FOUND:
            raise Conflict(f"{what}: it is gone since it was read") from error
        raise translated(error, what) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unavailable(f"the Kubernetes API does not answer ({what}): {shortened(error)}") from error


def translated(error: client.ApiException, what: str) -> StepError:
    """The API's answer as one of our errors, by its HTTP status."""
    status, said = int(error.status or 0), shortened(_message(error))
    if status == HTTPStatus.CONFLICT:
        return Conflict(f"{what}: {said}")
    if status in {0, HTTPStatus.TOO_MANY_REQUESTS} or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable(f"{what}: the Kubernetes API cannot now ({status}): {said}")
    return InvalidInput(f"{what}: the Kubernetes API refuses this ({status}): {said}")


def _message(error: client.ApiException) -> str:
    """The Status object's message, else whatever came."""
    body = error.body or error.reason or ""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return str(parsed.get("message", text)) if isinstance(parsed, dict) else text


def name_of(manifest: Manifest) -> str:
    """The object's name."""
    return str(manifest["metadata"]["name"])


def _models(items: list[Manifest]) -> list[str]:
    """The models that objects of ours are labelled with; those of others bear no such label."""
    labels = (item["metadata"].get("labels", {}).get(MODEL_LABEL) for item in items)
    return sorted({label.replace("-", "_") for label in labels if label})


def contains(whole: object, part: object) -> bool:
    """Whether `whole` says everything that `part` says; the API server adds defaults and its own fields."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(contains(whole.get(key), value) for key, value in part.items())
    if isinstance(part, list | tuple):
        return (
            isinstance(whole, list)
            and len(whole) == len(part)
            and all(contains(theirs, ours) for theirs, ours in zip(whole, part, strict=True))
        )
    return whole == part
