"""Who may do what: every step's account has the verbs of its adapters' calls, and none more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kustomization import BASE, documents, objects, steps, workflows
from rights import RIGHTS, SERVICES, SERVING, WORKFLOWS

from pipelines._build import EXECUTOR
from steps.deploy_model.service import SERVICE_ACCOUNT

BASE_OBJECTS = objects(BASE)


def roles_of(account: str) -> Iterator[dict[str, Any]]:
    for binding in BASE_OBJECTS.all:
        if binding["kind"] == "RoleBinding" and any(
            subject["kind"] == "ServiceAccount" and subject["name"] == f"seatrial-{account}"
            for subject in binding["subjects"]
        ):
            yield BASE_OBJECTS.of("Role", binding["metadata"]["namespace"])[binding["roleRef"]["name"]]


def rights(account: str) -> dict[str, dict[str, set[str]]]:
    found: dict[str, dict[str, set[str]]] = {}
    for role in roles_of(account):
        for rule in role["rules"]:
            for resource in rule["resources"]:
                found.setdefault(role["metadata"]["namespace"], {}).setdefault(resource, set()).update(rule["verbs"])
    return found


@pytest.mark.parametrize("account", RIGHTS)
def test_an_account_has_exactly_these_rights(account: str) -> None:
    assert rights(account) == RIGHTS[account]


def test_every_account_of_a_step_stands_in_the_table_and_in_the_base() -> None:
    used = {template["serviceAccountName"] for template in steps()}
    used |= {template["executor"]["serviceAccountName"] for template in steps() if "executor" in template}
    assert used <= {f"seatrial-{account}" for account in RIGHTS}
    assert used <= BASE_OBJECTS.of("ServiceAccount", WORKFLOWS).keys()
    assert SERVICE_ACCOUNT in BASE_OBJECTS.of("ServiceAccount", SERVING)


def test_no_right_is_for_anything_and_none_is_for_secrets() -> None:
    for found in BASE_OBJECTS.all:
        assert found["kind"] not in {"ClusterRole", "ClusterRoleBinding"}
        for rule in found.get("rules", []) if found["kind"] == "Role" else []:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert not {"secrets", "serviceaccounts/token", "pods/exec", "roles", "rolebindings"} & {*rule["resources"]}
            assert not {"bind", "escalate", "impersonate", "deletecollection"} & {*rule["verbs"]}


def test_a_binding_leads_to_a_role_and_to_accounts_that_are_there() -> None:
    for binding in (found for found in BASE_OBJECTS.all if found["kind"] == "RoleBinding"):
        assert binding["roleRef"]["name"] in BASE_OBJECTS.of("Role", binding["metadata"]["namespace"])
        for subject in binding["subjects"]:
            if subject["kind"] == "ServiceAccount":
                assert subject["name"] in BASE_OBJECTS.of("ServiceAccount", subject["namespace"])


def test_an_account_without_rights_gets_no_token_and_one_with_rights_does() -> None:
    for template in steps():
        name = template["serviceAccountName"].removeprefix("seatrial-")
        account = BASE_OBJECTS.of("ServiceAccount", WORKFLOWS)[template["serviceAccountName"]]
        assert template["automountServiceAccountToken"] is bool(RIGHTS[name])
        # Argo writes the field into a pod only when it is false: the account must not say false where true is meant.
        assert account.get("automountServiceAccountToken", True) is bool(RIGHTS[name])
        assert template.get("executor") == (None if RIGHTS[name] else {"serviceAccountName": EXECUTOR})


def test_the_executors_token_lies_where_argo_looks_for_it() -> None:
    secret = BASE_OBJECTS.of("Secret", WORKFLOWS)[f"{EXECUTOR}.service-account-token"]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] == EXECUTOR
    assert "data" not in secret
    assert "stringData" not in secret


@pytest.mark.parametrize("namespace", [WORKFLOWS, SERVING])
def test_whoever_names_no_account_gets_no_token(namespace: str) -> None:
    assert BASE_OBJECTS.of("ServiceAccount", namespace)["default"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("namespace", [WORKFLOWS, SERVING])
def test_a_viewer_changes_nothing(namespace: str) -> None:
    verbs = {v for rule in BASE_OBJECTS.of("Role", namespace)["seatrial-viewer"]["rules"] for v in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}


def test_an_operator_makes_no_version() -> None:
    rules = BASE_OBJECTS.of("Role", SERVING)["seatrial-operator"]["rules"]
    assert {verb for rule in rules if SERVICES in rule["resources"] for verb in rule["verbs"]} == {"delete"}


def test_an_operator_is_a_viewer_too() -> None:
    for namespace in (WORKFLOWS, SERVING):
        bindings = BASE_OBJECTS.of("RoleBinding", namespace)
        subjects = {name: {s["name"] for s in bindings[name]["subjects"]} for name in bindings}
        assert subjects["seatrial-operator"] == {"seatrial:operators"}
        assert subjects["seatrial-viewer"] == {"seatrial:operators", "seatrial:viewers"}


def test_nothing_that_a_release_makes_is_installed() -> None:
    files = [path for path in BASE.parent.rglob("*.yaml") if "cluster" not in path.relative_to(BASE.parent).parts]
    kinds = {found.get("kind") for path in files for found in documents(path)}
    assert not {"InferenceService", "HTTPRoute"} & kinds
    assert len(files) > 10


def test_every_template_lies_in_the_workflows_namespace() -> None:
    named = {document["metadata"]["name"] for document in workflows()}
    placed = BASE_OBJECTS.of("WorkflowTemplate", WORKFLOWS).keys() | BASE_OBJECTS.of("CronWorkflow", WORKFLOWS).keys()
    assert named == placed
