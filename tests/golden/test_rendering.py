"""The committed templates are what pipelines/ renders, whole text; and rendering is a function of its inputs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipelines import __main__ as command
from pipelines import _docs
from pipelines._contracts import contracts
from pipelines.render import Rendering, model_names
from seatrial.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[2]


def models(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "model.yaml").write_text(f"model: {name}\n")
    return folder


def rendering(tmp_path: Path, *names: str) -> Rendering:
    return Rendering(models=models(tmp_path / "models", *names), out=tmp_path / "out", readme=tmp_path / "README.md")


def test_what_is_committed_is_what_is_rendered() -> None:
    whole = Rendering(models=ROOT / "models", out=ROOT / "workflow_templates", readme=ROOT / "README.md")
    assert whole.stale() == []


def test_rendering_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    models(tmp_path / "models", "b", "a")
    texts = set()
    for seed in ("0", "1"):
        out = tmp_path / seed
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pipelines",
                "render",
                "--models",
                tmp_path / "models",
                "--out",
                out,
                "--readme",
                out,
            ],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=ROOT,
        )
        texts.add((out / "release.yaml").read_text())
    assert len(texts) == 1


def test_the_enum_is_the_models_in_order(tmp_path: Path) -> None:
    whole = rendering(tmp_path, "clicks", "carts")
    (tmp_path / "models" / "no_model").mkdir()
    whole.write()
    document = yaml.safe_load((tmp_path / "out/release.yaml").read_text())
    asked = {p["name"]: p for p in document["spec"]["arguments"]["parameters"]}
    assert asked["MODEL_NAME"]["enum"] == ["carts", "clicks"]
    assert asked["MODEL_NAME"]["value"] == "carts"
    assert list(asked) == ["MODEL_NAME", "REVISION", "DATA_URI", "REASON"]
    assert all(p["description"] for p in asked.values())


def test_without_models_there_is_no_empty_enum(tmp_path: Path) -> None:
    whole = rendering(tmp_path)
    (tmp_path / "models").mkdir()
    whole.write()
    asked = yaml.safe_load((tmp_path / "out/release.yaml").read_text())["spec"]["arguments"]["parameters"]
    assert {"enum", "value"} & asked[0].keys() == set()


def test_a_folder_that_is_no_model_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a model name is"):
        model_names(models(tmp_path, "A-b"))


def test_check_names_the_stale_file_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = rendering(tmp_path, "carts")
    whole.write()
    target = tmp_path / "out/release.yaml"
    target.write_text(target.read_text().replace("carts", "other"))
    before = target.read_text()
    arguments = ["render", "--models", str(whole.models), "--out", str(whole.out), "--readme", str(whole.readme)]
    assert command.main([*arguments, "--check"]) == 1
    assert target.read_text() == before
    said = capsys.readouterr().err
    assert "release.yaml differs" in said
    assert re.search(r"^  \+ +- carts$", said, re.MULTILINE)
    assert command.main(arguments) == 0
    assert command.main([*arguments, "--check"]) == 0


def test_check_sees_a_missing_and_a_left_over_template(tmp_path: Path) -> None:
    whole = rendering(tmp_path, "carts")
    assert ["it is not there" in message for message in whole.stale()] == [True] * 3
    whole.write()
    (tmp_path / "out/old.yaml").write_text("")
    assert ["rendered by nothing" in message for message in whole.stale()] == [True]
    whole.write()
    assert not (tmp_path / "out/old.yaml").exists()


def test_a_missing_models_folder_exits_78(tmp_path: Path) -> None:
    assert command.main(["render", "--models", str(tmp_path / "none"), "--out", str(tmp_path)]) == 78


def test_the_step_table_stands_between_its_markers() -> None:
    text = _docs.with_table("a\n<!-- steps -->\nof yesterday\n<!-- /steps -->\nz\n")
    assert text.startswith("a\n<!-- steps -->\n| step |")
    assert text.endswith("<!-- /steps -->\nz\n")
    assert "yesterday" not in text
    assert all(f"| `{contracted.name}` |" in text for contracted in contracts())
    assert _docs.with_table(text) == text


def test_a_document_without_markers_is_left_alone() -> None:
    assert _docs.with_table("no table\n") == "no table\n"


def test_half_a_pair_of_markers_is_refused() -> None:
    with pytest.raises(InvalidInput, match="only one of them"):
        _docs.with_table("<!-- steps -->\n")
