"""`report` and `logs`: the release that a person means, on a page safe to open anywhere, and what its steps printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import fakes_release as made
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fakes_api_server import ARGO, CORE, ApiServer, api_server, install

from seatrial import digests, report, verdict
from seatrial.app import cli
from seatrial.app.views.safe_html import fit
from seatrial.errors import IntegrityError
from seatrial.verdict import Check, Verdict

MODEL = "cart_abandonment"
OLD, NEW = "release-old", "release-new"
HOSTILE = (
    "<!doctype html><title>x</title><style>*{width:9999px}</style><h1 onclick=alert(1)>evaluated</h1>"
    "<script>alert(2)</script><img src=https://elsewhere.example/a.png><a href=https://elsewhere.example>there</a>"
    '<table style="width:9999px"><tr><td>a<td>b</table><iframe src=x>inside</iframe>'
    '<svg viewBox="0 0 9 9" onload=alert(3)><title>curve</title><rect fill="url(https://elsewhere.example)"/></svg>'
)


def failed_verdict() -> Verdict:
    check = Check(name="floor_auc", decision="fail", reason="auc 0.51; wanted 0.6", evidence={"auc": 0.51})
    return Verdict(
        gate="evaluate_model",
        model_name=MODEL,
        version=3,
        release_id="uid-new",
        decision="fail",
        required=("floor_auc",),
        checks=(check,),
        judged={"model": made.ZERO},
        policy=made.ZERO,
    )


def node(run: str, step: str, number: int, phase: str = "Succeeded", **more: Any) -> dict[str, Any]:
    name = f"{run}.onExit" if step == "settle-release" else step
    parameters = [{"name": key.replace("_", "-"), "value": value} for key, value in more.get("given", {}).items()]
    artifacts = [
        {"name": kind, "path": f"/io/out/{kind}", "s3": {"key": f"{run}/{run}-{number}/io/out/{kind}"}}
        for kind in more.get("files", ())
    ]
    return {
        "id": f"{run}-{number}",
        "displayName": name,
        "type": "Pod",
        "templateName": step,
        "phase": phase,
        "startedAt": f"2026-01-01T12:00:{number:02d}Z",
        "finishedAt": f"2026-01-01T12:00:{number + 5:02d}Z",
        "outputs": {"exitCode": "0", "parameters": parameters, "artifacts": artifacts},
    }


def workflow(run: str, uid: str, hour: int, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "metadata": {"name": run, "uid": uid, "creationTimestamp": f"2026-01-01T{hour:02d}:00:00Z"},
        "spec": {
            "workflowTemplateRef": {"name": "release"},
            "arguments": {"parameters": [{"name": "MODEL_NAME", "value": MODEL}]},
        },
        "status": {
            "phase": "Succeeded",
            "finishedAt": f"2026-01-01T{hour:02d}:01:30Z",
            "nodes": {one["id"]: one for one in nodes},
        },
    }


def keep(runs: Path, flow: dict[str, Any]) -> None:
    folder = runs / flow["metadata"]["name"]
    folder.mkdir(parents=True)
    (folder / "workflow.json").write_text(json.dumps(flow))
    for one in flow["status"]["nodes"].values():
        (folder / one["id"]).mkdir()
        (folder / one["id"] / "main.log").write_text(f"{one['id']} printed this\n")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two releases of one model: v2 was promoted; v3, the last, was refused by a gate whose report is hostile."""
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "home" / "runs"
    old = [node(OLD, "resolve-release", 1, given={"version": "2"}), node(OLD, "settle-release", 9, files=["summary"])]
    new = [
        node(NEW, "resolve-release", 1, given={"version": "3"}, files=["release"]),
        node(NEW, "train-model", 2, "Failed"),
        node(NEW, "train-model", 3),
        node(NEW, "evaluate-model", 4, given={"decision": "fail"}, files=["verdict", "report"]),
        node(NEW, "settle-release", 9, files=["summary"]),
    ]
    keep(folder, workflow(OLD, "uid-old", 9, old))
    keep(folder, workflow(NEW, "uid-new", 10, new))
    told = {"outcome": "refused", "version": 3, "reasons": ["evaluate-model: floor_auc: auc 0.51; wanted 0.6"]}
    write(folder, NEW, 9, "summary", json.dumps(told).encode())
    write(folder, OLD, 9, "summary", json.dumps({"outcome": "promoted", "version": 2}).encode())
    write(folder, NEW, 1, "release", json.dumps({"revision": "abc", "data_digest": made.ZERO}).encode())
    write(folder, NEW, 4, "verdict", verdict.sign(failed_verdict(), Ed25519PrivateKey.generate()))
    write(folder, NEW, 4, "report", HOSTILE.encode())
    return folder


def write(runs: Path, run: str, number: int, kind: str, data: bytes) -> None:
    place = runs / run / f"{run}-{number}" / "io" / "out" / kind
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


class Strict(HTMLParser):
    """Fails on a tag that is not closed where it should be; collects every tag and attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Strict:
    reader = Strict()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_the_outcome_and_why_come_first(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "report", MODEL)
    assert (code, out) == (0, f"{MODEL}-{NEW}.html\n")
    text = Path(out.strip()).read_text()
    body = text.partition("<body>")[2]
    assert body.startswith(f'\n<h1 class="fail">refused {MODEL} v3</h1>\n<p>floor_auc: auc 0.51; wanted 0.6</p>')
    order = [body.index(word) for word in ("<h2>Steps", "train-model", "<h2>Gates", "evaluated", "<h2>Version")]
    assert order == sorted(order)
    assert "abc" in body
    assert made.ZERO in body


def test_the_page_is_well_formed_and_fetches_runs_and_overflows_nothing(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "report", MODEL, "-o", "page.html")
    text = Path("page.html").read_text()
    page = parsed(text)
    names = {tag for tag, _ in page.tags}
    assert names & {"script", "img", "a", "iframe", "link", "object", "form"} == set()
    assert not [key for _, given in page.tags for key in given if key.startswith("on") or key in {"src", "href"}]
    assert "elsewhere.example" not in text
    assert "alert(" not in text
    assert "@import" not in text
    assert "url(" not in text
    fixed = re.compile(r"(?<!max-)(?<!min-)width:\s*\d+(\.\d+)?(px|rem|em|pt)")
    assert fixed.search(text) is None
    assert ("meta", {"name": "viewport", "content": "width=device-width,initial-scale=1"}) in page.tags


def test_of_a_foreign_report_the_evidence_stays(runs: Path) -> None:
    assert fit("<h1>a</h1><table><tr><td>b<td>c</table>") == ("<h3>a</h3><table><tr><td>b</td><td>c</td></tr></table>")
    picture = fit('<svg viewBox="0 0 9 9"><title>curve</title><rect x="1" fill="red"/></svg>')
    assert picture == '<svg viewBox="0 0 9 9"><title>curve</title><rect x="1" fill="red"></rect></svg>'


def test_a_gate_without_a_report_is_told_by_its_verdict(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / NEW / f"{NEW}-4" / "io" / "out" / "report").unlink()
    said(capsys, "report", MODEL, "-o", "page.html")
    text = Path("page.html").read_text()
    assert "auc 0.51; wanted 0.6</td>" in text
    parsed(text)
    parsed(fit(report.page(failed_verdict())))


def test_evidence_that_is_gone_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / NEW / f"{NEW}-4" / "io" / "out" / "verdict").unlink()
    assert said(capsys, "report", MODEL, "-o", "page.html")[0] == 0
    assert f"its verdict is gone: {NEW}/{NEW}-4/io/out/verdict" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("called", "run"),
    [([MODEL], NEW), ([MODEL, "v2"], OLD), ([MODEL, "3"], NEW), ([OLD], OLD), (["uid-old"], OLD)],
)
def test_a_release_is_found_by_each_of_its_names(
    called: list[str], run: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, "report", *called, "--json")
    facts = json.loads(out)
    assert (code, facts["run"], facts["page"]) == (0, run, None)
    assert list(Path().glob("*.html")) == []


@pytest.mark.parametrize(
    ("called", "why"),
    [
        (
            ["nobody"],
            f"there is no model 'nobody'; known models: cart_abandonment, click_prediction; known runs: {NEW}",
        ),
        ([MODEL, "v9"], f"no release of {MODEL} v9 is kept; known runs: {NEW} ({MODEL} v3), {OLD} ({MODEL} v2)"),
        ([MODEL, "0"], "a version is written v3 or 3; got '0'"),
        (["../x"], "known runs"),
        ([MODEL, "-o", "absent/page.html"], "the page cannot be written to absent/page.html"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    called: list[str], why: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, "report", *called)
    assert code == 78
    assert why in err


def test_a_run_that_is_not_over_says_so(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / NEW / "workflow.json"
    flow = json.loads(path.read_text())
    flow["status"]["phase"] = "Running"
    path.write_text(json.dumps(flow))
    facts = json.loads(said(capsys, "report", MODEL, "--json")[1])
    why = f"it runs, or its runner was killed: `seatrial status {MODEL}` tells who serves"
    assert (facts["outcome"], facts["version"], facts["reasons"]) == ("running", 3, [why])


def test_a_run_whose_file_is_broken_spoils_no_other(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / NEW / "workflow.json").write_text("{")
    assert json.loads(said(capsys, "report", MODEL, "--json")[1])["run"] == OLD


def test_a_claimed_verdict_needs_no_key_but_must_be_one() -> None:
    signed = verdict.sign(failed_verdict(), Ed25519PrivateKey.generate())
    assert verdict.claimed(signed) == failed_verdict()
    for broken in (b"", b"{}", digests.canonical({"payload": "e30="})):
        with pytest.raises(IntegrityError):
            verdict.claimed(broken)


# logs


def test_logs_prints_every_attempt_in_order(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "logs", MODEL, "train-model")
    assert (code, out) == (0, f"{NEW}-2 printed this\n{NEW}-3 printed this\n")
    assert "attempt 1 of 2: Failed" in err


def test_logs_as_json(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(said(capsys, "logs", MODEL, "resolve-release", "--version", "v2", "--json")[1])
    assert facts["attempts"] == [{"pod": f"{OLD}-1", "phase": "Succeeded", "log": f"{OLD}-1 printed this\n"}]


def test_an_unknown_step_is_refused_with_those_that_ran(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "logs", MODEL, "bake-cake")
    assert code == 78
    ran = "resolve-release, train-model, evaluate-model, settle-release"
    assert f"{NEW} ran no step 'bake-cake'; it ran {ran}" in err


def test_a_log_that_is_gone_says_so(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / NEW / f"{NEW}-4" / "main.log").unlink()
    code, _, err = said(capsys, "logs", MODEL, "evaluate-model")
    assert code == 78
    assert "is gone" in err


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """A cluster with one release that runs; the person has no credentials of the store."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "SEATRIAL_GATEWAY_URL"):
        monkeypatch.delenv(name, raising=False)
    with api_server(tmp_path) as made_server:
        monkeypatch.setenv("KUBECONFIG", str(made_server.kubeconfig))
        monkeypatch.chdir(tmp_path)
        install(made_server)
        archived = node(NEW, "resolve-release", 1, given={"version": "3"}, files=["main-logs"])
        flow = workflow(NEW, "uid-new", 10, [archived, node(NEW, "train-model", 2, "Running")])
        flow["status"]["phase"] = "Running"
        made_server.put(f"{ARGO}/workflows/{NEW}", flow)
        made_server.put(f"{CORE}/pods/{NEW}-train-model-2/log", {"event": "epoch"})
        yield made_server


def test_on_a_cluster_a_step_that_runs_is_read_from_its_pod(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, "logs", MODEL, "train-model", "--context", "staging")
    assert code == 0
    assert '"epoch"' in out


def test_on_a_cluster_a_step_that_is_over_is_read_from_the_store(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, "logs", MODEL, "resolve-release", "--context", "staging")
    assert code == 75
    assert "the store is not seen" in err


def test_on_a_cluster_the_page_is_made_from_what_can_be_seen(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, "report", NEW, "--context", "staging")
    assert code == 0
    text = Path(out.strip()).read_text()
    assert f"running {MODEL} v3" in text
    parsed(text)
