"""Every kind of input that a TensorFlow 1 script hands to its Estimator, on both paths, and what is mended about it."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.input_results import mend_result
from tests.running import estimator_bridge_command, write

pytestmark = pytest.mark.timeout(200)

VALUES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]  # mean 3.5

MODEL = f"""\
import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

VALUES = np.array({VALUES}, np.float32)


def model_fn(features, labels, mode):
    x = features["x"] if isinstance(features, dict) else features
    x = tf.reshape(tf.cast(x, tf.float32), [-1])
    loss = tf.square(tf.get_variable("w", [], initializer=tf.ones_initializer())) + 0.0 * tf.reduce_sum(x)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={{"mean": tf.metrics.mean(x)}})


def mean_of(input_fn):
    estimator = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    estimator.train(input_fn, steps=2)
    return float(estimator.evaluate(input_fn)["mean"])

"""

SCRIPT = (
    MODEL
    + """\
OUTSIDE = tf.data.Dataset.from_tensor_slices({"x": VALUES}).map(lambda f: {"x": tf.py_func(np.negative, [-f["x"]], tf.float32)}).batch(2)


def outside():
    return OUTSIDE


BATCHES = tf.data.Dataset.from_tensor_slices({"x": VALUES}).batch(2)


def iterator():
    return BATCHES.make_one_shot_iterator().get_next()


def iterator_by_function():
    return tf.data.make_one_shot_iterator(BATCHES).get_next()


def one_tuple():
    return (tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(VALUES).batch(3)).get_next(),)


def dataset_of_one_tuples():
    return tf.data.Dataset.from_tensor_slices(({"x": VALUES},)).batch(3)


def one_shot():
    return tf.data.Dataset.from_tensor_slices(VALUES).batch(2).make_one_shot_iterator().get_next()


def initializable():
    iterator = tf.data.Dataset.from_tensor_slices({"x": VALUES}).batch(2).make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def pandas_input():
    import pandas as pd

    return tf.estimator.inputs.pandas_input_fn(pd.DataFrame({"x": VALUES}), batch_size=3, num_epochs=1, shuffle=False)


def queue():
    texts = tf.train.string_input_producer([str(value) for value in VALUES], num_epochs=1, shuffle=False)
    return {"x": tf.string_to_number(texts.dequeue_many(3))}


print(json.dumps({
    "outside": mean_of(outside),
    "iterator": mean_of(iterator),
    "iterator_by_function": mean_of(iterator_by_function),
    "one_tuple": mean_of(one_tuple),
    "dataset_of_one_tuples": mean_of(dataset_of_one_tuples),
    "one_shot": mean_of(one_shot),
    "initializable": mean_of(initializable),
    "numpy": mean_of(tf.estimator.inputs.numpy_input_fn({"x": VALUES}, batch_size=2, num_epochs=1, shuffle=False)),
    "pandas": mean_of(pandas_input()),
    "queue": mean_of(queue),
}))
"""
)


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.splitlines(), 1) if line.startswith(text))


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_every_input_reaches_the_model_whole(tmp_path: Path, path: str) -> None:
    script = write(tmp_path / "train.py", SCRIPT)
    ended = estimator_bridge_command("run", "--path", path, script, cwd=tmp_path)
    assert ended.code == 0, ended.err[-4000:]
    assert ended.last_line == dict.fromkeys(ended.last_line, pytest.approx(3.5))
    assert len(ended.last_line) == 10
    notes = [line for line in ended.err.splitlines() if line.startswith("estimator-bridge: ")]
    assert [note.removeprefix(f"estimator-bridge: {script}:") for note in notes] == [
        f"{line_of('OUTSIDE')}: a dataset built outside the input_fn is copied into the Estimator's graph",
        f"{line_of('BATCHES')}: a dataset built outside the input_fn is copied into the Estimator's graph",
        f"{line_of('def one_tuple')}: the input_fn returns a tuple of one element, which is taken as the features",
        f"{line_of('def dataset_of')}: the input_fn's dataset has tuples of one element, which is taken as the features",
    ]


@pytest.mark.parametrize("op_type", ["Placeholder", "VarHandleOp", "VariableV2", "HashTableV2"])
def test_a_dataset_outside_that_reads_its_graphs_state_is_refused_with_its_line(op_type: str) -> None:
    with tf.Graph().as_default():
        state = {
            "Placeholder": lambda: tf.placeholder(tf.float32, [2]),
            "VarHandleOp": lambda: tf.get_variable("v", [2], use_resource=True),
            "VariableV2": lambda: tf.get_variable("v", [2], use_resource=False),
            "HashTableV2": _looked_up,
        }[op_type]()
        dataset = tf.data.Dataset.from_tensors(state)
    with tf.Graph().as_default(), pytest.raises(NotSupportedError, match=f"reads the {op_type} ") as refusal:
        mend_result(dataset, lambda: dataset)
    assert f"{__file__}:" in str(refusal.value)
    assert "Build it inside the input_fn" in str(refusal.value)


def _looked_up() -> tf.Tensor:
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0).lookup(tf.constant(["a"]))
