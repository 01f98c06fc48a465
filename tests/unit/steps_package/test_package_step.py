"""package_model as a whole, with real files and a Triton in memory."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes_package as packing
import fakes_release as made
import polars as pl
import pytest
from fakes_store import BrokenStore, MemoryStore

from seatrial import bundle, digests, verdict
from seatrial.adapters import trees
from seatrial.data.required import REQUIRED
from seatrial.errors import IntegrityError
from seatrial.evaluation.required import required
from seatrial.release import Release
from seatrial.triton import config, requests
from seatrial.verdict import Check, Verdict
from steps.package_model.__main__ import Ports, run
from steps.package_model.contract import Inputs, Outputs

V1 = made.Champion(made.onnx_model(price=1.4))


def packaged(inputs: Inputs, ports: Ports, folder: Path) -> tuple[Outputs, Verdict]:
    folder.mkdir()
    outputs = run(inputs, folder, ports)
    return outputs, verdict.verify(outputs.verdict.read_bytes(), [made.KEY.public_key()])


def check(found: Verdict, name: str) -> Check:
    return next(check for check in found.checks if check.name == name)


def test_a_good_model_is_kept_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    outputs, found = packaged(packing.write_inputs(case), packing.ports(store), tmp_path / "out")
    assert (outputs.decision, found.reasons) == ("pass", ())
    kept = trees.fetch_bundle(store, outputs.bundle_digest, tmp_path / "fetched")
    assert kept.model_digest == digests.of_file(case.root / "model/model.onnx")
    folder = bundle.papers_prefix(outputs.bundle_digest)
    assert {key.removeprefix(f"{folder}/") for key in store.keys(folder)} == {
        "evaluate_model.dsse.json",
        "evaluate_model.html",
        "golden.jsonl",
        "model-card.md",
        "package_model.dsse.json",
        "profile.json",
        "release.json",
        "replay.jsonl",
        "sbom.cdx.json",
        "spec.json",
        "training-record.json",
        "validate_data.dsse.json",
        "validate_data.html",
    }
    assert store.objects[f"{folder}/package_model.dsse.json"] == outputs.verdict.read_bytes()
    papers = {
        key.removeprefix(f"{folder}/"): digests.of_bytes(store.objects[key])
        for key in store.keys(folder)
        if not key.endswith("/package_model.dsse.json")
    }
    assert found.judged == {"bundle": outputs.bundle_digest, "model": kept.model_digest, **papers}


def test_the_manifest_and_then_the_verdicts_are_written_last(tmp_path: Path) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    packaged(packing.write_inputs(case), packing.ports(store), tmp_path / "out")
    names = [key.split("/", 2)[2] for key in store.writes]
    assert names[:3] == ["config.pbtxt", "model/model.onnx", "manifest.json"]
    assert names[-3:] == ["validate_data.dsse.json", "evaluate_model.dsse.json", "package_model.dsse.json"]


@pytest.mark.parametrize("writes", range(0, 16, 3))
def test_a_step_killed_half_way_is_finished_by_its_second_run(tmp_path: Path, writes: int) -> None:
    case, broken, whole = made.case(tmp_path / "c"), BrokenStore(writes), MemoryStore()
    inputs = packing.write_inputs(case)
    with pytest.raises(ConnectionError):
        packaged(inputs, packing.ports(broken), tmp_path / "killed")
    assert not any("package_model" in key for key in broken.objects)
    broken.left = -1
    again, _ = packaged(inputs, packing.ports(broken), tmp_path / "again")
    once, _ = packaged(inputs, packing.ports(whole), tmp_path / "once")
    assert broken.objects == whole.objects
    assert (again.tag, again.context.read_bytes()) == (once.tag, once.context.read_bytes())


def test_the_context_is_one_base_one_copy_and_labels(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=V1)
    outputs, _ = packaged(packing.write_inputs(case), packing.ports(MemoryStore()), tmp_path / "out")
    with tarfile.open(outputs.context) as archive:
        names = [entry.name for entry in archive if entry.isfile()]
        owners = {(entry.uid, entry.mtime, entry.mode) for entry in archive if entry.isfile()}
        text = archive.extractfile("Dockerfile")
        assert text is not None
        lines = text.read().decode().splitlines()
    assert names == ["Dockerfile", "models/tea_orders/2/model.onnx", "models/tea_orders/config.pbtxt"]
    assert owners == {(0, 0, 0o644)}
    assert lines == [
        f"FROM {packing.BASE}",
        "COPY models/ /models/",
        f'LABEL dev.seatrial.bundle="{outputs.bundle_digest}"',
        'LABEL dev.seatrial.model="tea_orders"',
        'LABEL dev.seatrial.version="2"',
    ]
    assert outputs.repository == "localhost/seatrial/tea-orders"
    assert len(outputs.tag) == 40


def test_golden_requests_hold_the_edges_and_no_row_without_a_value(tmp_path: Path) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    outputs, _ = packaged(packing.write_inputs(case), packing.ports(store), tmp_path / "out")
    golden = requests.parse(store.objects[f"{bundle.papers_prefix(outputs.bundle_digest)}/golden.jsonl"])
    replay = requests.parse(store.objects[f"{bundle.papers_prefix(outputs.bundle_digest)}/replay.jsonl"])
    frame = made.rows()
    priced = frame.filter(pl.col("price").is_not_null())
    ids = {example.id for example in golden}
    for edge in ("min", "max"):
        value = getattr(priced["price"], edge)()
        assert priced.filter(pl.col("price") == value)["order"].item() in ids
    assert len(golden) == 16
    assert len(replay) == len(priced)
    missing = set(frame.filter(pl.col("price").is_null())["order"])
    assert not missing & {example.id for example in [*golden, *replay]}


def test_a_model_that_triton_refuses_fails_with_tritons_words_and_nothing_is_kept(tmp_path: Path) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    ports = packing.ports(store, boot=packing.FakeBoot(refuses="triton cannot serve this model: no"))
    outputs, found = packaged(packing.write_inputs(case), ports, tmp_path / "out")
    assert (outputs.decision, check(found, "boots").reason) == ("fail", "triton cannot serve this model: no")
    assert "golden_answers" not in {c.name for c in found.checks}
    assert store.objects == {}
    assert (outputs.bundle_digest, outputs.repository, outputs.tag) == ("", "", "")


@pytest.mark.parametrize(("shift", "decision"), [(0.9e-4, "pass"), (1.2e-4, "fail"), (float("nan"), "fail")])
def test_golden_answers_may_differ_by_the_tolerance_and_no_more(tmp_path: Path, shift: float, decision: str) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    ports = packing.ports(store, boot=packing.FakeBoot(shift=shift))
    _, found = packaged(packing.write_inputs(case), ports, tmp_path / "out")
    assert check(found, "golden_answers").decision == decision
    assert bool(store.objects) == (decision == "pass")


def test_an_answer_of_another_version_is_none(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c")
    ports = packing.ports(MemoryStore(), boot=packing.FakeBoot(version=7))
    _, found = packaged(packing.write_inputs(case), ports, tmp_path / "out")
    assert check(found, "golden_answers").decision == "fail"
    assert "version 7" in check(found, "golden_answers").reason


def test_when_no_row_can_be_sent_nothing_is_decided(tmp_path: Path) -> None:
    frame = made.rows().with_columns(price=pl.lit(None, pl.Float32))
    case = made.case(tmp_path / "c", frame=frame)
    _, found = packaged(packing.write_inputs(case), packing.ports(MemoryStore()), tmp_path / "out")
    assert check(found, "golden_answers").decision == "inconclusive"
    assert found.decision == "inconclusive"


def test_an_owners_config_is_taken_as_it_stands(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c")
    own = "# ours\n" + config.render(case.spec)
    (case.root / "source/config.pbtxt").write_text(own)
    store = MemoryStore()
    outputs, _ = packaged(packing.write_inputs(case), packing.ports(store), tmp_path / "out")
    assert store.objects[f"{bundle.prefix(outputs.bundle_digest)}/config.pbtxt"].decode() == own


def test_an_owners_config_that_serves_something_else_fails(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c")
    own = config.render(case.spec).replace("TYPE_INT64", "TYPE_INT32")
    (case.root / "source/config.pbtxt").write_text(own)
    _, found = packaged(packing.write_inputs(case), packing.ports(MemoryStore()), tmp_path / "out")
    assert check(found, "config").decision == "fail"
    assert "TYPE_INT32" in check(found, "config").reason


def test_an_onnx_file_newer_than_the_serving_base_fails(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", model=made.onnx_model(ir=11))
    _, found = packaged(packing.write_inputs(case), packing.ports(MemoryStore()), tmp_path / "out")
    assert "IR 11" in check(found, "config").reason
    assert found.decision == "fail"


def test_a_schema_that_breaks_callers_of_the_champion_fails(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=V1)
    inputs = packing.write_inputs(case)
    packaged(inputs, packing.ports(MemoryStore()), tmp_path / "fine")
    root = case.root / "champion/bundle"
    text = root / "config.pbtxt"
    text.write_text(text.read_text().replace('name: "visits"', 'name: "visits_before"'))
    (root / "manifest.json").unlink()
    assert case.release.champion is not None
    served = case.release.champion.model_copy(update={"bundle": bundle.seal(root, "tea_orders").digest})
    release = case.release.model_copy(update={"champion": served})
    changed = made.Case(root=case.root, spec=case.spec, release=release)
    (case.root / "release.json").write_text(release.model_dump_json())
    _, found = packaged(packing.write_inputs(changed), packing.ports(MemoryStore()), tmp_path / "out")
    assert check(found, "request_schema").decision == "fail"
    assert "visits_before" in check(found, "request_schema").reason


def test_the_schema_is_required_once_somebody_calls_the_model(tmp_path: Path) -> None:
    _, first = packaged(packing.write_inputs(made.case(tmp_path / "c")), packing.ports(MemoryStore()), tmp_path / "out")
    case = made.case(tmp_path / "d", champion=V1)
    _, second = packaged(packing.write_inputs(case), packing.ports(MemoryStore()), tmp_path / "out2")
    assert set(second.required) - set(first.required) == {"request_schema"}


def other_release(case: made.Case, **changed: Any) -> Release:
    return case.release.model_copy(update=changed)


def data_verdict(case: made.Case, judged: dict[str, str] | None = None, **changes: Any) -> bytes:
    """The data's verdict as it should be, but for `changes`."""
    good: dict[str, Any] = {"gate": "validate_data", "required": REQUIRED, **changes}
    return made.signed(case, good.pop("gate"), {**packing.data_judged(case), **(judged or {})}, **good)


FORGERIES: dict[str, tuple[Callable[[made.Case], bytes], str]] = {
    "unsigned": (lambda c: strip_signature(data_verdict(c)), "no valid signature"),
    "foreign": (lambda c: data_verdict(c, key=made.FOREIGN_KEY), "no valid signature"),
    "another gate": (lambda c: data_verdict(c, gate="package_model"), "a verdict of validate_data is needed"),
    "refused": (lambda c: data_verdict(c, decision="fail"), "must have passed"),
    "undecided": (lambda c: data_verdict(c, decision="inconclusive"), "must have passed"),
    "another release": (lambda c: data_verdict(c, release=other_release(c, release_id="uid-1")), "must be of release"),
    "another version": (lambda c: data_verdict(c, release=other_release(c, version=9)), "must be of release"),
    "other rows": (lambda c: data_verdict(c, {"holdout_rows": made.ZERO}), "judged holdout_rows"),
    "other data": (lambda c: data_verdict(c, {"data": made.ZERO}), "judged data"),
    "fewer checks": (lambda c: data_verdict(c, required=REQUIRED[1:]), f"without the checks .*{REQUIRED[0]}"),
    "no JSON": (lambda _: b"pass", "must be a DSSE envelope"),
}


def strip_signature(envelope: bytes) -> bytes:
    return json.dumps({**json.loads(envelope), "signatures": []}).encode()


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_data_verdict_that_does_not_fit_stops_packaging(tmp_path: Path, forgery: str) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    inputs = packing.write_inputs(case)
    forge, words = FORGERIES[forgery]
    inputs.data_verdict.write_bytes(forge(case))
    with pytest.raises(IntegrityError, match=words):
        packaged(inputs, packing.ports(store), tmp_path / "out")
    assert store.objects == {}


@pytest.mark.parametrize("name", ["model", "model_files", "holdout_rows", "champion"])
def test_an_evaluation_of_other_files_stops_packaging(tmp_path: Path, name: str) -> None:
    case = made.case(tmp_path / "c", champion=V1)
    inputs = packing.write_inputs(case)
    judged = {**packing.evaluation_judged(case), name: made.ZERO}
    checks = required(case.spec, champion=True)
    inputs.evaluation_verdict.write_bytes(made.signed(case, "evaluate_model", judged, required=checks))
    with pytest.raises(IntegrityError, match=f"judged {name} "):
        packaged(inputs, packing.ports(MemoryStore()), tmp_path / "out")


def test_an_evaluation_with_fewer_checks_than_the_spec_asks_for_stops_packaging(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=V1)
    inputs = packing.write_inputs(case)
    fewer = required(case.spec, champion=False)
    inputs.evaluation_verdict.write_bytes(
        made.signed(case, "evaluate_model", packing.evaluation_judged(case), required=fewer)
    )
    with pytest.raises(IntegrityError, match="without the checks"):
        packaged(inputs, packing.ports(MemoryStore()), tmp_path / "out")


def test_external_data_beside_the_model_is_in_the_bundle(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c")
    (case.root / "model" / "weights.bin").write_bytes(b"123")
    store = MemoryStore()
    outputs, _ = packaged(packing.write_inputs(case), packing.ports(store), tmp_path / "out")
    assert store.objects[f"{bundle.prefix(outputs.bundle_digest)}/model/weights.bin"] == b"123"


def test_the_bill_of_materials_lists_every_file_with_its_sha256(tmp_path: Path) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    outputs, _ = packaged(packing.write_inputs(case), packing.ports(store), tmp_path / "out")
    listed = json.loads(store.objects[f"{bundle.papers_prefix(outputs.bundle_digest)}/sbom.cdx.json"])
    kept = trees.fetch_bundle(store, outputs.bundle_digest, tmp_path / "fetched")
    found = {part["name"]: f"sha256:{part['hashes'][0]['content']}" for part in listed["components"]}
    assert (listed["bomFormat"], found) == ("CycloneDX", kept.files)


def test_a_place_taken_by_other_content_is_never_overwritten(tmp_path: Path) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c")
    inputs = packing.write_inputs(case)
    outputs, _ = packaged(inputs, packing.ports(store), tmp_path / "out")
    key = f"{bundle.prefix(outputs.bundle_digest)}/model/model.onnx"
    store.objects[key] = b"somebody else's"
    with pytest.raises(IntegrityError, match="written once"):
        packaged(inputs, packing.ports(store), tmp_path / "again")
    assert store.objects[key] == b"somebody else's"
