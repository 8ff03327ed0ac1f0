"""Datasets that are shared among workers, with given answers of the other worker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.distribution import input_sharding

CONTEXT = SimpleNamespace(num_input_pipelines=2, input_pipeline_id=1)
ANOTHER, ANOTHER_SHARD = "[1, false, false, false, false]", "[1, true, false, false, false]"


def _batches(dataset: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, other: str | None = None) -> list[list[int]]:
    """Returns the batches of worker 1 of 2; ``other`` is the answer of worker 0, by default the same."""
    monkeypatch.setattr(input_sharding, "allgather_text", lambda config, own, number, text: [other or text, text])
    with tf.Graph().as_default(), tf.Session() as session:
        shared = input_sharding._own_share(dataset(), None, CONTEXT, "train.py:1")
        iterator = tf.data.make_initializable_iterator(shared)
        session.run(iterator.initializer)
        element, found = iterator.get_next(), []
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(element)["x"].tolist())
        return found


def numbers() -> Any:
    return tf.data.Dataset.from_tensor_slices({"x": list(range(9))}).batch(2)


def test_the_same_dataset_is_shared_out_in_whole_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _batches(numbers, monkeypatch) == [[2, 3], [6, 7]], "worker 0 would have [8] alone"


def test_a_shard_that_is_the_same_on_all_is_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _batches(lambda: numbers().shard(1, 0), monkeypatch) == [[2, 3], [6, 7]]


def test_own_shards_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _batches(lambda: numbers().shard(2, 1), monkeypatch, ANOTHER_SHARD) == [[2, 3], [6, 7]]


def test_what_the_script_says_nobody_else_is_to_shard_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modern path does the same; the option was made for TensorFlow's automatic sharding."""

    def off() -> Any:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        return numbers().with_options(options)

    assert _batches(off, monkeypatch) == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]


@pytest.mark.parametrize(
    ("dataset", "other", "received"),
    [
        (numbers, ANOTHER, "2 different datasets on 2 workers"),
        (lambda: numbers().shard(2, 1), ANOTHER, "2 different datasets on 2 workers"),
        (lambda: tf.data.Dataset.from_generator(lambda: iter([1]), tf.int64), None, "a dataset of a Python generator"),
        (
            lambda: numbers().map(lambda x: tf.numpy_function(lambda y: y, [x["x"]], tf.int32)),
            None,
            r"a dataset with Python functions \(tf.py_function, tf.numpy_function\)",
        ),
        (
            lambda: numbers().map(lambda x: tf.py_function(lambda y: y, [x["x"]], tf.int32)),
            None,
            r"a dataset with Python functions \(tf.py_function, tf.numpy_function\)",
        ),
        (lambda: (tf.constant([1.0]), None), None, "tuple"),
    ],
)
def test_what_nobody_can_tell_is_refused(
    dataset: Callable[[], Any], other: str | None, received: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotSupportedError, match=f"{received} from the input_fn at train.py:1"):
        _batches(dataset, monkeypatch, other)
