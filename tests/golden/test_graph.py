"""The rendered YAML as a graph: every name leads somewhere, nothing unasked is given, and no value meets a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TEMPLATES = Path(__file__).resolve().parents[2] / "workflow_templates"
FILES = [TEMPLATES / "release.yaml", TEMPLATES / "settle.yaml"]
"""A WorkflowTemplate, and a CronWorkflow with a whole workflow in it."""
GLOBALS = {"workflow.name", "workflow.uid", "workflow.namespace"}
GATES = {
    "resolve-release": "outcome",
    "validate-data": "decision",
    "evaluate-model": "decision",
    "package-model": "decision",
    "deploy-model": "decision",
    "build-candidate": "decision",
}
"""What may refuse → the parameter that says so."""


def spec(path: Path) -> dict[str, Any]:
    """The workflow's."""
    whole: dict[str, Any] = yaml.safe_load(path.read_text())["spec"]
    return whole.get("workflowSpec", whole)  # type: ignore[no-any-return]


def templates() -> Iterator[Any]:
    for path in FILES:
        for template in spec(path)["templates"]:
            yield pytest.param(template, id=f"{path.stem}/{template['name']}")


def tasks() -> Iterator[Any]:
    for path in FILES:
        for template in spec(path)["templates"]:
            for task in template.get("dag", {}).get("tasks", []):
                yield pytest.param(path, template, task, id=f"{path.stem}/{template['name']}/{task['name']}")


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {name for inner in value.values() for name in references(inner)}
    if isinstance(value, list):
        return {name for inner in value for name in references(inner)}
    return set(re.findall(r"\{\{\s*(.*?)\s*\}\}", value)) if isinstance(value, str) else set()


def inputs(template: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return template.get("inputs", {}).get(kind, [])  # type: ignore[no-any-return]


def outputs(template: dict[str, Any]) -> set[str]:
    given = template.get("outputs", {})
    return {f"outputs.{kind}.{one['name']}" for kind in ("parameters", "artifacts") for one in given.get(kind, [])}


def workflow_names(path: Path) -> set[str]:
    return GLOBALS | {f"workflow.parameters.{p['name']}" for p in spec(path).get("arguments", {}).get("parameters", [])}


def before(template: dict[str, Any], name: str) -> set[str]:
    """The tasks that must have succeeded before `name`."""
    waits = {t["name"]: set(re.findall(r"([\w-]+)\.Succeeded", t.get("depends", ""))) for t in template["dag"]["tasks"]}
    found, ends = set(), set(waits[name])
    while ends:
        one = ends.pop()
        found.add(one)
        ends |= waits[one] - found
    return found


def test_there_are_the_release_and_the_janitor() -> None:
    kinds = {path.name: yaml.safe_load(path.read_text())["kind"] for path in TEMPLATES.glob("*.yaml")}
    assert kinds == {
        "release.yaml": "WorkflowTemplate",
        "settle.yaml": "CronWorkflow",
        "kustomization.yaml": "Kustomization",
    }


def test_the_kustomization_lists_every_other_file() -> None:
    listed = yaml.safe_load((TEMPLATES / "kustomization.yaml").read_text())["resources"]
    assert sorted([*listed, "kustomization.yaml"]) == sorted(path.name for path in TEMPLATES.glob("*.yaml"))


def test_the_janitor_comes_every_minute_and_never_twice_at_once() -> None:
    cron = yaml.safe_load((TEMPLATES / "settle.yaml").read_text())["spec"]
    assert cron["schedules"] == ["* * * * *"]
    assert cron["concurrencyPolicy"] == "Forbid"
    assert cron["successfulJobsHistoryLimit"] + cron["failedJobsHistoryLimit"] <= 5
    janitor = spec(TEMPLATES / "settle.yaml")
    (only,) = janitor["templates"]
    assert (janitor["entrypoint"], only["name"]) == ("settle", "settle")
    assert (only["container"]["image"], only["container"]["args"]) == ("seatrial/settle-release", ["settle"])
    assert not {"hooks", "arguments"} & janitor.keys()


def test_the_janitor_waits_for_no_template_that_the_controller_may_not_have_met() -> None:
    assert "workflowTemplateRef" not in spec(TEMPLATES / "settle.yaml")


@pytest.mark.parametrize(("path", "template", "task"), list(tasks()))
def test_a_tasks_references_are_inputs_or_outputs_of_what_ended_before(path: Path, template: Any, task: Any) -> None:
    called = {t["name"]: t for t in spec(path)["templates"]}
    uses = {t["name"]: called[t["template"]] for t in template["dag"]["tasks"]}
    known = workflow_names(path) | {f"inputs.parameters.{p['name']}" for p in inputs(template, "parameters")}
    for name in before(template, task["name"]):
        known |= {f"tasks.{name}.{output}" for output in outputs(uses[name])}
    assert references(task) - known == set()


@pytest.mark.parametrize(("path", "template", "task"), list(tasks()))
def test_a_tasks_arguments_are_exactly_its_templates_required_inputs(path: Path, template: Any, task: Any) -> None:
    called = {t["name"]: t for t in spec(path)["templates"]}[task["template"]]
    for kind in ("parameters", "artifacts"):
        given = [one["name"] for one in task.get("arguments", {}).get(kind, [])]
        assert sorted(given) == sorted(one["name"] for one in inputs(called, kind))


@pytest.mark.parametrize(("path", "template", "task"), list(tasks()))
def test_a_task_waits_for_success_never_for_a_bare_name(path: Path, template: Any, task: Any) -> None:
    assert re.fullmatch(r"[\w-]+\.Succeeded( && [\w-]+\.Succeeded)*", task.get("depends", "x.Succeeded"))
    assert not {"dependencies", "continueOn", "withItems", "withParam"} & task.keys()


@pytest.mark.parametrize(("path", "template", "task"), list(tasks()))
def test_what_follows_a_gate_asks_for_its_decision_with_both_sides_quoted(path: Path, template: Any, task: Any) -> None:
    waited_for = set(re.findall(r"([\w-]+)\.Succeeded", task.get("depends", "")))
    gates = waited_for & GATES.keys()
    wanted = [
        f"'{{{{tasks.{gate}.outputs.parameters.{GATES[gate]}}}}}' == '{'new' if gate == 'resolve-release' else 'pass'}'"
        for gate in sorted(gates)
    ]
    assert task.get("when", "") == " && ".join(wanted)


@pytest.mark.parametrize("template", list(templates()))
def test_a_container_states_command_deadline_resources_retries_and_account(template: Any) -> None:
    if "dag" in template:
        assert not {"activeDeadlineSeconds", "timeout", "retryStrategy"} & template.keys()
        return
    container = template["container"]
    assert container["command"]
    assert template["activeDeadlineSeconds"] > 0
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert {"cpu", "memory"} <= container["resources"]["limits"].keys()
    assert template["retryStrategy"]["retryPolicy"] == "Always"
    assert template["serviceAccountName"] == f"seatrial-{template['name']}"


@pytest.mark.parametrize("template", list(templates()))
def test_every_output_parameter_has_a_default_and_none_means_pass(template: Any) -> None:
    defaults = [p["valueFrom"].get("default") for p in template.get("outputs", {}).get("parameters", [])]
    assert all(isinstance(default, str) for default in defaults)
    assert not {"pass", "new", "promoted", "deployed"} & set(defaults)


@pytest.mark.parametrize("template", list(templates()))
def test_a_containers_references_are_its_inputs_and_no_value_reaches_a_shell_or_a_script(template: Any) -> None:
    if "dag" in template:
        return
    container = template["container"]
    known = {f"inputs.parameters.{p['name']}" for p in inputs(template, "parameters")}
    assert references(container) | references(template.get("podSpecPatch", "")) <= known
    assert not references(container["command"])
    assert "script" not in template
    words = [*container["command"], *container.get("args", [])]
    assert not {"sh", "bash", "-c", "/bin/sh", "/bin/bash", "eval"} & set(words)
    for word in container.get("args", []):
        if references(word) and template["name"] != "build-image":
            assert re.fullmatch(r"\{\{inputs\.parameters\.[\w-]+\}\}", word)


@pytest.mark.parametrize("template", list(templates()))
def test_files_lie_in_volumes_and_kaniko_copies_nowhere_near_them(template: Any) -> None:
    if "dag" in template:
        return
    mounts = {mount["mountPath"] for mount in template["container"]["volumeMounts"]}
    assert {mount["name"] for mount in template["container"]["volumeMounts"]} == {
        v["name"] for v in template["volumes"]
    }
    places = [a["path"] for kind in ("inputs", "outputs") for a in template.get(kind, {}).get("artifacts", [])]
    places += [p["valueFrom"]["path"] for p in template.get("outputs", {}).get("parameters", [])]
    assert all(place.startswith("/io/") for place in places)
    assert not any("/models".startswith(mount) for mount in mounts)


@pytest.mark.parametrize("template", list(templates()))
def test_only_the_builder_is_root_and_nobody_is_privileged(template: Any) -> None:
    if "dag" in template:
        return
    pod, container = template["securityContext"], template["container"]["securityContext"]
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["allowPrivilegeEscalation"] is False
    assert container["capabilities"]["drop"] == ["ALL"]
    if template["name"] == "build-image":
        assert container["capabilities"]["add"] == ["CHOWN", "DAC_OVERRIDE", "FOWNER"]
        assert "privileged" not in container
        return
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] == 10001
    assert container["readOnlyRootFilesystem"] is True
    assert "add" not in container["capabilities"]


@pytest.mark.parametrize("template", list(templates()))
def test_only_a_step_that_touches_the_cluster_has_a_token(template: Any) -> None:
    if "dag" in template:
        return
    sources = [next(iter(s.values()))["name"] for s in template["container"].get("envFrom", [])]
    assert template["automountServiceAccountToken"] is ("seatrial-cluster" in sources)
    assert ("executor" in template) is not ("seatrial-cluster" in sources)


def test_a_teams_code_gets_neither_key_nor_store_nor_cluster() -> None:
    train = next(t for t in spec(TEMPLATES / "release.yaml")["templates"] if t["name"] == "train-model")
    sources = {next(iter(s.values()))["name"] for s in train["container"]["envFrom"]}
    assert sources == {"seatrial-tracking"}


def test_a_release_ends_in_its_exit_handler_and_rolls_out_one_at_a_time_per_model() -> None:
    whole = spec(TEMPLATES / "release.yaml")
    leave = whole["hooks"]["exit"]
    called = {t["name"]: t for t in whole["templates"]}
    assert leave["template"] == "settle-release"
    given = [p["name"] for p in leave["arguments"]["parameters"]]
    assert given == [p["name"] for p in inputs(called["settle-release"], "parameters")]
    assert called["roll-out"]["synchronization"] == {
        "mutexes": [{"name": "roll-out-{{workflow.parameters.MODEL_NAME}}"}]
    }
    assert "retryStrategy" not in whole
    assert {"activeDeadlineSeconds", "podGC", "ttlStrategy", "archiveLogs"} <= whole.keys()


def test_roll_out_can_be_started_alone() -> None:
    whole = spec(TEMPLATES / "release.yaml")
    roll_out = next(t for t in whole["templates"] if t["name"] == "roll-out")
    assert [p["name"] for p in inputs(roll_out, "parameters")] == ["version", "image", "bundle-digest"]
    assert inputs(roll_out, "artifacts") == []
    assert all("value" in p for p in whole["arguments"]["parameters"] if p["name"] != "MODEL_NAME")


def test_every_template_is_used() -> None:
    whole = spec(TEMPLATES / "release.yaml")
    used = {t["template"] for template in whole["templates"] for t in template.get("dag", {}).get("tasks", [])}
    used |= {whole["entrypoint"], whole["hooks"]["exit"]["template"]}
    assert used == {t["name"] for t in whole["templates"]}


def test_every_step_of_a_dag_is_short_enough_for_argo() -> None:
    whole = spec(TEMPLATES / "release.yaml")
    names = [t["name"] for t in whole["templates"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9][-a-zA-Z0-9]{0,127}", name) for name in names)
    assert len(names) <= 200
