"""Will this visit leave without paying? Logistic regression over scaled counts and one-hot words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from onnx import ModelProto, TensorProto, helper
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from seatrial.training import TrainedModel

NUMBERS = [
    "events_before", "product_views", "searches", "filters", "deliberations", "minutes_before", "incidents_72h",
    "earlier_visits", "earlier_purchases",
]  # fmt: skip
WORDS = ["platform", "acquisition_channel", "user_lifecycle"]

OPSETS = {"": 17, "ai.onnx.ml": 3}
"""Loaded by every serving image since 2023."""


def train(rows: pd.DataFrame, parameters: dict[str, Any], seed: int) -> TrainedModel:
    """Fit on `rows`; `parameters` holds C, the inverse of the L2 penalty."""
    pipeline = fitted(rows, parameters, seed)

    def answer(features: pd.DataFrame) -> np.ndarray[Any, Any]:
        return pipeline.predict_proba(features[NUMBERS + WORDS])[:, 1:]

    return TrainedModel(onnx=probability_graph(pipeline).SerializeToString(), answer=answer)


def fitted(rows: pd.DataFrame, parameters: dict[str, Any], seed: int) -> Pipeline:
    """The pipeline, fitted on `rows`."""
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), NUMBERS), ("words", OneHotEncoder(handle_unknown="ignore"), WORDS)]
    )
    classifier = LogisticRegression(C=float(parameters["C"]), max_iter=1000, random_state=seed)
    return Pipeline([("columns", columns), ("classifier", classifier)]).fit(rows[NUMBERS + WORDS], rows["abandoned"])


def probability_graph(pipeline: Pipeline) -> ModelProto:
    """The pipeline as a graph with one output, `probability`: float32, shape (batch, 1), of class 1."""
    inputs = [(name, FloatTensorType([None, 1])) for name in NUMBERS]
    inputs += [(name, StringTensorType([None, 1])) for name in WORDS]
    model = convert_sklearn(
        pipeline, name="cart_abandonment", initial_types=inputs, target_opset=OPSETS,  # no name: a random one
        options={id(pipeline): {"zipmap": False, "output_class_labels": False}},
    )  # fmt: skip
    # The converter names the oldest opsets that would do; the operators are the same ones up to these.
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in OPSETS.items())
    both = model.graph.output[1].name
    model.graph.initializer.append(helper.make_tensor("class_one", TensorProto.INT64, [1], [1]))
    model.graph.node.append(helper.make_node("Gather", [both, "class_one"], ["probability"], axis=1))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("probability", TensorProto.FLOAT, [None, 1]))
    model.ir_version = 8
    return model
