"""An op that cannot be transplanted is refused before training, with its name, the script's line and an alternative."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.ops import ref_variable

from estimator_bridge.errors import NotSupportedError
from tests.modern.jobs import ModelFn, linear, regression_input, spec, train, v1
from tests.modern.surface.building import Features, finish, squared, step


def of_reference_variables(features: Features, labels: Any, mode: str) -> Any:
    old = ref_variable.RefVariable(1.0, trainable=False, name="old")  # as in a graph that a script imports
    return finish(mode, squared(linear(features["x"]) * old, labels))


def of_a_placeholder(features: Features, labels: Any, mode: str) -> Any:
    loss = squared(linear(features["x"]), labels)
    rate = v1.placeholder(tf.float32, [], name="rate")
    return spec(mode, loss, v1.train.GradientDescentOptimizer(rate).minimize(loss, step()))


def of_a_mutable_table(features: Features, labels: Any, mode: str) -> Any:
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0, name="seen")
    with tf.control_dependencies([table.insert(features["words"], features["words"])]):
        return finish(mode, squared(linear(tf.identity(features["x"])), labels))


def of_other_workers_gradients(features: Features, labels: Any, mode: str) -> Any:
    optimizer = v1.train.SyncReplicasOptimizer(v1.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2)
    loss = squared(linear(features["x"]), labels)
    return spec(mode, loss, optimizer.minimize(loss, step()))


def of_a_variable_in_the_input() -> Any:
    offset = v1.get_variable("offset", initializer=1.0)
    features, labels = v1.data.make_one_shot_iterator(regression_input()).get_next()
    return features, labels + v1.assign_add(offset, 1.0)


def of_the_step_in_the_input() -> Any:
    features, labels = v1.data.make_one_shot_iterator(regression_input()).get_next()
    return features, labels + tf.cast(v1.train.get_global_step(), tf.float32)


PLAIN: ModelFn = lambda features, labels, mode: finish(mode, squared(linear(features["x"]), labels))  # noqa: E731

CASES: dict[str, tuple[ModelFn, Callable[[], Any], str, str]] = {
    "reference variables": (of_reference_variables, regression_input, "'old'", 'name="old")'),
    "placeholder": (of_a_placeholder, regression_input, "'rate'", 'name="rate"'),
    "mutable table": (of_a_mutable_table, regression_input, "'seen'", 'name="seen"'),
    "synchronous replicas": (
        of_other_workers_gradients,
        regression_input,
        "SyncReplicasOptimizer",
        "optimizer.minimize(loss, step())",
    ),
    "global step in the input": (PLAIN, of_the_step_in_the_input, "'global_step'", ""),
    "variable in the input": (PLAIN, of_a_variable_in_the_input, "'offset'", 'v1.get_variable("offset"'),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_names_the_op_the_line_and_an_alternative(case: str, tmp_path: Path) -> None:
    model_fn, input_fn, name, source = CASES[case]
    with pytest.raises(NotSupportedError) as caught:
        train("modern", model_fn, tmp_path, input_fn)
    assert not list(tmp_path.glob("model.ckpt*")), "refused after training had begun"
    message = str(caught.value)
    assert name in message
    assert "to do:" in message
    (file, line) = re.search(r"asked by: (.+):(\d+)$", message).groups()  # type: ignore[union-attr]
    assert source in Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
