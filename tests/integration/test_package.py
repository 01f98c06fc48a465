"""package_model and evaluate_model with the real Triton and real processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import fakes_package as packing
import fakes_release as made
import psutil
import pytest
import s3_server
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from fakes_store import MemoryStore

from seatrial import bundle, verdict
from seatrial.adapters import s3, trees, triton
from seatrial.adapters.onnx_runtime import OnnxRuntime
from seatrial.errors import InvalidInput, Unavailable
from seatrial.triton import config, requests
from steps.package_model.__main__ import run

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
PRIVATE_PEM = made.KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
PUBLIC_PEM = made.KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture
def tritonserver(installed_triton: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The real one: SEATRIAL_TRITON, or what the sandbox installs."""
    found = os.environ.get(triton.TRITON) or str(installed_triton / "bin" / "tritonserver")
    monkeypatch.setenv(triton.TRITON, found)
    return found


def test_a_good_model_boots_and_answers_as_it_should(tmp_path: Path, tritonserver: str) -> None:
    store, case = MemoryStore(), made.case(tmp_path / "c", champion=made.Champion(made.onnx_model(price=1.4)))
    (tmp_path / "out").mkdir()
    ports = packing.ports(store, boot=triton.boot)
    outputs = run(packing.write_inputs(case), tmp_path / "out", ports)
    found = verdict.verify(outputs.verdict.read_bytes(), [made.KEY.public_key()])
    assert found.reasons == ()
    golden = next(check for check in found.checks if check.name == "golden_answers")
    assert golden.evidence["requests"] == 16
    difference = golden.evidence["max_abs_difference"]
    assert isinstance(difference, float)
    assert difference < 1e-6
    assert store.read(f"{bundle.papers_prefix(outputs.bundle_digest)}/package_model.dsse.json") is not None


def test_a_config_that_the_model_does_not_keep_is_refused_in_tritons_words(tmp_path: Path, tritonserver: str) -> None:
    case = made.case(tmp_path / "c")
    own = config.render(case.spec).replace("TYPE_INT64", "TYPE_INT32")
    (case.root / "source/config.pbtxt").write_text(own)
    (tmp_path / "out").mkdir()
    outputs = run(packing.write_inputs(case), tmp_path / "out", packing.ports(MemoryStore(), boot=triton.boot))
    found = verdict.verify(outputs.verdict.read_bytes(), [made.KEY.public_key()])
    boots = next(check for check in found.checks if check.name == "boots")
    assert boots.decision == "fail"
    assert "expects datatype TYPE_INT32 for input 'visits', model provides TYPE_INT64" in boots.reason


def repository(root: Path, text: str | None = None) -> Path:
    (root / "tea_orders" / "3").mkdir(parents=True)
    (root / "tea_orders" / "3" / "model.onnx").write_bytes(made.onnx_model())
    (root / "tea_orders" / "config.pbtxt").write_text(text or config.render(made.spec_of()))
    return root


def test_triton_says_who_answers_counts_and_ends_with_the_context(tmp_path: Path, tritonserver: str) -> None:
    case = made.case(tmp_path / "c")
    columns = packing.columns_of(case)
    answers = OnnxRuntime().answers(case.root / "model/model.onnx", columns, "probability")
    names = [str(i) for i in range(len(answers))]
    rows = requests.golden_rows(columns)[:5]
    with triton.boot(
        repository(tmp_path / "r"), model_name="tea_orders", version=3, log=tmp_path / "log", within_s=60
    ) as server:
        for example in requests.examples(case.spec, columns, answers, rows, names):
            answer = server.ask(requests.body(example))
            assert (answer.status, answer.version) == (200, 3)
            assert example.apart(answer.outputs) < 1e-6
        deadline = time.monotonic() + 5  # Triton counts a request just after its answer
        while server.statistics()["inference_count"] < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.statistics()["inference_count"] == 5
        refused = server.ask(b'{"inputs": []}')
        assert (refused.status, refused.version) == (400, None)
        assert refused.error
        children = [p for p in psutil.Process().children(recursive=True) if "triton" in p.name()]
        assert children
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=1)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("TYPE_STRING", "FP32", 'Unknown enumeration value of "FP32"'),
        ('name: "tea_orders"', 'name: "coffee"', "unexpected directory name"),
        ('name: "shop"', 'name: "store"', "unexpected inference input 'store'"),
    ],
)
def test_what_triton_refuses_is_told_in_its_words(
    tmp_path: Path, tritonserver: str, old: str, new: str, told: str
) -> None:
    text = config.render(made.spec_of()).replace(old, new)
    with (
        pytest.raises(InvalidInput, match=told),
        triton.boot(
            repository(tmp_path / "r", text), model_name="tea_orders", version=3, log=tmp_path / "log", within_s=60
        ),
    ):
        pytest.fail("it must not boot")


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def boot_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, within_s: float = 1.0) -> None:
    monkeypatch.setenv(triton.TRITON, script(tmp_path / "fake", text))
    with triton.boot(tmp_path, model_name="m", version=1, log=tmp_path / "log", within_s=within_s):
        pytest.fail("it must not boot")


def test_a_triton_that_never_gets_ready_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match="not ready in time; its log ends with: loading"):
        boot_script(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; echo loading; exec sleep 60")
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_what_triton_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="cannot serve this model: gone"):
        boot_script(tmp_path, monkeypatch, f"sleep 60 & echo $! > {tmp_path}/pid; echo gone", within_s=5)
    deadline = time.monotonic() + 5
    while (left := alive(int((tmp_path / "pid").read_text()))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_keys_and_credentials_are_not_handed_to_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_SIGNING_KEY", "private-words")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-words")
    with pytest.raises(InvalidInput):
        boot_script(tmp_path, monkeypatch, "env; exit 1", within_s=5)
    printed = (tmp_path / "log").read_text()
    assert "PATH=" in printed
    assert "words" not in printed


def test_no_triton_at_all_is_told_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(triton.TRITON, str(tmp_path / "nothing"))
    with (
        pytest.raises(Unavailable, match="set SEATRIAL_TRITON"),
        triton.boot(tmp_path, model_name="m", version=1, log=tmp_path / "log", within_s=1),
    ):
        pytest.fail("it must not boot")


def step(name: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"steps.{name}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_evaluation_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=made.Champion(made.onnx_model(price=1.4)))
    given = tmp_path / "io" / "in"
    given.mkdir(parents=True)
    for name in ("release", "source", "model", "answers", "holdout-rows", "champion"):
        suffix = {"release": ".json", "answers": ".npz", "holdout-rows": ".parquet"}.get(name, "")
        (given / name).symlink_to(case.root / f"{name.removesuffix('-rows')}{suffix}")
    environment = {
        "PATH": os.environ["PATH"],
        "SEATRIAL_IO": str(tmp_path / "io"),
        "SEATRIAL_SIGNING_KEY": PRIVATE_PEM,
    }
    done = step("evaluate_model", environment)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "io" / "out"
    assert (out / "params" / "decision").read_text() == "pass"
    found = verdict.verify((out / "verdict").read_bytes(), [made.KEY.public_key()])
    repeatable = next(check for check in found.checks if check.name == "repeatable")
    assert repeatable.evidence == {"max_abs_difference": 0.0, "tolerance": 1e-6, "processes": 3}
    assert PRIVATE_PEM not in done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "done"


def test_packaging_runs_as_a_process_of_its_own_and_twice_with_one_result(tmp_path: Path, tritonserver: str) -> None:
    case = made.case(tmp_path / "c")
    inputs = packing.write_inputs(case)
    given = tmp_path / "io" / "in"
    given.mkdir(parents=True)
    for name, path in inputs.model_dump().items():
        (given / name.replace("_", "-")).symlink_to(path)
    (tmp_path / "s3").mkdir()
    with s3_server.serving(tmp_path / "s3") as store:
        environment = {
            **store,
            "PATH": os.environ["PATH"],
            "SEATRIAL_IO": str(tmp_path / "io"),
            "SEATRIAL_SIGNING_KEY": PRIVATE_PEM,
            "SEATRIAL_TRUSTED_KEYS": PUBLIC_PEM,
            "SEATRIAL_REGISTRY": "localhost/seatrial",
            "SEATRIAL_SERVING_BASE": packing.BASE,
            triton.TRITON: tritonserver,
        }
        out = tmp_path / "io" / "out"
        results = []
        for _ in range(2):
            done = step("package_model", environment)
            assert done.returncode == 0, done.stderr
            results.append({path.name: path.read_bytes() for path in [*(out / "params").iterdir(), out / "context"]})
        assert results[0] == results[1]
        assert results[0]["decision"] == b"pass"
        digest = results[0]["bundle-digest"].decode()
        kept = trees.fetch_bundle(s3.from_environment(store), digest, tmp_path / "fetched")
    assert kept.digest == digest
