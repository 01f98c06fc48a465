"""The commands on a cluster, against an API that answers as Kubernetes does: what is asked for, told, exited with."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes_api_server import ARGO, CORE, ROUTES, SERVICES, SERVING, ApiServer, api_server, install
from fakes_serving import START

from seatrial.app import cli
from seatrial.app.commands import _runs, _submitting
from seatrial.route import RouteState

MODEL, NAME = "cart_abandonment", "cart-abandonment"
OWNER = "00000002-2fc8-49b7-a326-c47516015b87"
DATA = "s3://shop/visits.parquet"
DIGEST = f"sha256:{'ab' * 32}"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """A cluster with seatrial; the person has no credentials of the store."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "SEATRIAL_GATEWAY_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_submitting, "LOOK_S", 0.001)
    with api_server(tmp_path) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
        install(made)
        yield made
    assert not (tmp_path / "home").exists()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def submit(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    return said(capsys, "submit", MODEL, "--context", "staging", "--data", DATA, *more)


# Where it is


@pytest.mark.parametrize(
    "command",
    [["status"], ["submit", MODEL, "--data", DATA], ["rollback", MODEL], ["settle", MODEL], ["history", MODEL]],
)
def test_an_unknown_context_is_refused_with_those_that_there_are(
    command: list[str], server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, *command, "--context", "production")
    assert code == 78
    assert "no context 'production'; it has other, staging" in err
    assert server.created == []


def test_without_a_kubeconfig_the_person_is_told_how_to_name_one(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    code, _, err = said(capsys, "status", "--context", "staging")
    assert code == 78
    assert "set KUBECONFIG" in err


def test_a_namespace_without_seatrial_is_refused(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "status", "--context", "staging", "--namespace", "elsewhere")
    assert code == 78
    assert "seatrial is not installed there" in err


def test_an_api_that_is_away_is_75(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.away = 99
    assert said(capsys, "status", "--context", "staging")[0] == 75


# submit


@pytest.mark.parametrize("name", ["../x", "A b", "$(id)", "{{x}}", "a" * 31, "nobody"])
def test_a_model_that_the_form_does_not_offer_is_refused_before_anything_is_made(
    name: str, server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, "submit", "--context", "staging", "--data", DATA, "--", name)
    assert code == 78
    assert "known models: cart_abandonment, click_prediction" in err
    assert server.created == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--data", "rows.parquet"], "an address that the cluster's steps can read"),
        ([], "needs rows to learn from"),
        (["--data", DATA, "--reason", "{{workflow.name}}"], "REASON holds '{{'"),
        (["--version", "3"], "the store is not seen"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(
    more: list[str], why: str, server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, "submit", MODEL, "--context", "staging", *more)
    assert code == (75 if "--version" in more else 78)
    assert why in err
    assert server.created == []


def test_a_workflow_is_made_from_the_clusters_template(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = submit(capsys, "--no-follow", "--json", "--reason", "new campaign")
    (made,) = server.created
    assert code == 0
    assert json.loads(out) == {"model": MODEL, "run": made["metadata"]["name"], "release_id": made["metadata"]["uid"]}
    assert made["metadata"]["generateName"] == "release-cart-abandonment-"
    assert made["metadata"]["labels"]["seatrial.dev/model"] == NAME
    assert made["spec"] == {
        "workflowTemplateRef": {"name": "release"},
        "arguments": {
            "parameters": [
                {"name": "MODEL_NAME", "value": MODEL},
                {"name": "REASON", "value": "new campaign"},
                {"name": "DATA_URI", "value": DATA},
            ]
        },
    }


def pod(name: str, phase: str = "Succeeded", *, template: str = "", exit_code: str = "0", **outputs: str) -> Any:
    """A node as Argo writes it."""
    return {
        "id": name,
        "name": name,
        "displayName": name,
        "type": "Pod",
        "templateName": template or name,
        "phase": phase,
        "message": "" if exit_code == "0" else f"main: Error (exit code {exit_code}): it said why",
        "startedAt": "2026-01-01T12:00:00Z",
        "finishedAt": "2026-01-01T12:00:09Z",
        "inputs": {"parameters": [{"name": "version", "value": "4"}]} if name == "deploy-model" else {},
        "outputs": {
            "exitCode": exit_code,
            "parameters": [{"name": key.replace("_", "-"), "value": value} for key, value in outputs.items()],
        },
    }


RESOLVED = pod("resolve-release", outcome="new", version="4")
PACKAGED = pod("package-model", decision="pass", bundle_digest=DIGEST, repository="r/m")
BUILT = pod("build-image", digest=DIGEST)
DEPLOYED = pod("deploy-model", decision="pass", outcome="deployed")


def settled(outcome: str) -> Any:
    code = {"promoted": "0", "unchanged": "0", "refused": "10", "rolled_back": "11", "superseded": "12"}.get(
        outcome, "1"
    )
    phase = "Succeeded" if code == "0" else "Failed"
    return pod("x.onExit", phase, template="settle-release", exit_code=code, outcome=outcome)


def ends(server: ApiServer, *nodes: Any, **spec: Any) -> None:
    """The controller: Pending, Running, then over with these nodes."""
    looks = iter(["", "Running"])

    def goes_on(run: Any) -> None:
        phase = next(looks, "over")
        if phase == "over":
            green = all(node["phase"] == "Succeeded" for node in nodes)
            run["spec"].update(spec)
            run["status"] = {
                "phase": "Succeeded" if green else "Failed",
                "startedAt": "2026-01-01T12:00:00Z",
                "finishedAt": "2026-01-01T12:03:20Z",
                "nodes": {node["id"]: node for node in nodes},
            }
        elif phase:
            begun = {**RESOLVED, "phase": "Running", "finishedAt": None, "outputs": None}
            run["status"] = {"phase": phase, "nodes": {"resolve-release": begun}}

    server.goes_on = goes_on


ENDS: dict[str, tuple[list[Any], int, str]] = {
    "promoted": (
        [RESOLVED, PACKAGED, BUILT, DEPLOYED, pod("run-canary", outcome="promoted"), settled("promoted")],
        0,
        f"promoted {MODEL} v4  bundle sha256:abababababab  image sha256:abababababab  200 s",
    ),
    "unchanged": (
        [pod("resolve-release", outcome="unchanged", version="3"), settled("unchanged")],
        0,
        f"unchanged {MODEL} v3  200 s",
    ),
    "refused": (
        [RESOLVED, pod("validate-data", decision="fail"), settled("refused")],
        10,
        f"refused {MODEL} v4  validate-data says fail  200 s",
    ),
    "rolled back": (
        [
            RESOLVED,
            DEPLOYED,
            pod("run-canary", decision="fail", outcome="rolled_back", reason="errors: 9"),
            settled("rolled_back"),
        ],
        11,
        f"rolled_back {MODEL} v4  run-canary says rolled_back: errors: 9  200 s",
    ),
    "superseded": (
        [
            RESOLVED,
            pod("deploy-model", decision="inconclusive", outcome="superseded", reason="v5"),
            settled("superseded"),
        ],
        12,
        f"superseded {MODEL} v4  deploy-model says superseded: v5  200 s",
    ),
    "wrong input": (
        [pod("resolve-release", "Failed", exit_code="78"), settled("failed")],
        78,
        f"failed {MODEL}  resolve-release: it said why  200 s",
    ),
    "away": (
        [RESOLVED, pod("train-model", "Failed", exit_code="75"), settled("failed")],
        75,
        f"failed {MODEL} v4  train-model: it said why  200 s",
    ),
}
"""What the run's nodes are in the end → exit code and last line."""


@pytest.mark.parametrize(("nodes", "code", "line"), ENDS.values(), ids=ENDS)
def test_it_is_followed_to_its_end_and_ends_as_on_the_laptop(
    nodes: list[Any], code: int, line: str, server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(server, *nodes)
    came, out, err = submit(capsys)
    assert (came, err) == (code, "")
    told = out.splitlines()
    assert told[0] == "· submitted release-cart-abandonment-x1 to cluster staging"
    assert told[-1] == line
    assert "▶ resolve-release  starts" in told


def test_a_terminated_run_was_stopped_and_says_so(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    ends(server, RESOLVED, DEPLOYED, pod("run-canary", "Failed", exit_code="143"), shutdown="Terminate")
    code, out, _ = submit(capsys, "--json")
    facts = json.loads(out)
    assert (code, facts["outcome"]) == (130, "failed")
    assert facts["reasons"] == ["it was stopped while run-canary ran"]


def test_nodes_that_argo_packed_are_read(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    def goes_on(run: Any) -> None:
        nodes = json.dumps({"a": {**RESOLVED, "id": "a"}, "b": settled("refused")}).encode()
        run["status"] = {"phase": "Failed", "compressedNodes": base64.b64encode(gzip.compress(nodes)).decode()}

    server.goes_on = goes_on
    assert submit(capsys)[0] == 10


def test_an_api_that_is_away_for_a_moment_ends_no_following(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(server, RESOLVED, settled("refused"))
    whole = server.goes_on
    looks = iter(range(99))

    def goes_on(run: Any) -> None:
        if next(looks) == 1:
            server.away = 3
        whole(run)

    server.goes_on = goes_on
    assert submit(capsys)[0] == 10


def test_an_api_that_stays_away_ends_the_following_and_not_the_release(
    server: ApiServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_submitting, "AWAY_S", 0.05)
    server.goes_on = lambda _: setattr(server, "away", 10**6)
    code, _, err = submit(capsys)
    assert code == 75
    assert "it goes on by itself" in err


def test_ctrl_c_ends_the_watching_and_not_the_release(
    server: ApiServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_submitting, "_until_over", interrupted)
    code, out, _ = submit(capsys)
    assert code == 130
    assert "is not watched any more and goes on" in out
    assert f"{ARGO}/workflows/release-cart-abandonment-x1" in server.objects


# status, rollback, settle, adopt, history: with no right to the store


def serving(server: ApiServer, **changes: Any) -> None:
    """v2 serves, v1 served before."""
    state = RouteState(
        model_name=MODEL,
        exists=True,
        champion=2,
        previous=1,
        weights={2: 100},
        owner="r2",
        sequence=7,
        action="promote",
    ).but(**changes)
    server.put(f"{ROUTES}/{NAME}", state.manifest(SERVING))
    for version in {*state.weights, 1}:
        name = f"{NAME}-v{version}"
        labels = {"seatrial.dev/model": NAME}
        server.put(f"{SERVICES}/{name}", {"metadata": {"name": name, "labels": labels}, "spec": {}})


def trial(server: ApiServer) -> None:
    """v3 of OWNER is on trial."""
    later = START.replace(year=2999)
    serving(server, candidate=3, weights={2: 90, 3: 10}, owner=OWNER, watched_until=later, action="shift")


def weights(server: ApiServer) -> dict[str, int]:
    rules = server.objects[f"{ROUTES}/{NAME}"]["spec"]["rules"]
    return {ref["name"].removesuffix("-predictor"): ref["weight"] for ref in rules[-1]["backendRefs"]}


def run_of(server: ApiServer, name: str, *nodes: Any, phase: str = "Failed", uid: str = OWNER) -> None:
    completed = {"workflows.argoproj.io/completed": "true"} if phase in _runs.OVER else {}
    parameters = [{"name": "MODEL_NAME", "value": MODEL}]
    server.put(
        f"{ARGO}/workflows/{name}",
        {
            "metadata": {"name": name, "uid": uid, "labels": completed, "creationTimestamp": "2026-01-01T12:00:00Z"},
            "spec": {"workflowTemplateRef": {"name": "release"}, "arguments": {"parameters": parameters}},
            "status": {"phase": phase, "finishedAt": "2026-01-01T12:09:00Z", "nodes": {n["id"]: n for n in nodes}},
        },
    )


def test_status_tells_what_the_route_and_the_workflows_say_and_what_it_could_not_see(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(server)
    run_of(server, "release-a", RESOLVED, pod("validate-data", decision="fail"), settled("refused"))
    run_of(server, "release-b", {**RESOLVED, "phase": "Running"}, phase="Running", uid="u-b")
    code, out, err = said(capsys, "status", MODEL, "--context", "staging", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    (model,) = facts["models"]
    assert facts["place"] == "cluster staging"
    assert (model["champion"], model["weights"], model["answers"]) == (2, {"2": 100}, {})
    assert [(one["outcome"], one["version"], one["run"]) for one in model["outcomes"]] == [
        ("refused", 4, "release-a"),
        ("running", None, "release-b"),
    ]
    (trouble,) = model["trouble"]
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set here" in trouble
    assert [service["name"] for service in model["services"]] == [f"{NAME}-v1", f"{NAME}-v2"]


def test_status_as_a_page_needs_no_sandbox(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    serving(server)
    code, out, _ = said(capsys, "status", "--context", "staging")
    assert code == 0
    assert "champion     v2" in out
    assert "click_prediction" in out
    assert "sandbox" not in out


def test_a_secret_that_may_not_be_read_is_no_error(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    serving(server)
    server.forbidden.add(f"{CORE}/secrets/seatrial-store-credentials")
    code, out, _ = said(capsys, "status", MODEL, "--context", "staging", "--json")
    (model,) = json.loads(out)["models"]
    assert code == 0
    assert "not yours to read" in model["trouble"][0]


def test_credentials_that_may_be_read_are_used(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Here nobody listens at the store's address, which is what it then says."""
    install(server, credentials=True)
    serving(server)
    _, out, _ = said(capsys, "status", MODEL, "--context", "staging", "--json")
    (model,) = json.loads(out)["models"]
    assert "the store could not list" in model["trouble"][0]


def test_rollback_needs_the_route_and_nothing_else(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    serving(server)
    code, out, err = said(capsys, "rollback", MODEL, "--context", "staging", "--reason", "complaints")
    assert code == 0
    assert weights(server) == {f"{NAME}-v1": 100}
    assert out.startswith(f"rolled_back {MODEL}: the route says v1; who answers cannot be counted")
    assert "the ledger could not be written" in err
    says = server.objects[f"{ROUTES}/{NAME}"]["metadata"]["annotations"]
    assert (says["seatrial.dev/reason"], says["seatrial.dev/ledger-sequence"]) == ("complaints", "8")


def test_settle_takes_out_a_candidate_whose_run_is_over(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    trial(server)
    run_of(server, "release-a", RESOLVED, DEPLOYED)
    code, out, _ = said(capsys, "settle", MODEL, "--context", "staging")
    assert code == 0
    assert weights(server) == {f"{NAME}-v2": 100}
    assert "only the route was put right: the store is not seen" in out
    assert out.splitlines()[-1] == f"settled {MODEL}: v2 100 %"


def test_settle_leaves_a_run_that_is_alive(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    trial(server)
    run_of(server, "release-a", RESOLVED, DEPLOYED, phase="Running")
    before = server.objects[f"{ROUTES}/{NAME}"]
    assert said(capsys, "settle", MODEL, "--context", "staging")[0] == 0
    assert server.objects[f"{ROUTES}/{NAME}"] == before


def by_hand(server: ApiServer, version: int) -> None:
    route = server.objects[f"{ROUTES}/{NAME}"]
    route["spec"]["rules"][-1]["backendRefs"] = [{"name": f"{NAME}-v{version}-predictor", "port": 80, "weight": 1}]


def test_weights_written_with_kubectl_are_adopted(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    serving(server)
    by_hand(server, 1)
    assert said(capsys, "settle", MODEL, "--context", "staging")[0] == 78
    code, out, _ = said(capsys, "adopt", MODEL, "--context", "staging", "--reason", "incident")
    assert (code, out) == (0, f"adopted {MODEL}: v1 100 %\n")
    by_hand(server, 9)
    assert said(capsys, "adopt", MODEL, "--context", "staging", "--reason", "incident")[0] == 78


def test_history_without_the_store_says_that_it_sees_none(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(server)
    code, _, err = said(capsys, "history", MODEL, "--context", "staging")
    assert code == 75
    assert "the store is not seen" in err


def test_a_model_that_only_has_a_route_still_can_be_rolled_back(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its folder is gone from the source, and so from the form."""
    serving(server)
    parameters = server.objects[f"{ARGO}/workflowtemplates/release"]["spec"]["arguments"]["parameters"]
    parameters[0]["enum"] = ["click_prediction"]
    assert said(capsys, "rollback", MODEL, "--context", "staging")[0] == 0
    assert weights(server) == {f"{NAME}-v1": 100}


def test_the_length_of_a_run_is_from_its_creation_to_its_end() -> None:
    run = {"metadata": {"creationTimestamp": "2026-01-01T12:00:00Z"}, "status": {"finishedAt": "2026-01-01T12:00:09Z"}}
    assert _runs.seconds(run) == timedelta(seconds=9).total_seconds()
    assert _runs.seconds({"metadata": {}, "status": {}}) == 0


def test_what_to_do_is_said_as_it_is_done_on_that_cluster(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(server)
    del server.objects[f"{SERVICES}/{NAME}-v2"]
    (model,) = json.loads(said(capsys, "status", MODEL, "--context", "staging", "--json")[1])["models"]
    (trouble,) = (text for text in model["trouble"] if "no service" in text)
    assert f"`seatrial rollback {MODEL} --context staging` goes to v1" in trouble
    assert f"`seatrial submit {MODEL} --context staging --version 2` rolls it out again" in trouble
