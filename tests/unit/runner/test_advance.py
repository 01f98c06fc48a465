"""Argo's rules, one by one, with no process and no clock."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes_runner import START, Simulation, dag, document, kills, pod, task, wakes

from seatrial.app.runner.manifest import Backoff
from seatrial.app.runner.nodes import node_id
from seatrial.app.runner.plan import Acquire, Kill, Release
from seatrial.app.runner.retries import backoff_s
from seatrial.errors import InvalidInput

RETRY = {
    "limit": "2",
    "retryPolicy": "Always",
    "expression": "lastRetry.status == 'Error' || lastRetry.exitCode in ['75', '137']",
    "backoff": {"duration": "10s", "factor": "2"},
}


def chain(*, first: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """a, and b where a says pass."""
    return document(
        dag("main", task("a"), task("b", "a.Succeeded", when="'{{tasks.a.outputs.parameters.d}}' == 'pass'")),
        first or pod("a", outputs={"d": "none"}),
        pod("b"),
        **more,
    )


# DAG


def test_a_task_starts_when_what_it_waits_for_has_succeeded() -> None:
    run = Simulation(chain())
    run.advance()
    assert run.up() == ["a"]
    run.end("a", d="pass")
    assert run.up() == ["b"]
    run.end("b")
    assert run.outcome == ("Succeeded", "")


def test_advancing_again_changes_nothing_and_starts_nothing() -> None:
    run = Simulation(chain())
    run.advance()
    before = dict(run.nodes)
    assert run.advance() == []
    assert run.nodes == before
    run.end("a", d="pass")
    run.end("b")
    assert run.advance() == []


def test_a_gate_that_does_not_hold_skips_its_task_and_the_dag_succeeds() -> None:
    run = Simulation(chain())
    run.advance()
    run.end("a", d="fail")
    assert run.phases() == {"w-1": "Succeeded", "a": "Succeeded", "b": "Skipped"}
    assert run.node("b").message == "when ''fail' == 'pass'' evaluated false"
    assert run.node("b").type == "Skipped"


@pytest.mark.parametrize("value", ["it's", "' == '' || 'a' == 'a", "pass' || 'x"])
def test_a_quote_in_a_gates_value_never_opens_it(value: str) -> None:
    run = Simulation(chain())
    run.advance()
    run.end("a", d=value)
    assert run.up() == []
    assert run.phase("b") in {"Skipped", "Error"}


def test_after_a_failure_the_rest_is_omitted_and_the_dag_fails() -> None:
    run = Simulation(
        document(dag("main", task("a"), task("b", "a.Succeeded"), task("c", "b.Succeeded")), *map(pod, "abc"))
    )
    run.advance()
    run.end("a", 1)
    assert run.phases() == {"w-1": "Failed", "a": "Failed", "b": "Omitted", "c": "Omitted"}
    assert run.node("a").message == "main: Error (exit code 1)"
    assert run.outcome == ("Failed", "")


def test_a_leaf_that_mends_a_failure_turns_the_dag_green() -> None:
    """As seen on the real controller: this is why the exit handler decides the colour."""
    made = document(dag("main", task("a"), task("b", "a.Failed || a.Errored")), pod("a"), pod("b"))
    run = Simulation(made)
    run.advance()
    run.end("a", 1)
    run.end("b")
    assert run.outcome[0] == "Succeeded"


def test_a_failed_branch_beside_a_mended_one_keeps_the_dag_red() -> None:
    tasks = (task("a"), task("mend", "a.Failed"), task("on", "a.Succeeded"))
    run = Simulation(document(dag("main", *tasks), pod("a"), pod("mend"), pod("on")))
    run.advance()
    run.end("a", 1)
    run.end("mend")
    assert run.phases()["on"] == "Omitted"
    assert run.outcome[0] == "Failed"


@pytest.mark.parametrize(
    ("depends", "phase"),
    [("a.Succeeded", "Omitted"), ("a", "Running"), ("a.Skipped", "Running"), ("a.Skipped && !a.Failed", "Running")],
)
def test_a_bare_dependency_is_met_by_a_skipped_task(depends: str, phase: str) -> None:
    tasks = (task("a", when="'x' == 'y'"), task("b", depends))
    run = Simulation(document(dag("main", *tasks), pod("a"), pod("b")))
    run.advance()
    assert run.phase("b") == phase


def test_after_a_failure_what_does_not_wait_for_it_goes_on() -> None:
    tasks = (task("a"), task("b"), task("c", "b.Succeeded"))
    run = Simulation(document(dag("main", *tasks), *map(pod, "abc")))
    run.advance()
    run.end("a", 1)
    assert run.outcome[0] == "Running"
    run.end("b")
    assert run.outcome[0] == "Running"
    run.end("c")
    assert run.outcome == ("Failed", "")


def test_a_left_out_tasks_output_is_empty_for_a_task_and_the_default_for_a_dag() -> None:
    inner = dag(
        "inner",
        task("a"),
        task("b", "a.Succeeded", when="'{{tasks.a.outputs.parameters.d}}' == 'pass'", template="a"),
        task("c", "b.Skipped", template="show", text="[{{tasks.b.outputs.parameters.d}}]"),
        outputs={
            "parameters": [
                {"name": "b", "valueFrom": {"parameter": "{{tasks.b.outputs.parameters.d}}", "default": "of the dag"}},
                {"name": "a", "valueFrom": {"parameter": "{{tasks.a.outputs.parameters.d}}", "default": "no"}},
            ]
        },
    )
    show = pod("show", args=["{{inputs.parameters.text}}"], inputs={"parameters": [{"name": "text"}]})
    run = Simulation(document(dag("main", task("inner")), inner, pod("a", outputs={"d": "of the step"}), show))
    run.advance()
    run.end("a", d="no")
    assert run.started[-1].args == ("[]",)
    run.end("c")
    outputs = run.node("inner").outputs
    assert outputs is not None
    assert outputs.values() == {"b": "of the dag", "a": "no"}


def test_a_failed_dag_gives_no_outputs() -> None:
    made = document(
        dag("main", task("inner"), task("b", "inner.Succeeded")),
        dag(
            "inner", task("a"), outputs={"parameters": [{"name": "x", "valueFrom": {"parameter": "{{workflow.name}}"}}]}
        ),
        pod("a"),
        pod("b"),
    )
    run = Simulation(made)
    run.advance()
    run.end("a", 1)
    assert run.node("inner").outputs is None
    assert run.phase("b") == "Omitted"


# Values


def test_values_go_from_workflow_to_task_to_command_line_as_texts() -> None:
    made = document(
        dag("main", task("d", v="{{workflow.parameters.P}}-{{workflow.uid}}")),
        dag("d", task("a", x="{{inputs.parameters.v}}"), inputs={"parameters": [{"name": "v"}]}),
        pod(
            "a",
            args=["--x", "{{inputs.parameters.x}}", "{{workflow.name}} {{inputs.parameters.y}}"],
            inputs={"parameters": [{"name": "x"}, {"name": "y", "value": "by default"}]},
        ),
        parameters={"P": ""},
    )
    run = Simulation(made, parameters={"P": "{{workflow.name}} $(id)"})
    run.advance()
    assert run.started[0].args == ("--x", "{{workflow.name}} $(id)-uid-1", "w-1 by default")
    assert run.node("a").inputs.values() == {"x": "{{workflow.name}} $(id)-uid-1", "y": "by default"}


def test_files_go_by_where_they_are_kept() -> None:
    give = pod("a", files={"artifacts": [{"name": "f", "path": "/io/out/f"}]})
    take = pod("b", inputs={"artifacts": [{"name": "g", "path": "/io/in/g"}]})
    taking = {
        **task("b", "a.Succeeded"),
        "arguments": {"artifacts": [{"name": "g", "from": "{{tasks.a.outputs.artifacts.f}}"}]},
    }
    run = Simulation(document(dag("main", task("a"), taking), give, take))
    run.advance()
    run.end("a", files=["f"])
    (given,) = run.node("b").inputs.artifacts
    assert (given.name, given.path, given.s3.key) == ("g", "/io/in/g", f"{run.node('a').id}/f")


def test_an_entrypoint_without_its_parameter_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a needs the parameter x"):
        Simulation(document(pod("a", inputs={"parameters": [{"name": "x"}]}))).advance()


# Attempts


def retried(**more: Any) -> Simulation:
    run = Simulation(document(dag("main", task("a")), pod("a", outputs={"d": "none"}, retryStrategy=RETRY, **more)))
    run.advance()
    return run


def test_an_attempt_that_may_be_cured_is_followed_by_another_after_the_backoff() -> None:
    run = retried()
    assert run.up() == ["a(0)"]
    assert wakes(run.end("a(0)", 75)) == [10]
    assert run.up() == []
    assert run.node("a").message == "Backoff for 10 seconds"
    run.later(9.9)
    assert run.up() == []
    run.later(0.1)
    assert run.up() == ["a(1)"]
    run.end("a(1)", d="pass")
    assert run.outcome == ("Succeeded", "")
    outputs = run.node("a").outputs
    assert outputs is not None
    assert outputs.values() == {"d": "pass"}


@pytest.mark.parametrize("code", [1, 10, 76, 78, 2, 255])
def test_an_exit_code_that_another_attempt_cannot_cure_ends_it(code: int) -> None:
    run = retried()
    run.end("a(0)", code, d="none")
    assert run.node("a").phase == "Failed"
    assert run.node("a").message == "retryStrategy.expression evaluated to false"
    assert run.outcome[0] == "Failed"
    outputs = run.node("a").outputs
    assert outputs is not None
    assert (outputs.exit_code, outputs.values()) == (str(code), {"d": "none"})


def test_two_retries_are_three_attempts() -> None:
    run = retried()
    for number in range(3):
        run.end(f"a({number})", 75)
        run.later(100)
    assert run.node("a").message == "No more retries left"
    assert run.node("a").phase == "Failed"
    assert [run.phase(f"a({n})") for n in range(3)] == ["Failed"] * 3


@pytest.mark.parametrize(("failed", "wait_s"), [(1, 10), (2, 20), (3, 40), (4, 60), (9, 60)])
def test_the_backoff_doubles_up_to_its_cap(failed: int, wait_s: float) -> None:
    backoff = Backoff.model_validate({"duration": "10s", "factor": "2", "cap": "1m"})
    assert backoff_s(backoff, failed) == wait_s
    assert backoff_s(None, failed) == 0


def test_a_dependent_is_the_child_of_the_last_attempt() -> None:
    made = document(dag("main", task("a"), task("b", "a.Succeeded")), pod("a", retryStrategy=RETRY), pod("b"))
    run = Simulation(made)
    run.advance()
    run.end("a(0)", 75)
    run.later(10)
    run.end("a(1)")
    assert run.node("a").children == (run.node("a(0)").id, run.node("a(1)").id)
    assert run.node("a(0)").children == ()
    assert run.node("a(1)").children == (run.node("b").id,)
    assert run.node("w-1").children == (run.node("a").id,)


def test_a_dependent_of_a_nested_dag_is_the_child_of_its_last_tasks() -> None:
    made = document(
        dag("main", task("d"), task("b", "d.Succeeded")),
        dag("d", task("x", template="a"), task("y", "x.Succeeded", template="a")),
        pod("a"),
        pod("b"),
    )
    run = Simulation(made)
    run.advance()
    run.end("x")
    run.end("y")
    assert run.node("y").children == (run.node("b").id,)
    assert run.node("d").children == (run.node("x").id,)
    assert run.node("x").boundary_id == run.node("d").id


# Deadlines


def test_a_step_past_its_deadline_is_ended_once_and_fails_with_argos_words() -> None:
    run = Simulation(document(dag("main", task("a")), pod("a", activeDeadlineSeconds=30)))
    assert wakes(run.advance()) == [30]
    assert kills(run.later(29)) == []
    assert kills(run.later(1)) == [Kill(run.node("a").id)]
    assert kills(run.later(1)) == []
    run.end("a", 143)
    assert run.node("a").phase == "Failed"
    assert run.node("a").message == "Pod was active on the node longer than the specified deadline"


def test_past_the_workflows_deadline_everything_ends_but_the_exit_handler_runs() -> None:
    hooks = {"exit": {"template": "leave"}}
    made = chain(activeDeadlineSeconds=60, hooks=hooks)
    made["spec"]["templates"].append(pod("leave"))
    run = Simulation(made)
    run.advance()
    assert kills(run.later(60)) == [Kill(run.node("a").id)]
    run.end("a", 143)
    assert run.node("a").message == "Step exceeded its deadline"
    assert run.up() == ["w-1.onExit"]
    run.end("w-1.onExit")
    assert run.outcome[0] == "Failed"


# Exit handler


def left(args: list[str] | None = None, **more: Any) -> Simulation:
    names = ("workflow.status", "workflow.failures")
    values = [{"name": name[9:], "value": f"{{{{{name}}}}}"} for name in names]
    inputs = {"parameters": [{"name": "status"}, {"name": "failures"}]}
    made = chain(hooks={"exit": {"template": "leave", "arguments": {"parameters": values}}})
    shown = args or ["{{inputs.parameters.status}}", "{{inputs.parameters.failures}}"]
    made["spec"]["templates"].append(pod("leave", args=shown, inputs=inputs, **more))
    run = Simulation(made)
    run.advance()
    return run


def test_the_exit_handler_is_told_status_and_failures_twice_quoted() -> None:
    run = left()
    run.end("a", 1)
    status, failed = run.started[-1].args
    assert status == "Failed"
    facts = {fact["displayName"]: fact for fact in json.loads(json.loads(failed))}
    assert facts["a"]["message"] == "main: Error (exit code 1)"
    assert facts["a"]["phase"] == "Failed"
    assert facts["a"]["templateName"] == "a"
    assert set(facts) == {"a", "w-1"}


def test_without_a_failure_it_is_told_null() -> None:
    run = left()
    run.end("a", d="fail")
    assert run.started[-1].args == ("Succeeded", '"null"')


@pytest.mark.parametrize(
    ("first", "leave", "outcome"),
    [
        (0, 0, ("Succeeded", "")),
        (0, 10, ("Failed", "main: Error (exit code 10)")),
        (1, 0, ("Failed", "")),
        (1, 10, ("Failed", "")),
    ],
)
def test_a_failed_exit_handler_turns_the_run_red_and_nothing_turns_it_green(
    first: int, leave: int, outcome: tuple[str, str]
) -> None:
    run = left()
    run.end("a", first, d="fail")
    assert run.outcome == ("Running", "")
    run.end("w-1.onExit", leave)
    assert run.outcome == outcome


# Stop and terminate


def test_stop_ends_what_runs_starts_nothing_and_lets_the_exit_handler_run() -> None:
    run = left()
    assert kills(run.stop()) == [Kill(run.node("a").id)]
    run.end("a", 0, d="pass")
    assert run.node("a").message == "workflow shutdown with strategy:  Stop"
    assert run.phases()["b"] == "Omitted"
    assert run.started[-1].args[0] == "Failed"
    run.end("w-1.onExit")
    assert run.outcome == ("Failed", "Stopped with strategy 'Stop'")


@pytest.mark.parametrize(
    ("first", "leave", "outcome"),
    [
        (0, 0, ("Succeeded", "")),
        (0, 10, ("Failed", "main: Error (exit code 10)")),
        (1, 0, ("Failed", "Stopped with strategy 'Stop'")),
    ],
)
def test_a_stop_while_the_exit_handler_runs_neither_ends_it_nor_turns_the_run_red(
    first: int, leave: int, outcome: tuple[str, str]
) -> None:
    run = left()
    run.end("a", first, d="fail")
    assert kills(run.stop()) == []
    run.end("w-1.onExit", leave)
    assert run.outcome == outcome


def test_terminate_ends_all_at_once_without_the_exit_handler() -> None:
    run = left()
    run.stop()
    assert kills(run.stop("Terminate")) == [Kill(run.node("a").id, at_once=True)]
    run.end("a", 137)
    assert "w-1.onExit" not in run.phases()
    assert run.outcome == ("Failed", "Stopped with strategy 'Terminate'")


def test_terminate_ends_a_running_exit_handler_too() -> None:
    run = left()
    run.end("a", d="fail")
    run.stop()
    assert kills(run.stop("Terminate")) == [Kill(run.node("w-1.onExit").id, at_once=True)]
    assert run.outcome[0] == "Running"
    run.end("w-1.onExit", 137)
    assert run.outcome == ("Failed", "workflow shutdown with strategy:  Terminate")


def test_a_stop_between_two_attempts_starts_no_other() -> None:
    run = retried()
    run.end("a(0)", 75)
    run.stop()
    assert run.up() == []
    assert run.node("a").message == "Stopped with strategy 'Stop'"
    assert run.outcome == ("Failed", "Stopped with strategy 'Stop'")


# Mutex


def locked() -> Simulation:
    made = document(
        dag("main", task("r"), task("b", "r.Succeeded")),
        dag("r", task("a"), synchronization={"mutexes": [{"name": "roll-{{workflow.parameters.M}}"}]}),
        pod("a"),
        pod("b"),
        pod("leave"),
        parameters={"M": ""},
        hooks={"exit": {"template": "leave"}},
    )
    return Simulation(made, parameters={"M": "carts"})


def test_a_locked_dag_asks_once_waits_and_says_so() -> None:
    run = locked()
    run.free = False
    assert run.advance() == [Acquire(run.node("r").id, "seatrial/Mutex/roll-carts")]
    assert run.advance() == []
    assert run.node("r").phase == "Pending"
    assert run.node("r").message == "Waiting for seatrial/Mutex/roll-carts lock. Lock status: 0/1"
    assert run.phase("w-1") == "Running"
    assert run.up() == []


@pytest.mark.parametrize("code", [0, 1])
def test_a_lock_is_let_go_once_before_the_exit_handler_runs(code: int) -> None:
    run = locked()
    run.advance()
    assert run.held == {"seatrial/Mutex/roll-carts"}
    actions = run.end("a", code)
    assert [action for action in actions if isinstance(action, Release)] == [Release("seatrial/Mutex/roll-carts")]
    assert run.held == set()
    if code == 0:
        run.end("b")
    assert run.up() == ["w-1.onExit"]
    run.end("w-1.onExit")
    assert run.actions.count(Release("seatrial/Mutex/roll-carts")) == 1


def test_a_stop_while_waiting_for_a_lock_gives_it_up() -> None:
    run = locked()
    run.free = False
    run.advance()
    run.stop()
    assert run.phase("r") == "Pending"
    assert run.node("r").synchronization_status is None
    assert run.phase("w-1") == "Failed"
    assert not [action for action in run.actions if isinstance(action, Release)]
    run.end("w-1.onExit")
    assert run.outcome == ("Failed", "Stopped with strategy 'Stop'")


# Names


def test_a_nodes_id_is_argos() -> None:
    """FNV-1a, 32 bit. Source: the offset basis and a published test vector, "foobar" → 0xbf9cf968."""
    assert node_id("w", "w") == "w"
    assert node_id("w", "foobar") == f"w-{0xBF9CF968}"


def test_nodes_carry_the_times_between_which_they_were() -> None:
    run = Simulation(chain())
    run.advance()
    run.now += 2.5
    run.end("a", d="pass")
    assert run.node("a").started_at == "1970-01-12T13:46:40.000000Z"
    assert run.node("a").finished_at == "1970-01-12T13:46:42.500000Z"
    assert run.now == START + 2.5
