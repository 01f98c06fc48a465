"""train_model as a whole: an owner's code of every kind, in a real child process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fakes_release as made
import numpy as np
import onnx
import pytest
from fakes_owner import GOOD, Tracker, trained
from onnx import TensorProto, helper

from seatrial.adapters.onnx_runtime import OnnxRuntime
from seatrial.errors import InvalidInput
from steps.train_model import descendants, isolation

IMPORTS = "import os, signal, sys, time, threading, json\nfrom pathlib import Path\n"


def before_training(code: str) -> str:
    """A good train.py that does something else first."""
    lines = "\n".join(f"    {line}" for line in code.strip().splitlines())
    return IMPORTS + GOOD.replace("    return TrainedModel", f"{lines}\n    return TrainedModel")


def refused(root: Path, code: str, **more: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        trained(root, code, **more)
    return str(caught.value)


def test_a_good_train_py_gives_its_model_its_answers_and_a_record(tmp_path: Path) -> None:
    tracker = Tracker()
    outputs = trained(tmp_path, tracker=tracker, training={"parameters": {"C": 0.5}, "seed": 3})
    assert outputs.run_id == "run-1"
    assert (outputs.model / "model.onnx").read_bytes() == made.onnx_model()
    record = json.loads(outputs.record.read_text())
    assert (record["losses"], record["parameters"], record["seed"], record["rows"]) == ([0.7, 0.5], {"C": 0.5}, 3, 200)
    assert record["isolation"] in {"process", "bubblewrap"}
    assert record["versions"]["numpy"] == np.__version__
    assert tracker.runs[0]["files"] == ["record.json"]
    assert not (tmp_path / "scratch/work").exists()


def test_the_answers_are_of_training_rows_an_unseen_word_and_a_gap(tmp_path: Path) -> None:
    outputs = trained(tmp_path)
    with np.load(outputs.answers) as told:
        columns = {name.removeprefix("input__"): told[name] for name in told.files if name != "answer"}
        answer = told["answer"]
    assert answer.shape == (202, 1)
    assert answer.dtype == np.float64
    assert {name: values.shape for name, values in columns.items()} == dict.fromkeys(
        ("price", "visits", "shop", "member"), (202, 1)
    )
    assert "a word that no row has" in columns["shop"]
    assert np.isnan(columns["price"]).any()
    served = OnnxRuntime().answers(outputs.model / "model.onnx", columns, "probability")
    assert np.abs(served - answer).max() <= 1e-5


def test_an_error_is_told_with_the_owners_own_file_and_line(tmp_path: Path) -> None:
    code = "def train(rows, parameters, seed):\n    return fit(rows)\n\ndef fit(rows):\n    return rows['none']\n"
    assert refused(tmp_path, code) == "train.py:5 failed: KeyError: 'none'"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def train(:\n", "train.py failed: SyntaxError"),
        ("import not_installed\n", "train.py:1 failed: ModuleNotFoundError"),
        ("x = 1\n", "must define train"),
        ("def train(rows):\n    pass\n", "takes 1 positional argument"),
        ("def train(rows, parameters, seed):\n    return {'onnx': b''}\n", "got dict"),
        ("def train(rows, parameters, seed):\n    return None\n", "got NoneType"),
        (GOOD.replace("onnx=MODEL", "onnx='text'"), "onnx must be bytes"),
        (GOOD.replace("onnx=MODEL", "onnx=b''"), "graph is not what model.yaml says|no valid ONNX"),
        (GOOD.replace("onnx=MODEL", "onnx=b'text'"), "no valid ONNX"),
        (GOOD.replace("[0.7, 0.5]", "[0.7, float('nan')]"), "loss must stay finite"),
        (GOOD.replace("[0.7, 0.5]", "[float('inf')]"), "loss must stay finite"),
        (GOOD.replace("[0.7, 0.5]", "['low']"), "could not convert string to float"),
        (GOOD.replace("answer=answer", "answer=lambda f: answer(f) * np.nan"), "values that are not finite"),
        (
            GOOD.replace("answer=answer", "answer=lambda f: answer(f)[:-1]"),
            r"array of shape \(202, 1\); got \(201, 1\)",
        ),
        (GOOD.replace("answer=answer", "answer=lambda f: answer(f)[:, 0]"), r"array of shape \(202, 1\); got \(202,\)"),
        (GOOD.replace("answer=answer", "answer=lambda f: 'high'"), "could not convert string to float"),
        (GOOD.replace("answer=answer", "answer=None"), "not callable"),
    ],
)
def test_code_that_gives_no_model_is_refused_with_the_reason(tmp_path: Path, code: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        trained(tmp_path, code)


def test_no_train_py_is_said_so(tmp_path: Path) -> None:
    assert "has no train.py" in refused(tmp_path, "")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("sys.exit(3)", "ended with exit code 3 before it gave back a model"),
        ("sys.exit(0)", "ended with exit code 0 before it gave back a model"),
        ("os._exit(0)", "ended with exit code 0 before it gave back a model"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9 before it gave back a model"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by signal 11"),
    ],
)
def test_a_process_that_ends_on_its_own_is_told_as_it_ended(tmp_path: Path, code: str, told: str) -> None:
    assert told in refused(tmp_path, before_training(code))


START = """
child = os.fork()
if child == 0:
    {leave}
    Path("started").write_text("yes")
    time.sleep(60)
    os._exit(0)
while not Path("started").exists():
    time.sleep(0.01)
"""


def left(root: Path) -> list[str]:
    """Processes whose environment names the folder, which only training's does."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(root).encode() in (folder / "environ").read_bytes():
                found.append(folder.name)
    return found


@pytest.mark.parametrize("leave", ["pass", "os.setsid()", "os.setsid()\n    if os.fork(): os._exit(0)"])
@pytest.mark.parametrize("ends", ["time.sleep(60)", "assert False", "pass"])
def test_what_training_started_is_gone_after_it(tmp_path: Path, leave: str, ends: str) -> None:
    code = before_training(START.format(leave=leave) + ends)
    started = time.monotonic()
    if ends == "pass":
        trained(tmp_path, code)
    elif ends == "assert False":
        assert "AssertionError" in refused(tmp_path, code)
    else:
        told = refused(tmp_path, code, training={"deadline_s": 3})
        assert told == "training took longer than its deadline_s of 3 s and was stopped"
    assert time.monotonic() - started < 30
    assert left(tmp_path) == []


def test_a_child_of_this_process_from_before_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "60"]) as before:
        with descendants.ended_at_exit():
            subprocess.run(["true"], check=True)
        assert before.poll() is None
        before.kill()


def test_a_thread_that_is_left_running_is_not_waited_for(tmp_path: Path) -> None:
    started = time.monotonic()
    trained(tmp_path, before_training("threading.Thread(target=time.sleep, args=(60,)).start()"))
    assert time.monotonic() - started < 20


def test_training_sees_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = (
        "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "SEATRIAL_SIGNING_KEY", "SEATRIAL_IO", "MLFLOW_TRACKING_URI",
        "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "GITHUB_TOKEN", "HOME",
    )  # fmt: skip
    for name in ours:
        monkeypatch.setenv(name, "ours-and-secret")
    code = before_training("raise RuntimeError(sorted(os.environ), 'ours-and-secret' in str(os.environ))")
    told = refused(tmp_path, code)
    allowed = {
        "CUDA_VISIBLE_DEVICES", "DO_NOT_TRACK", "HOME", "LANG", "LC_CTYPE", "PATH", "PWD", "PYTHONPATH",
        "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "TMPDIR",
    }  # fmt: skip
    names = told.partition("([")[2].partition("]")[0].replace("'", "").split(", ")
    assert {name for name in names if not name.startswith("_RJEM")} <= allowed  # Polars sets its allocator's own
    assert told.endswith("False)")


def test_the_record_says_which_isolation_held(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    code = before_training(f"try: Path({str(outside)!r}).write_text('x')\nexcept OSError: pass")
    record = json.loads(trained(tmp_path / "t", code).record.read_text())
    assert record["isolation"] == ("process" if outside.exists() else "bubblewrap")
    assert (record["isolation"] == "bubblewrap") == isolation.bubblewrap_works()


LOUD = "print('x' * (5 << 20)); print('{\"event\": \"done\"}')"


def test_what_training_prints_goes_to_stderr_and_not_for_ever(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path, before_training(LOUD))
    out, err = capfd.readouterr()
    assert [json.loads(line)["event"] for line in out.splitlines()] == ["training", "tracked"]
    assert 1 << 20 <= len(err) < (1 << 20) + 500
    assert "bytes of output left out" in err


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("Path('told.json').write_text('{'); os._exit(0)", "told.json that is none"),
        ("Path('told.json').write_text('[]'); os._exit(0)", "told.json that is none"),
        ('Path("told.json").write_text(\'{"losses": [], "versions": {}, "release_id": "x"}\'); os._exit(0)', "is none"),
        ("Path('told.json').mkdir(); os._exit(0)", "no plain file told.json"),
        ("os.mkfifo('told.json'); os._exit(0)", "no plain file told.json"),
        ("Path('told.json').symlink_to('/etc/passwd'); os._exit(0)", "without a readable told.json"),
        ("Path('fault.json').write_text('[1]'); os._exit(4)", "ended with exit code 4"),
        ("Path('fault.json').write_bytes(b'\\xff'); os._exit(4)", "ended with exit code 4"),
        ("Path('fault.json').symlink_to('/etc/passwd'); os._exit(4)", "ended with exit code 4"),
        ('Path("fault.json").write_text(\'{"error": {}, "where": 1}\'); os._exit(4)', "ended with exit code 4"),
        ("[os.remove(name) for name in os.listdir()]; os._exit(0)", "ended with exit code 0"),
    ],
)
def test_a_forged_note_is_refused_and_never_a_bug(tmp_path: Path, code: str, told: str) -> None:
    assert told in refused(tmp_path, before_training(code))


FORGED = """
def late(features):
    found = answer(features)
    real = os._exit
    def forge(code):
        {forge}
        real(0)
    os._exit = forge
    return found
"""


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        ("Path('answer.npy').write_bytes(b'no array')", "answer.npy that is none"),
        ("np.save('answer.npy', np.array([{}]), allow_pickle=True)", "answer.npy that is none"),
        ("np.save('answer.npy', np.array(['x']))", "no array of float64"),
        ("np.savez('a', x=1); os.rename('a.npz', 'answer.npy')", "no array of float64"),
        ("os.unlink('answer.npy')", "without a readable answer.npy"),
        ("os.unlink('model.onnx'); os.symlink('/etc/passwd', 'model.onnx')", "without a readable model.onnx"),
        ("os.unlink('model.onnx'); os.mkfifo('model.onnx')", "no plain file model.onnx"),
        ("os.truncate('model.onnx', 3 << 30)", "no plain file model.onnx of at most"),
    ],
)
def test_forged_files_are_refused_and_no_link_is_followed(tmp_path: Path, forge: str, told: str) -> None:
    code = IMPORTS + GOOD.replace("def train(", FORGED.format(forge=forge) + "\ndef train(")
    assert told in refused(tmp_path, code.replace("answer=answer", "answer=late"))


def changed(change: Any) -> bytes:
    model = onnx.load_model_from_string(made.onnx_model())
    change(model)
    serialised: bytes = model.SerializeToString()
    return serialised


def _rename(model: Any) -> None:
    model.graph.input[0].name = model.graph.node[0].input[0] = model.graph.node[1].input[2] = "prize"


def _element(model: Any) -> None:
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT32


def _fixed(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1


def _flat(model: Any) -> None:
    del model.graph.input[0].type.tensor_type.shape.dim[1]


def _more(model: Any) -> None:
    model.graph.output.append(helper.make_tensor_value_info("logit", TensorProto.FLOAT, [None, 1]))


def _wide(model: Any) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 2


def _foreign(model: Any) -> None:
    model.opset_import.append(helper.make_opsetid("com.example", 1))


def _beside(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../../etc/passwd")


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (changed(_rename), "input 'price' is missing; input 'prize' is not declared"),
        (changed(_element), "input 'visits' must be int64 of shape (batch, 1); it is int32 of shape (batch, 1)"),
        (changed(_fixed), "it is float of another shape than (batch, n)"),
        (changed(_flat), "it is float of another shape than (batch, n)"),
        (changed(_more), "output 'logit' is not declared"),
        (changed(_wide), "output 'probability' must be float of shape (batch, 1); it is float of shape (batch, 2)"),
        (changed(_foreign), "needs operators of 'com.example'"),
        (changed(_beside), "keeps 1 tensors in files beside it"),
        (made.onnx_model(output="chance"), "output 'probability' is missing; output 'chance' is not declared"),
        (made.onnx_model(opset=22), "opset 22"),
        (made.onnx_model(ir=11), "IR 11"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"no model", "no valid ONNX"),
        (b"", ""),
    ],
)
@pytest.mark.parametrize("kind", ["python", "onnx"])
def test_a_graph_that_is_not_what_the_spec_says_is_refused(tmp_path: Path, kind: str, model: bytes, told: str) -> None:
    training = {"kind": "onnx", "file": "trained.onnx"} if kind == "onnx" else None
    assert told in refused(tmp_path, GOOD, model=model, training=training)


ELSEWHERE = {"kind": "onnx", "file": "trained.onnx"}


def test_a_model_made_elsewhere_is_taken_and_answered_by_the_reference(tmp_path: Path) -> None:
    outputs = trained(tmp_path, "", training=ELSEWHERE)
    record = json.loads(outputs.record.read_text())
    assert (record["kind"], record["framework"], record["seed"]) == ("onnx", "onnx reference", None)
    with np.load(outputs.answers) as told:
        assert told["answer"].shape == (202, 1)


@pytest.mark.parametrize("name", ["none.onnx", "folder"])
def test_a_model_made_elsewhere_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "t/source").mkdir(parents=True)
    (tmp_path / "t/source").rmdir()
    assert f"has no {name}" in refused(tmp_path / "t", "", training={"kind": "onnx", "file": name})


def test_an_operator_that_the_reference_does_not_know_is_told(tmp_path: Path) -> None:
    def unknown(model: Any) -> None:
        model.graph.node[-1].op_type = "NoSuchOperator"

    def diverges(model: Any) -> None:
        model.graph.node[-1].op_type = "Log"

    assert "NoSuchOperator" in refused(tmp_path / "a", "", model=changed(unknown), training=ELSEWHERE)
    with np.errstate(all="ignore"):
        assert "not finite" in refused(tmp_path / "b", "", model=changed(diverges), training=ELSEWHERE)


def test_a_missing_setting_is_found_before_training(tmp_path: Path) -> None:
    class Away(Tracker):
        def __init__(self) -> None:
            raise InvalidInput("MLFLOW_TRACKING_URI is not set")

    with pytest.raises(InvalidInput, match="MLFLOW_TRACKING_URI"):
        trained(tmp_path, tracker=Away())
    assert not (tmp_path / "scratch").exists()


def test_the_step_itself_imports_no_training_library() -> None:
    program = "import sys, steps.train_model.__main__\nprint(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for heavy in ("sklearn", "pandas", "mlflow", "skl2onnx", "onnx.reference", "onnxruntime", "scipy"):
        assert f"'{heavy}'" not in done.stdout
