"""Releases of cart_abandonment on the real cluster, one after the other, each as a different person would start it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from drilling import Drill, drilled
from real_cluster import ROOT, WORKFLOWS, RealCluster
from sources import MODEL, First, Source, first_release, source, with_parameter

from seatrial.names import kebab

pytestmark = pytest.mark.long(6)


@pytest.fixture(scope="module")
def repository(cluster: RealCluster) -> Iterator[Source]:
    with source(cluster) as checkout:
        yield checkout


@pytest.fixture(scope="module")
def first(cluster: RealCluster, repository: Source) -> First:
    """The first version, submitted by the command."""
    return first_release(cluster, repository)


@pytest.fixture(scope="module")
def promoted(first: First) -> dict[str, Any]:
    return first.said


@pytest.fixture(scope="module")
def data(first: First) -> str:
    return first.data


def answering(cluster: RealCluster) -> int:
    """The version that answers without the header."""
    _, status = cluster.seatrial("status", MODEL)
    (model,) = status["models"]
    assert set(model["answers"]) == {f"v{model['champion']}"}, model
    assert model["candidate"] is None
    return int(model["champion"])


def test_a_model_is_promoted_and_answers_through_the_gateway(cluster: RealCluster, promoted: dict[str, Any]) -> None:
    assert answering(cluster) == promoted["version"]
    workflow = cluster.workflow(promoted["run"])
    assert workflow["status"]["phase"] == "Succeeded"


def test_argos_own_commands_show_every_step_and_what_it_said(cluster: RealCluster, promoted: dict[str, Any]) -> None:
    steps = cluster.run("argo", "get", "-n", WORKFLOWS, promoted["run"])
    said = cluster.run("argo", "logs", "-n", WORKFLOWS, promoted["run"], "--no-color")
    for step in ("resolve-release", "settle-release"):
        assert step in steps
        assert step in said


def test_the_same_again_is_unchanged_and_deploys_nothing(
    cluster: RealCluster, promoted: dict[str, Any], data: str
) -> None:
    """Submitted as Argo Server's form does it."""
    look = ("get", "inferenceservices", "-A", "-l", f"seatrial.dev/model={kebab(MODEL)}", "-o", "name")
    services = cluster.kubectl(*look)
    assert services
    parameters = [f"MODEL_NAME={MODEL}", f"DATA_URI={data}", "REASON=again, from the form"]
    request = {
        "namespace": WORKFLOWS,
        "resourceKind": "WorkflowTemplate",
        "resourceName": "release",
        "submitOptions": {"parameters": parameters, "labels": "workflows.argoproj.io/workflow-template=release"},
    }
    name = argo_server(cluster, "POST", f"/api/v1/workflows/{WORKFLOWS}/submit", request)["metadata"]["name"]
    ended = cluster.ended(name)
    assert ended["status"]["phase"] == "Succeeded"
    assert output(ended, "settle-release", "outcome") == "unchanged"
    assert cluster.kubectl(*look) == services


def test_the_form_shows_the_models_and_says_what_each_field_is(cluster: RealCluster) -> None:
    template = argo_server(cluster, "GET", f"/api/v1/workflow-templates/{WORKFLOWS}/release")
    fields = {parameter["name"]: parameter for parameter in template["spec"]["arguments"]["parameters"]}
    assert MODEL in fields["MODEL_NAME"]["enum"]
    assert all(field["description"] for field in fields.values())


def test_a_free_value_that_is_no_model_is_refused_in_the_first_step(cluster: RealCluster) -> None:
    """Argo does not hold a value against the enum: our first step does. Submitted by Argo's own command."""
    command = ["argo", "submit", "-n", WORKFLOWS, "--from", "workflowtemplate/release", "-o", "name"]
    name = cluster.run(*command, "-p", "MODEL_NAME=no_such_model").strip()
    ended = cluster.ended(name)
    assert ended["status"]["phase"] == "Failed"
    (resolve,) = [node for node in ended["status"]["nodes"].values() if node.get("templateName") == "resolve-release"
                  and node["type"] == "Pod"]  # fmt: skip
    assert resolve["outputs"]["exitCode"] == "78"
    assert not any(node.get("templateName") == "validate-data" and node["type"] == "Pod"
                   for node in ended["status"]["nodes"].values())  # fmt: skip


def test_the_command_refuses_it_before_anything_is_made(cluster: RealCluster) -> None:
    before = runs_of(cluster, "no_such_model")
    process = cluster.started("submit", "no_such_model")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 78
    assert MODEL in err
    assert runs_of(cluster, "no_such_model") == before


def test_doubled_rows_are_refused_by_name(
    cluster: RealCluster, promoted: dict[str, Any], first: First, tmp_path: Path
) -> None:
    table = pl.read_parquet(first.rows)
    pl.concat([table, table.head(3)]).write_parquet(tmp_path / "twice.parquet")
    data = cluster.upload(tmp_path / "twice.parquet", f"data/{MODEL}/twice.parquet")
    code, said = cluster.seatrial("submit", MODEL, "--data", data, "--reason", "doubled rows")
    assert (code, said["outcome"]) == (10, "refused"), said
    assert "unique_ids" in said["reasons"][0]
    assert answering(cluster) == promoted["version"]


def test_a_better_one_is_promoted_by_canary_and_a_person_goes_back(
    cluster: RealCluster, repository: Source, promoted: dict[str, Any], data: str, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "models", tmp_path / "models", ignore=shutil.ignore_patterns("__pycache__"))
    with_parameter(tmp_path / "models", MODEL, "C", 0.5)
    revision = repository.pushed("other-penalty", tmp_path / "models")
    code, said = cluster.seatrial("submit", MODEL, "--data", data, "--revision", revision, "--reason", "C 0.5")
    assert (code, said["outcome"]) == (0, "promoted"), said
    assert answering(cluster) == said["version"] > promoted["version"]

    cluster.done("rollback", MODEL, "--reason", "a person's wish")
    assert answering(cluster) == promoted["version"]


def test_a_candidate_that_fails_on_traffic_is_rolled_back_and_nothing_else_is_lost(
    cluster: RealCluster, repository: Source, promoted: dict[str, Any], data: str, tmp_path: Path
) -> None:
    drill: Drill = drilled(repository, MODEL, champion=answering(cluster), data=data, folder=tmp_path)
    assert (drill.code, drill.said["outcome"]) == (11, "rolled_back"), drill.said
    seen = drill.seen
    assert (seen.lost, seen.wrong, seen.early) == (0, 0, 0), seen
    assert seen.first_bad_s is not None, "the fault was never met"
    assert seen.after >= 100, f"v{drill.champion} must answer everything in the end: {seen}"
    assert drill.champion_errors == 0
    assert answering(cluster) == drill.champion


def runs_of(cluster: RealCluster, model: str) -> set[str]:
    """Workflows that were given this MODEL_NAME."""
    listed = json.loads(cluster.kubectl("-n", WORKFLOWS, "get", "workflows", "-o", "json"))["items"]
    given = {"name": "MODEL_NAME", "value": model}
    return {
        str(run["metadata"]["name"])
        for run in listed
        if given in run["spec"].get("arguments", {}).get("parameters", [])
    }


def argo_server(cluster: RealCluster, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Argo Server's REST API, as somebody with an operator's rights and no more."""
    service = cluster.object("service", "argo-server", "argo")
    assert service is not None
    token = cluster.kubectl("-n", WORKFLOWS, "create", "token", an_operator(cluster)).strip()
    url = f"http://{service['spec']['clusterIP']}:2746{path}"
    response = httpx.request(method, url, json=body, headers={"authorization": f"Bearer {token}"}, timeout=30)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


def an_operator(cluster: RealCluster) -> str:
    """An account that is bound to what operators may do."""
    name = "an-operator"
    made: list[tuple[str, ...]] = [("serviceaccount", name)]
    roles = ("seatrial-operator", "seatrial-viewer")
    made += [
        ("rolebinding", f"{name}-{role}", f"--role={role}", f"--serviceaccount={WORKFLOWS}:{name}") for role in roles
    ]
    for arguments in made:
        text = cluster.kubectl("-n", WORKFLOWS, "create", *arguments, "--dry-run=client", "-o", "yaml")
        cluster.kubectl("apply", "-f", "-", given=text)
    return name


def output(workflow: dict[str, Any], template: str, parameter: str) -> str:
    """An output parameter of a template's last node that has it."""
    found = [
        given["value"]
        for node in workflow["status"]["nodes"].values()
        if node.get("templateName") == template
        for given in node.get("outputs", {}).get("parameters", [])
        if given["name"] == parameter and given.get("value")
    ]
    assert found, f"no node of {template} gave {parameter}"
    return str(found[-1])
