"""Every step in steps/: five files, a closed contract, an image of its own part of the lock."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from pipelines._contracts import Contracted, contracts, default_text, is_folder, janitor
from seatrial.app.builder import HIDDEN
from steps._contract import Contract

ROOT = Path(__file__).resolve().parents[2]
ALL = [pytest.param(contracted, id=contracted.package) for contracted in contracts()]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
OURS = {"seatrial", "steps"}
each_step = pytest.mark.parametrize("contracted", ALL)
each_contract = pytest.mark.parametrize("contracted", [*ALL, pytest.param(janitor(), id="settle")])


def folder(contracted: Contracted) -> Path:
    return ROOT / "steps" / contracted.package


def dockerfile(contracted: Contracted) -> list[tuple[str, str]]:
    """Instruction and what follows, lines joined and comments left out."""
    text = re.sub(r"\\\n\s*", "", (folder(contracted) / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def final_stage(contracted: Contracted) -> list[tuple[str, str]]:
    lines = dockerfile(contracted)
    last = max(number for number, (word, _) in enumerate(lines) if word == "FROM")
    return lines[last:]


def test_there_are_eight_steps() -> None:
    assert len(ALL) == 8


@each_step
def test_a_step_has_its_files(contracted: Contracted) -> None:
    names = {path.name for path in folder(contracted).iterdir()}
    assert {"__init__.py", "__main__.py", "contract.py", "Dockerfile"} <= names


@each_contract
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_contract_is_frozen_closed_and_described(contracted: Contracted, side: str) -> None:
    model: type[Contract] = getattr(contracted, side)
    assert model.model_config["frozen"] is True
    assert model.model_config["extra"] == "forbid"
    assert model.__doc__
    for name, field in model.model_fields.items():
        assert len(field.description or "") > 5, name


@each_step
def test_names_are_kebab_and_none_stands_twice(contracted: Contracted) -> None:
    for model in (contracted.inputs, contracted.outputs):
        names = [*model.parameters(), *model.artifacts()]
        assert all(re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) for name in names)
        assert len(set(names)) == len(names) == len(model.model_fields)
    assert re.fullmatch(r"[a-z]+_[a-z]+", contracted.package)


@each_contract
def test_an_output_parameter_has_a_default_that_no_gate_takes_for_pass(contracted: Contracted) -> None:
    defaults = {name: default_text(field) for name, field in contracted.outputs.parameters().items()}
    assert not {"pass", "new", "promoted", "deployed", "unchanged"} & set(defaults.values())
    assert all(field.is_required() for field in contracted.outputs.artifacts().values())


@each_contract
def test_inputs_have_no_default(contracted: Contracted) -> None:
    assert all(field.is_required() for field in contracted.inputs.model_fields.values())


@each_contract
def test_parameters_are_small_values_no_structures(contracted: Contracted) -> None:
    for model in (contracted.inputs, contracted.outputs):
        for field in model.parameters().values():
            named = str(field.annotation)
            assert not re.search(r"\b(dict|list|tuple|set|Any)\b", named)
            assert not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel))


@each_contract
def test_an_unknown_input_is_refused(contracted: Contracted) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        contracted.inputs.model_validate_strings({"no_such_input": "x"})


@each_contract
def test_a_step_says_how_it_runs(contracted: Contracted) -> None:
    step = contracted.step
    assert step.summary.endswith(".")
    assert 0 < step.deadline_s <= 86_400
    assert step.retries == 3
    assert len(set(step.needs)) == len(step.needs)


def test_a_file_is_a_file_or_a_folder_on_both_of_its_ends() -> None:
    kinds: dict[str, set[bool]] = {}
    for contracted in contracts():
        for model in (contracted.inputs, contracted.outputs):
            for name, field in model.artifacts().items():
                kinds.setdefault(name, set()).add(is_folder(field))
    mixed = {name for name, seen in kinds.items() if len(seen) > 1}
    assert mixed == set()


def test_a_teams_code_sees_no_held_out_row() -> None:
    train = next(contracted for contracted in contracts() if contracted.package == "train_model")
    assert not {name for name in train.inputs.artifacts() if "holdout" in name or name == "data"}
    assert not {"store", "signing", "cluster"} & set(train.step.needs)


# Images


@each_step
def test_an_image_runs_its_step_as_nobody_in_particular(contracted: Contracted) -> None:
    stage = final_stage(contracted)
    users = [rest for word, rest in stage if word == "USER"]
    entry = [json.loads(rest) for word, rest in stage if word == "ENTRYPOINT"]
    assert users == ["10001:10001"]
    assert entry == [["python3", "-m", f"steps.{contracted.package}"]]
    assert [word for word, _ in stage][-2:] == ["USER", "ENTRYPOINT"]


@each_step
def test_an_image_holds_the_library_and_the_steps_own_package(contracted: Contracted) -> None:
    copied = [tuple(rest.split()) for word, rest in dockerfile(contracted) if word == "COPY"]
    assert copied == [
        ("--from=uv", "/uv", "/usr/local/bin/uv"),
        (f"locks/steps/{contracted.name}.txt", "/lock.txt"),
        ("infra/images/slim.py", "/slim.py"),
        ("seatrial", "/app/seatrial"),
        ("steps/_*.py", "/app/steps/"),
        (f"steps/{contracted.package}", f"/app/steps/{contracted.package}"),
        ("--from=build", "/site", "/site"),
        ("--from=build", "/app", "/app"),
    ]


@each_step
def test_what_runs_is_compiled_and_nothing_runs_in_the_image_itself(contracted: Contracted) -> None:
    """Nobody may write into the image later; a volume of the build could leave its mount point there."""
    runs = [json.loads(rest) for word, rest in dockerfile(contracted) if word == "RUN"]
    assert [run for run in runs if run[0] == "python3"] == [
        ["python3", "/slim.py", place] for place in ("/site", "/app")
    ]
    assert not [word for word, _ in final_stage(contracted) if word == "RUN"]


def test_the_app_is_in_no_image_and_nothing_is_sent_to_the_builder_that_no_image_holds() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    assert [line for line in lines if line.startswith("!")] == [
        "!infra/images/slim.py",
        "!locks/steps",
        "!seatrial",
        "!steps",
    ]
    assert lines.index("seatrial/app") > lines.index("!seatrial")


@each_step
def test_an_image_copies_to_no_place_where_a_volume_is_mounted(contracted: Contracted) -> None:
    targets = [rest.split()[-1] for word, rest in final_stage(contracted) if word == "COPY"]
    assert not [target for target in targets if target.startswith((*HIDDEN, "/tmp"))]


@each_step
def test_an_image_installs_its_own_lock_by_hash_on_bases_without_a_tag(contracted: Contracted) -> None:
    lines = dockerfile(contracted)
    bases = [rest.split()[0] for word, rest in lines if word == "FROM"]
    first = next(number for number, (word, _) in enumerate(lines) if word == "FROM")
    given = {f"${{{rest}}}" for word, rest in lines[:first] if word == "ARG"}
    assert set(bases) == given
    (install,) = [json.loads(rest) for word, rest in lines if word == "RUN" and "install" in rest]
    assert install[:3] == ["uv", "pip", "install"]
    assert {"--require-hashes", "--no-deps", ":all:"} <= set(install)
    locks = [rest.split()[0] for word, rest in lines if word == "COPY" and rest.startswith("locks/")]
    assert locks == [f"locks/steps/{contracted.name}.txt"]
    assert not [word for word, _ in lines if word in {"ADD", "VOLUME", "SHELL"}]


@each_step
def test_what_a_build_is_given_stays_in_a_stage_that_is_no_image(contracted: Contracted) -> None:
    lines = dockerfile(contracted)
    starts = [number for number, (word, _) in enumerate(lines) if word == "FROM"]
    of_build = {rest for word, rest in lines[starts[0] : starts[-1]] if word == "ARG"}
    assert of_build == {"UV_CACHE_DIR", "UV_DEFAULT_INDEX", "SSL_CERT_FILE"}
    assert not [word for word, _ in final_stage(contracted) if word == "ARG"]


def test_the_step_that_reads_the_source_is_built_on_the_image_that_has_git() -> None:
    resolve = next(contracted for contracted in contracts() if contracted.package == "resolve_release")
    assert final_stage(resolve)[0] == ("FROM", "${GIT_IMAGE}")


def test_the_step_that_boots_triton_is_built_on_the_image_that_serves() -> None:
    package = next(contracted for contracted in contracts() if contracted.package == "package_model")
    assert final_stage(package)[0] == ("FROM", "${SERVING_BASE}")


# Locks


def pinned(path: Path) -> dict[str, str]:
    """Name → version."""
    found = re.findall(r"^([a-z0-9][a-z0-9._-]*(?:\[[\w,-]+\])?)==([^\s;]+)", path.read_text(), re.MULTILINE)
    return {name.partition("[")[0]: version for name, version in found}


@each_step
def test_a_steps_lock_is_a_part_of_the_whole_and_names_no_host(contracted: Contracted) -> None:
    path = ROOT / "locks/steps" / f"{contracted.name}.txt"
    whole = pinned(ROOT / "locks/seatrial.txt")
    assert {name: whole.get(name) for name in pinned(path)} == pinned(path)
    assert "://" not in path.read_text()
    assert path.read_text().count("--hash=sha256:") >= len(pinned(path)) > 0


@each_step
def test_a_steps_extra_is_in_its_lock(contracted: Contracted) -> None:
    wanted = {re.split(r"[\[<>=! ]", name)[0] for name in EXTRAS[contracted.name]}
    assert wanted <= pinned(ROOT / "locks/steps" / f"{contracted.name}.txt").keys()


DISTRIBUTIONS: dict[str, str] = {
    "yaml": "pyyaml",
    "sklearn": "scikit-learn",
    "prometheus_client": "prometheus-client",
    "great_expectations": "great-expectations",
    "mlflow": "mlflow-skinny",
    "google": "protobuf",
}
"""Module → distribution, where they differ."""


def imported(path: Path) -> set[str]:
    """Dotted names that a file imports when it is imported or run, `if TYPE_CHECKING` apart."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def file_of(module: str) -> Path | None:
    base = ROOT / module.replace(".", "/")
    if base.with_suffix(".py").is_file():
        return base.with_suffix(".py")
    return base / "__init__.py" if (base / "__init__.py").is_file() else None


def foreign(package: str) -> set[str]:
    """Top-level modules of others that a step's code reaches."""
    files = set((ROOT / "steps" / package).glob("*.py"))
    seen: set[Path] = set()
    others: set[str] = set()
    while files:
        path = files.pop()
        seen.add(path)
        for name in imported(path):
            if name.split(".")[0] in OURS:
                inner = file_of(name)
                files |= {inner} - seen if inner is not None else set()
            else:
                others.add(name.split(".")[0])
    return others


@each_step
def test_an_image_holds_every_library_that_its_step_reaches(contracted: Contracted) -> None:
    names = foreign(contracted.package) - set(sys.stdlib_module_names)
    wanted = {DISTRIBUTIONS.get(name, name).replace("_", "-") for name in names}
    missing = wanted - pinned(ROOT / "locks/steps" / f"{contracted.name}.txt").keys()
    assert not missing, f"steps/{contracted.package} reaches {sorted(missing)}, which its extra does not bring"
