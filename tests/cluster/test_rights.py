"""Each account's own token: its verbs work, and one verb beyond is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from kubernetes import client, config
from real_cluster import RealCluster, until
from rights import GROUPS, OPERATOR, RIGHTS, SERVING, VIEWER, WORKFLOWS, Verbs

from seatrial.adapters import kubernetes
from seatrial.adapters.kubernetes import Cluster
from seatrial.errors import Conflict, InvalidInput

VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
NOWHERE: Final = "default"
EVERYBODYS: Final = {"authorization.k8s.io", "authentication.k8s.io"}
"""Whoever has a name may ask the API server what they may do."""


def token(cluster: RealCluster, account: str) -> str:
    return cluster.kubectl("-n", WORKFLOWS, "create", "token", f"seatrial-{account}").strip()


def as_token(cluster: RealCluster, account: str, folder: Path) -> Path:
    """A kubeconfig that holds nothing but the account's token."""
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in document["users"]:
        user["user"] = {"token": token(cluster, account)}
    path = folder / f"{account}.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def reviewer(kubeconfig: Path) -> client.AuthorizationV1Api:
    settings = client.Configuration()
    config.load_kube_config(config_file=str(kubeconfig), client_configuration=settings)
    return client.AuthorizationV1Api(client.ApiClient(settings))


def rules(api: client.AuthorizationV1Api, namespace: str) -> Verbs:
    """Resource → verbs of all that the API server allows for any name."""
    review = api.create_self_subject_rules_review({"spec": {"namespace": namespace}})
    found: Verbs = {}
    for rule in review.status.resource_rules:
        if not rule.resource_names and not EVERYBODYS & set(rule.api_groups or ()):
            for resource in rule.resources:
                found.setdefault(resource, set()).update(rule.verbs)
    return found


def may(api: client.AuthorizationV1Api, namespace: str, resource: str, verb: str) -> bool:
    """The API server's answer to one question."""
    name, _, part = resource.partition("/")
    attributes = {"namespace": namespace, "group": GROUPS[name], "resource": name, "subresource": part, "verb": verb}
    review = api.create_self_subject_access_review({"spec": {"resourceAttributes": attributes}})
    return bool(review.status.allowed)


def hold(api: client.AuthorizationV1Api, rights: Mapping[str, Verbs]) -> None:
    """These rights and no more: each verb of the table is allowed, one verb beyond is not."""
    for namespace in (WORKFLOWS, SERVING, NOWHERE):
        table = rights.get(namespace, {})
        assert rules(api, namespace) == table
        for resource, verbs in table.items():
            beyond = next(verb for verb in VERBS if verb not in verbs)
            assert {verb for verb in (*verbs, beyond) if may(api, namespace, resource, verb)} == verbs
        for resource in ("secrets", "pods", "httproutes", "inferenceservices"):
            assert may(api, namespace, resource, "get") is ("get" in table.get(resource, ()))


@pytest.mark.parametrize("account", RIGHTS)
def test_an_account_may_do_what_its_table_says_and_no_verb_more(
    account: str, cluster: RealCluster, tmp_path: Path
) -> None:
    hold(reviewer(as_token(cluster, account, tmp_path)), RIGHTS[account])


@pytest.mark.parametrize(
    ("group", "rights"), [("seatrial:viewers", VIEWER), ("seatrial:operators", OPERATOR), ("others", {})]
)
def test_a_person_may_do_what_the_group_may(group: str, rights: dict[str, Verbs], cluster: RealCluster) -> None:
    api = reviewer(cluster.kubeconfig)
    api.api_client.set_default_header("Impersonate-User", "somebody")
    api.api_client.set_default_header("Impersonate-Group", group)
    hold(api, rights)


def test_a_person_reads_the_settings_by_name_and_no_secret(cluster: RealCluster) -> None:
    person = ("--as=somebody", "--as-group=seatrial:operators", "-n", WORKFLOWS)
    assert "SEATRIAL_NAMESPACE" in cluster.kubectl(*person, "get", "configmap", "seatrial-cluster", "-o", "yaml")
    assert "forbidden" in cluster.kubectl(*person, "get", "configmaps", fine=False)
    assert "forbidden" in cluster.kubectl(*person, "get", "secret", "seatrial-store-credentials", fine=False)


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Whatever is in the block is beyond the account's rights."""
    with pytest.raises(InvalidInput, match=r"\(403\).*forbidden"):
        yield


ROUTE: Final[dict[str, Any]] = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "rights-of-nobody", "namespace": SERVING},
    "spec": {
        "parentRefs": [{"name": "seatrial"}],
        "rules": [{"backendRefs": [{"name": "rights-of-nobody-v1-predictor", "port": 80}]}],
    },
}


def resolves(cluster: Cluster) -> None:
    assert cluster.routes.get("rights-of-nobody") is None
    with refused():
        cluster.routes.create(ROUTE)


def replaced(cluster: Cluster) -> bool:
    """Whether the route was; false: the gateway wrote its status in between."""
    found = cluster.routes.get("rights-of-nobody")
    assert found is not None
    try:
        cluster.routes.replace("rights-of-nobody", {}, resource_version=found["metadata"]["resourceVersion"])
    except Conflict:
        return False
    return True


def deploys(cluster: Cluster) -> None:
    cluster.routes.create(ROUTE)
    until(lambda: replaced(cluster), 20, "a route that nobody else changes")
    cluster.services.delete("rights-of-nobody-v1")
    assert cluster.services.get("rights-of-nobody-v1") is None
    with refused():
        cluster.services.names("rights_of_nobody")


def runs_a_canary(cluster: Cluster) -> None:
    with pytest.raises(Conflict, match="gone"):  # it may patch; there is nothing to patch
        cluster.routes.replace("rights-of-nobody-else", {}, resource_version="1")
    with refused():
        cluster.services.get("rights-of-nobody-v1")
    with refused():
        cluster.workflows.get("rights-of-nobody")


def settles(cluster: Cluster) -> None:
    assert cluster.workflows.get("rights-of-nobody") is None
    assert cluster.services.names("rights_of_nobody") == []
    cluster.services.delete("rights-of-nobody-v1")
    with refused():
        cluster.services.get("rights-of-nobody-v1")
    with refused():
        cluster.workflows.living()


def sweeps(cluster: Cluster) -> None:
    cluster.workflows.living()
    cluster.routes.models()
    cluster.services.models()
    with refused():
        cluster.routes.create(ROUTE)
    with refused():
        cluster.workflows.get("rights-of-nobody")
    with refused():
        cluster.workflows.create({"metadata": {"generateName": "x-"}})


def trains(cluster: Cluster) -> None:
    with refused():
        cluster.routes.get("rights-of-nobody")
    with refused():
        cluster.workflows.get("rights-of-nobody")


@pytest.mark.parametrize(
    ("account", "does"),
    [
        ("resolve-release", resolves),
        ("deploy-model", deploys),
        ("run-canary", runs_a_canary),
        ("settle-release", settles),
        ("settle", sweeps),
        ("train-model", trains),
        ("package-model", trains),
        ("executor", trains),
    ],
)
def test_the_calls_of_a_step_work_and_one_beyond_does_not(
    account: str, does: Callable[[Cluster], None], cluster: RealCluster, tmp_path: Path
) -> None:
    kubeconfig = as_token(cluster, account, tmp_path)
    try:
        does(kubernetes.connect(SERVING, str(kubeconfig), workflows_namespace=WORKFLOWS))
    finally:
        cluster.kubectl("-n", SERVING, "delete", "httproute", "rights-of-nobody", "--ignore-not-found")


def test_the_executor_tells_what_came_out_and_reads_nothing(cluster: RealCluster, tmp_path: Path) -> None:
    settings = client.Configuration()
    config.load_kube_config(config_file=str(as_token(cluster, "executor", tmp_path)), client_configuration=settings)
    api = client.CustomObjectsApi(client.ApiClient(settings))
    where = {"group": "argoproj.io", "version": "v1alpha1", "namespace": WORKFLOWS, "plural": "workflowtaskresults"}
    name = "rights-of-nobody"
    result = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult", "metadata": {"name": name}, "message": "a"
    }  # fmt: skip
    try:
        api.create_namespaced_custom_object(**where, body=result)
        api.patch_namespaced_custom_object(
            **where, name=name, body={"message": "b"}, _content_type="application/merge-patch+json"
        )
        for call in (api.get_namespaced_custom_object, api.delete_namespaced_custom_object):
            with pytest.raises(client.ApiException, match="forbidden"):
                call(**where, name=name)
    finally:
        cluster.kubectl("-n", WORKFLOWS, "delete", "workflowtaskresult", name, "--ignore-not-found")


def test_the_executors_token_is_the_one_in_the_secret(cluster: RealCluster) -> None:
    secret = cluster.object("secret", "seatrial-executor.service-account-token", WORKFLOWS)
    assert secret is not None
    assert {"token", "ca.crt", "namespace"} <= secret["data"].keys()
