"""A small model and everything that a release knows of it, made new for each test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import polars as pl
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from onnx import TensorProto, helper

from seatrial import bundle, digests, spec, verdict
from seatrial.release import Release, Served
from seatrial.spec import Spec
from seatrial.triton import config

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
FOREIGN_KEY = Ed25519PrivateKey.from_private_bytes(bytes([1] * 32))
ZERO = "sha256:" + "0" * 64


def spec_data(**evaluation: Any) -> dict[str, Any]:
    """The model.yaml of `tea_orders`, as YAML would give it."""
    return {
        "model": "tea_orders",
        "owner": "tea team",
        "description": "Does a guest order a second cup?",
        "data": {
            "id": "order",
            "time": "at",
            "label": "again",
            "features": [
                {"name": "price", "dtype": "float32", "nullable": True},
                {"name": "visits", "dtype": "int64"},
                {"name": "shop", "dtype": "string"},
                {"name": "member", "dtype": "bool"},
            ],
            "rows": {"min": 10, "max": 100_000},
            "holdout_share": 0.3,
        },
        "training": {"kind": "python"},
        "evaluation": {
            "primary": {"metric": "log_loss", "margin": 0.02},
            "floors": [{"metric": "log_loss", "at_most": 0.69}, {"metric": "roc_auc", "at_least": 0.6}],
            "draws": 1000,
            **evaluation,
        },
        "serving": {"max_batch_size": 16},
        "canary": {"steps": [{"weight": 50, "min_s": 1, "max_s": 10}]},
    }


def spec_of(**evaluation: Any) -> Spec:
    return spec.parse(yaml.safe_dump(spec_data(**evaluation)))


def rows(count: int = 1200, seed: int = 7) -> pl.DataFrame:
    """Orders whose label follows `onnx_model()` with its own weights; a few prices are missing."""
    random = np.random.default_rng(seed)
    price = random.normal(0, 1, count).astype(np.float32)
    visits, member = random.integers(0, 4, count), random.random(count) < 0.5
    shop = random.choice(["harbour", "hill", "söder, 'ö'"], count)
    logit = 1.5 * price + 0.5 * visits + np.where(shop == "hill", -1.0, 0.2) + 0.4 * member - 1.0
    label = (random.random(count) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    frame = pl.DataFrame(
        {
            "order": [f"o{i:05d}" for i in range(count)],
            "at": ["2026-01-01T00:00:00Z"] * count,
            "again": label,
            "price": price,
            "visits": visits.astype(np.int64),
            "shop": shop,
            "member": member,
        }
    )
    missing = pl.int_range(pl.len()) % 97 == 5
    return frame.with_columns(price=pl.when(missing).then(None).otherwise(pl.col("price")).cast(pl.Float32))


def onnx_model(
    price: float = 1.5, *, bias: float = -1.0, output: str = "probability", opset: int = 17, ir: int = 8
) -> bytes:
    """A logistic model of the four features; a missing price counts as 0."""
    info = helper.make_tensor_value_info
    node = helper.make_node
    types = {
        "price": TensorProto.FLOAT,
        "visits": TensorProto.INT64,
        "shop": TensorProto.STRING,
        "member": TensorProto.BOOL,
    }
    weights = {"w_price": price, "w_visits": 0.5, "w_member": 0.4, "bias": bias, "zero": 0.0}
    graph = helper.make_graph(
        [
            node("IsNaN", ["price"], ["absent"]),
            node("Where", ["absent", "zero", "price"], ["price_known"]),
            node("Mul", ["price_known", "w_price"], ["a"]),
            node("Cast", ["visits"], ["visits_float"], to=TensorProto.FLOAT),
            node("Mul", ["visits_float", "w_visits"], ["b"]),
            node(
                "LabelEncoder",
                ["shop"],
                ["c"],
                domain="ai.onnx.ml",
                keys_strings=["hill"],
                values_floats=[-1.0],
                default_float=0.2,
            ),
            node("Cast", ["member"], ["member_float"], to=TensorProto.FLOAT),
            node("Mul", ["member_float", "w_member"], ["d"]),
            node("Sum", ["a", "b", "c", "d", "bias"], ["logit"]),
            node("Sigmoid", ["logit"], [output]),
        ],
        "tea",
        [info(name, kind, [None, 1]) for name, kind in types.items()],
        [info(output, TensorProto.FLOAT, [None, 1])],
        [helper.make_tensor(name, TensorProto.FLOAT, [1], [value]) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir)
    onnx.checker.check_model(model)
    serialised: bytes = model.SerializeToString()
    return serialised


def framework_answers(frame: pl.DataFrame, price: float = 1.5, bias: float = -1.0) -> Any:
    """What the framework would say: the same sum in NumPy."""
    logit = (
        price * frame["price"].fill_null(0.0).to_numpy()
        + 0.5 * frame["visits"].to_numpy()
        + np.where(frame["shop"].to_numpy() == "hill", -1.0, 0.2)
        + 0.4 * frame["member"].to_numpy()
        + bias
    )
    return (1 / (1 + np.exp(-logit))).reshape(-1, 1)


def write_answers(path: Path, frame: pl.DataFrame, answers: Any) -> None:
    np.savez(
        path,
        answer=answers,
        input__price=frame["price"].fill_null(float("nan")).to_numpy(),
        input__visits=frame["visits"].to_numpy(),
        input__shop=np.asarray(frame["shop"].to_list(), dtype=np.str_),
        input__member=frame["member"].to_numpy(),
    )


@dataclass(frozen=True)
class Champion:
    """A version that serves."""

    model: bytes
    version: int = 1


@dataclass(frozen=True)
class Case:
    """The files of one release, as the steps before would have left them, under one folder."""

    root: Path
    spec: Spec
    release: Release


def case(
    root: Path,
    *,
    model: bytes | None = None,
    frame: pl.DataFrame | None = None,
    champion: Champion | None = None,
    evaluation: dict[str, Any] | None = None,
) -> Case:
    """Write release.json, source/, model/, answers.npz, holdout.parquet and champion/ under `root`."""
    held_out = rows() if frame is None else frame
    made = spec_of(**(evaluation or {}))
    for name in ("source", "model", "champion"):
        (root / name).mkdir(parents=True)
    (root / "source" / "model.yaml").write_text(yaml.safe_dump(spec_data(**(evaluation or {}))))
    (root / "model" / "model.onnx").write_bytes(model or onnx_model())
    held_out.write_parquet(root / "holdout.parquet")
    write_answers(root / "answers.npz", held_out.head(50), framework_answers(held_out.head(50)))
    served = None if champion is None else _champion(root / "champion" / "bundle", made, champion)
    release = Release(
        release_id="uid-2",
        model_name=made.model,
        version=2 if champion else 1,
        revision="abc",
        reason="a test",
        data_uri="file://orders.csv",
        source_digest=ZERO,
        spec_digest=made.digest,
        data_digest=digests.of_bytes(b"orders"),
        images_digest=ZERO,
        release_digest=ZERO,
        champion=served,
    )
    (root / "release.json").write_text(release.model_dump_json())
    return Case(root=root, spec=made, release=release)


def _champion(root: Path, made: Spec, champion: Champion) -> Served:
    (root / "model").mkdir(parents=True)
    (root / "model" / "model.onnx").write_bytes(champion.model)
    (root / "config.pbtxt").write_text(config.render(made))
    sealed = bundle.seal(root, made.model)
    return Served(
        version=champion.version, bundle=sealed.digest, image=f"localhost/tea@{ZERO}", release_digest=digests.of_json(1)
    )


def signed(
    made: Case,
    gate: verdict.Gate,
    judged: dict[str, str],
    *,
    required: Iterable[str] = ("unique_ids",),
    decision: spec.Decision = "pass",
    key: Ed25519PrivateKey = KEY,
    release: Release | None = None,
) -> bytes:
    """A signed verdict of a gate whose every check came to `decision`."""
    names = tuple(required)
    checks = [verdict.Check(name=name, decision=decision, reason="as the test wants it") for name in names]
    concluded = verdict.conclude(gate, release or made.release, made.spec, required=names, checks=checks, judged=judged)
    return verdict.sign(concluded, key)
