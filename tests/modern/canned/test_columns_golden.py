"""Feature columns as TensorFlow 1.15.5 computed them (tests/golden/make_columns.py)."""

from __future__ import annotations

import functools
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.columns import Inputs, dense, linear, sequence

cases: Any = importlib.import_module("tests.golden.columns.cases")  # untyped: Python 3.7 runs it too
GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "columns" / "columns.json").read_text())
PARTS: dict[str, Any] = {
    "dense": ("input_layer", dense),
    "linear": ("linear_model", functools.partial(linear, units=2, sparse_combiner="mean")),
    "sequence": ("sequence_features", sequence),
}


@pytest.mark.parametrize("name", cases.CASES)
def test_as_tensorflow_1(name: str) -> None:
    kind, make = cases.CASES[name]
    scope, part = PARTS[kind]
    with tf.Graph().as_default():  # TensorFlow builds shared embeddings only in a graph
        columns = make()
    inputs = Inputs(columns)
    *outputs, weights = part(columns, inputs)
    expected = GOLDEN[name]
    shapes = {f"{scope}/{weight.name}": weight.variable.shape.as_list() for weight in weights}
    assert shapes == expected["variables"]
    for weight in weights:
        weight.variable.assign(cases.value(weight.variable.shape))
    model = tf_keras.Model(inputs.keras, outputs)
    found = model({key: tensor(cases.FEATURES[key]) for key in inputs.keras})
    for own, theirs in zip(tf.nest.flatten(found), expected["values"], strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-6, atol=1e-6)


def tensor(feature: Any) -> Any:
    return tf.SparseTensor(*cases.sparse(feature)) if isinstance(feature, list) else tf.constant(feature)
