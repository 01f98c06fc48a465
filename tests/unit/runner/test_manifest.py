from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes_runner import dag, document, pod, task

from pipelines.release import release
from seatrial.app.runner import manifest, meaningless
from seatrial.app.runner.check import check
from seatrial.app.runner.commands import commands
from seatrial.errors import InvalidInput

RELEASE = yaml.safe_load((Path(__file__).resolve().parents[3] / "workflow_templates/release.yaml").read_text())
Change = Callable[[dict[str, Any]], Any]


def sources() -> set[str]:
    containers = [t["container"] for t in RELEASE["spec"]["templates"] if "container" in t]
    return {next(iter(source.values()))["name"] for c in containers for source in c.get("envFrom", [])}


def test_the_rendered_release_can_run_here() -> None:
    read = manifest.read(RELEASE)
    for entrypoint in ("release", "roll-out"):
        check(read, entrypoint=entrypoint, commands=commands(), environment=sources())


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: d["spec"].update(parallelism=1), "spec.parallelism"),
        (lambda d: d["spec"].update(onExit="x"), "spec.onExit"),
        (lambda d: d["spec"]["hooks"].update(running={}), "spec.hooks.running"),
        (lambda d: d["spec"]["templates"][0].update(failFast=False), "spec.templates[0].failFast"),
        (lambda d: d["spec"]["templates"][0]["dag"].update(failFast=False), "spec.templates[0].dag.failFast"),
        (lambda d: d["spec"]["templates"][0]["dag"]["tasks"][0].update(withItems=[1]), "dag.tasks[0].withItems"),
        (lambda d: d["spec"]["templates"][3]["container"].update(workingDir="/"), "container.workingDir"),
        (lambda d: d["spec"]["templates"][3].update(timeout="1s"), "spec.templates[3].timeout"),
        (lambda d: d["spec"]["templates"][3].update(sidecars=[]), "spec.templates[3].sidecars"),
        (
            lambda d: d["spec"]["templates"][3]["retryStrategy"].update(retryPolicy="OnError"),
            "retryStrategy.retryPolicy",
        ),
        (lambda d: d["spec"]["templates"][3]["retryStrategy"]["backoff"].update(duration="1 day"), "backoff.duration"),
        (lambda d: d["spec"]["templates"][3]["volumes"][0].update(hostPath={}), "volumes[0].hostPath"),
        (lambda d: d.update(kind="CronWorkflow"), "kind"),
        (lambda d: d["spec"]["templates"].append(d["spec"]["templates"][0]), "spec: Value error, two templates"),
        (lambda d: d["spec"]["templates"][3].update(synchronization={"mutexes": [{"name": "x"}]}), "on a dag only"),
    ],
)
def test_a_field_that_is_not_known_is_refused_by_its_path(change: Change, path: str) -> None:
    changed = copy.deepcopy(RELEASE)
    change(changed)
    with pytest.raises(InvalidInput) as caught:
        manifest.read(changed)
    assert path in str(caught.value)


def occurs(value: Any, parts: list[str]) -> bool:
    if not parts:
        return True
    if isinstance(value, list):
        return any(occurs(item, parts) for item in value)
    key, rest = parts[0].removesuffix("[]"), parts[1:]
    return isinstance(value, dict) and key in value and occurs(value[key], rest)


@pytest.mark.parametrize("path", meaningless.REASONS)
def test_every_field_without_meaning_here_is_rendered_and_has_a_reason(path: str) -> None:
    assert occurs(yaml.safe_load(release(["m"]).to_yaml()), path.split("."))
    assert len(meaningless.REASONS[path]) > 10


def small() -> dict[str, Any]:
    return document(
        dag(
            "main",
            task("a", x="{{workflow.parameters.P}}"),
            task("b", "a.Succeeded", when="'{{tasks.a.outputs.parameters.d}}' == 'pass'"),
            outputs={
                "parameters": [
                    {"name": "o", "valueFrom": {"parameter": "{{tasks.a.outputs.parameters.d}}", "default": ""}}
                ]
            },
        ),
        pod("a", outputs={"d": "none"}, args=["{{inputs.parameters.x}}"], inputs={"parameters": [{"name": "x"}]}),
        pod("b", retryStrategy={"limit": "1", "retryPolicy": "Always", "expression": "lastRetry.status == 'Error'"}),
        parameters={"P": "1"},
    )


def tasks_of(d: dict[str, Any]) -> list[dict[str, Any]]:
    return d["spec"]["templates"][0]["dag"]["tasks"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["spec"].update(entrypoint="x"), "spec.entrypoint: no template x"),
        (lambda d: tasks_of(d)[0].update(template="x"), "dag.tasks[0].template: no template x"),
        (lambda d: tasks_of(d)[0].pop("arguments"), "a needs ['x']"),
        (lambda d: tasks_of(d)[0]["arguments"]["parameters"].append({"name": "y", "value": ""}), "does not take ['y']"),
        (
            lambda d: tasks_of(d)[0]["arguments"]["parameters"][0].update(value="{{workflow.parameters.Q}}"),
            "parameters.Q",
        ),
        (
            lambda d: tasks_of(d)[0]["arguments"]["parameters"][0].update(value="{{tasks.b.outputs.parameters.d}}"),
            "tasks.b",
        ),
        (lambda d: tasks_of(d)[1].update(depends="c.Succeeded"), "wait for ['c']"),
        (lambda d: tasks_of(d)[1].update(depends="a.Daemoned"), "['Daemoned'] is not known"),
        (lambda d: tasks_of(d)[1].pop("depends"), "dag.tasks[1].when: {{tasks.a.outputs.parameters.d}} is not known"),
        (lambda d: tasks_of(d)[0].update(depends="b.Succeeded"), "wait for each other"),
        (lambda d: tasks_of(d)[1].update(depends="a &&"), "dag.tasks[1].depends: the expression 'a &&'"),
        (lambda d: tasks_of(d)[1].update(when="{{x}} == y"), "dag.tasks[1].when: the expression"),
        (lambda d: tasks_of(d)[1].update(when="pass == 'pass'"), "dag.tasks[1].when: ['pass'] is not known there"),
        (lambda d: tasks_of(d)[1].update(when="'a' in ['a']"), "dag.tasks[1].when: ['in'] belongs to a retry's"),
        (
            lambda d: tasks_of(d)[1].update(when="'a' matches 'a'"),
            "dag.tasks[1].when: ['matches'] belongs to a retry's",
        ),
        (
            lambda d: d["spec"]["templates"][0]["outputs"]["parameters"][0]["valueFrom"].pop("default"),
            "spec.templates[0].outputs.parameters[0]: without a default",
        ),
        (lambda d: d["spec"]["templates"][1]["container"].update(args=["{{=1}}"]), "container.args[0]: {{=1}} is not"),
        (lambda d: tasks_of(d)[1].update(name="a"), "two tasks have one name"),
        (lambda d: tasks_of(d)[1].update(template="main"), "it calls itself"),
        (lambda d: d["spec"]["templates"][1]["container"].update(image="busybox"), "container.image: busybox"),
        (lambda d: d["spec"]["templates"][1]["container"].update(args=["{{inputs.parameters.z}}"]), "parameters.z"),
        (lambda d: d["spec"]["templates"][1]["container"]["envFrom"].append({"secretRef": {"name": "s"}}), "no s here"),
        (lambda d: d["spec"]["templates"][1]["volumes"].pop(), "no volume tmp"),
        (
            lambda d: d["spec"]["templates"][2]["retryStrategy"].update(expression="lastRetry.duration == '1'"),
            "duration",
        ),
        (
            lambda d: d["spec"]["templates"][0]["outputs"]["parameters"][0]["valueFrom"].update(parameter="{{x}}"),
            "{{x}}",
        ),
        (
            lambda d: d["spec"].update(hooks={"exit": {"template": "a"}}),
            "spec.hooks.exit.arguments.parameters: a needs",
        ),
    ],
)
def test_what_could_not_run_to_its_end_is_refused_before_it_starts(change: Change, says: str) -> None:
    made = small()
    images = {"seatrial/a": ["x"], "seatrial/b": ["x"]}
    check(manifest.read(made), entrypoint="main", commands=images, environment={"play"})
    change(made)
    read = manifest.read(made)
    with pytest.raises(InvalidInput) as caught:
        check(read, entrypoint=read.spec.entrypoint, commands=images, environment={"play"})
    assert says in str(caught.value)


def test_an_optional_source_may_be_missing() -> None:
    made = small()
    made["spec"]["templates"][1]["container"]["envFrom"].append({"secretRef": {"name": "s", "optional": True}})
    check(
        manifest.read(made),
        entrypoint="main",
        commands={"seatrial/a": ["x"], "seatrial/b": ["x"]},
        environment={"play"},
    )


def test_every_step_and_the_builder_have_a_program() -> None:
    known = commands()
    assert list(known["seatrial/resolve-release"][1:]) == ["-m", "steps.resolve_release"]
    assert list(known["seatrial/kaniko"][1:]) == ["-m", "seatrial.app.builder"]
    assert len(known) == 9
