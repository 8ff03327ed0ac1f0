"""Results of input_fns become the same batches on both paths; unsupported inputs are refused by name."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.input_pipeline import InputPipeline, read_ahead
from tests.modern.jobs import IDS, PATHS, ROWS, WORDS, X, Y, check_same, embedded, linear, regression_input, spec, train, v1

InputFn = Callable[..., Any]


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Takes whatever it is given: dense, sparse and string features, with or without labels."""
    predicted = linear(tf.cast(tf.reshape(features["x"], [-1, features["x"].shape[-1] or 1]), tf.float32))
    if "words" in features:
        predicted += embedded(features["words"])
    if "sparse" in features:
        assert isinstance(features["sparse"], tf.SparseTensor)
        table = v1.get_variable("table", initializer=np.linspace(-0.3, 0.3, 2 * IDS).astype(np.float32).reshape(IDS, 2))
        vectors = v1.nn.embedding_lookup_sparse(table, features["sparse"], None, combiner="mean")
        predicted += tf.reduce_sum(vectors, axis=1, keepdims=True)
    if "text" in features:
        buckets = tf.strings.to_hash_bucket_fast(features["text"], 5)
        predicted += tf.reduce_mean(tf.cast(buckets, tf.float32), axis=1, keepdims=True)
    wanted = 0.0 if labels is None else tf.cast(tf.reshape(labels, [-1, 1]), tf.float32)
    loss = tf.reduce_mean(tf.square(predicted - wanted))
    return spec(mode, loss, v1.train.AdagradOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def iterating(dataset: Any, initializable: bool = False) -> Any:
    if not initializable:
        return v1.data.make_one_shot_iterator(dataset).get_next()
    iterator = v1.data.make_initializable_iterator(dataset)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def reversed_ids(words: Any) -> Any:
    ids = np.arange(IDS)
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(ids), tf.constant(ids[::-1].copy()))
    return tf.lookup.StaticHashTable(initializer, 0).lookup(words)


def mapped_through_a_table() -> Any:
    rows = tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, Y))
    return rows.map(lambda features, label: (features | {"words": reversed_ids(features["words"])}, label)).repeat().batch(8)


def changed_after_get_next() -> Any:
    features, labels = iterating(regression_input())
    return {"x": features["x"] * 2 + tf.constant(1.0), "words": tf.cast(features["words"], tf.int32)}, labels


def looked_up_after_get_next() -> Any:
    features, labels = iterating(regression_input())
    return features | {"words": reversed_ids(features["words"])}, labels


def seeded_noise_after_get_next() -> Any:
    features, labels = iterating(regression_input())
    return features | {"x": features["x"] + tf.random.uniform([3], seed=3)}, labels


def from_generator() -> Any:
    def rows() -> Iterator[Any]:
        yield from zip(X, Y, strict=True)

    spec_of_row = (tf.TensorSpec([3], tf.float32), tf.TensorSpec([1], tf.float32))
    return tf.data.Dataset.from_generator(rows, output_signature=spec_of_row).map(lambda x, y: ({"x": x}, y)).repeat().batch(8)


def through_py_func() -> Any:
    def doubled(features: Any, labels: Any) -> Any:
        (x,) = v1.py_func(lambda values: [values * 2], [features["x"]], [tf.float32])
        return features | {"x": tf.ensure_shape(x, [None, 3])}, labels

    return regression_input().map(doubled)


def sparse_and_text() -> Any:
    def with_more(features: Any, labels: Any) -> Any:
        words = features["words"]
        return {"x": features["x"], "sparse": tf.sparse.from_dense(words), "text": tf.strings.as_string(words)}, labels

    return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, Y)).map(with_more).repeat().batch(8)


def two_iterators() -> Any:
    batches = [tf.data.Dataset.from_tensor_slices(part).repeat().batch(8) for part in ({"x": X, "words": WORDS}, Y)]
    return tuple(map(iterating, batches))


def variable_in_map() -> Any:
    scale = v1.get_variable("scale", initializer=2.0)
    return iterating(regression_input().map(lambda features, labels: (features, scale * labels)), initializable=True)


def variable_after_get_next() -> Any:
    features, labels = iterating(regression_input())
    return features, labels * v1.get_variable("scale", initializer=2.0, trainable=False)


def counted_in_a_local_variable() -> Any:
    features, labels = iterating(regression_input())
    count = v1.get_variable("count", initializer=0.0, trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES])
    return features, labels + v1.assign_add(count, 1.0)


def limited() -> Any:
    features, labels = iterating(regression_input())
    return features | {"x": v1.train.limit_epochs(features["x"], 3)}, labels


def queue(**kwargs: Any) -> InputFn:
    return v1.estimator.inputs.numpy_input_fn({"x": X, "words": WORDS}, Y, shuffle=False, **kwargs)


INPUTS: dict[str, InputFn] = {
    "dataset": regression_input,
    "one-shot iterator": lambda: iterating(regression_input()),
    "initializable iterator": lambda: iterating(regression_input(), initializable=True),
    "changed after get_next": changed_after_get_next,
    "looked up after get_next": looked_up_after_get_next,
    "seeded noise after get_next": seeded_noise_after_get_next,
    "table in map": mapped_through_a_table,
    "table in map, initializable": lambda: iterating(mapped_through_a_table(), initializable=True),
    "generator": from_generator,
    "py_func": through_py_func,
    "sparse and text": sparse_and_text,
    "sparse and text, one-shot": lambda: iterating(sparse_and_text()),
    "no labels": lambda: tf.data.Dataset.from_tensor_slices({"x": X}).repeat().batch(8),
    "labels None": lambda: (iterating(tf.data.Dataset.from_tensor_slices({"x": X}).repeat().batch(8)), None),
    "seeded shuffle": lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).shuffle(ROWS, seed=4).repeat().batch(8),
    "constants": lambda: ({"x": tf.constant(X)}, tf.constant(Y)),
    "two iterators": two_iterators,
    "queue": queue(batch_size=8, num_epochs=None),
    "variable in map": variable_in_map,
    "variable after get_next": variable_after_get_next,
    "local variable": counted_in_a_local_variable,
}
ENDING: dict[str, tuple[InputFn, int]] = {
    "dataset": (lambda: regression_input(8, epochs=2), 12),
    "uneven last batch": (lambda: regression_input(7, epochs=1), 7),
    "iterator": (lambda: iterating(regression_input(7, epochs=1)), 7),
    "queue": (queue(batch_size=7, num_epochs=1), 7),
    "pandas": (
        v1.estimator.inputs.pandas_input_fn(pd.DataFrame({"x": X[:, 0]}), pd.Series(Y[:, 0]), batch_size=8, shuffle=False),
        6,
    ),
    "limit_epochs": (limited, 3),
    "empty": (lambda: regression_input(8, epochs=1).take(0), 0),
}


@pytest.mark.parametrize("name", INPUTS)
def test_both_paths_see_the_same_batches(name: str, tmp_path: Path) -> None:
    check_same(model_fn, tmp_path, input_fn=INPUTS[name])


@pytest.mark.parametrize("name", ENDING)
def test_the_end_of_the_input_ends_training_and_leaves_a_checkpoint(name: str, tmp_path: Path) -> None:
    input_fn, steps = ENDING[name]
    values = check_same(model_fn, tmp_path, input_fn=input_fn, steps=None)
    assert values["global_step"] == steps


def test_a_broken_row_raises_what_it_raised(tmp_path: Path) -> None:
    def rows() -> Iterator[Any]:
        yield from zip(X[:20], Y[:20], strict=True)
        raise KeyError("broken row")

    def input_fn() -> Any:
        kinds = (tf.TensorSpec([3], tf.float32), tf.TensorSpec([1], tf.float32))
        return tf.data.Dataset.from_generator(rows, output_signature=kinds).map(lambda x, y: ({"x": x}, y)).batch(8)

    with pytest.raises(tf.errors.UnknownError, match="broken row"):
        train("modern", model_fn, tmp_path, input_fn)


def test_a_broken_queue_is_no_end_of_input(tmp_path: Path) -> None:
    def input_fn() -> Any:
        def fail() -> Any:
            raise ValueError("broken feed")

        values = tf.numpy_function(fail, [], tf.float32)
        filled = v1.FIFOQueue(10, [tf.float32], shapes=[[3]])
        v1.train.add_queue_runner(v1.train.QueueRunner(filled, [filled.enqueue([tf.ensure_shape(values, [3])])]))
        return {"x": filled.dequeue_many(4)}, tf.zeros([4, 1])

    with pytest.raises(tf.errors.OpError, match="broken feed"):
        train("modern", model_fn, tmp_path, input_fn)


def test_input_left_before_its_end_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python closes it when it exits; a thread that started then would never run, and the process would hang."""
    with tf.Graph().as_default():
        ids = reversed_ids(iterating(tf.data.Dataset.from_tensor_slices(np.arange(IDS)).repeat()))
        pipeline = InputPipeline(ids, {}, initializers=(v1.tables_initializer(),))
    made: list[Callable[[], Any]] = []
    monkeypatch.setattr(tf.data.Dataset, "from_generator", lambda batches, output_signature: made.append(batches))
    pipeline.dataset()
    batches = made[0]()
    assert [int(value) for (value,) in itertools.islice(batches, 2)] == [IDS - 1, IDS - 2]
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail(f"started {thread.name}"))
    batches.close()


@pytest.mark.parametrize("kind", ["trained variable", "random variable"])
def test_what_no_pipeline_can_hold_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    def input_fn() -> Any:
        if kind == "trained variable":
            features, labels = iterating(regression_input())
            return features, labels + v1.get_variable("outside", initializer=1.0)
        else:
            value = v1.get_variable("outside", [ROWS, 3])
        return iterating(tf.data.Dataset.from_tensor_slices(({"x": value}, Y)).batch(8), initializable=True)

    with pytest.raises(NotSupportedError, match=f"the {kind.rsplit(maxsplit=1)[-1]} 'outside'"):
        train("modern", model_fn, tmp_path, input_fn)


def test_a_placeholder_in_the_input_needs_a_hook_that_feeds_it(tmp_path: Path) -> None:
    def input_fn() -> Any:
        value = v1.placeholder(tf.float32, [ROWS, 3], name="outside")
        return iterating(tf.data.Dataset.from_tensor_slices(({"x": value}, Y)).batch(8), initializable=True)

    for path in PATHS:
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value for placeholder tensor 'outside'"):
            train(path, model_fn, tmp_path / path, input_fn)


def test_nothing_is_read_by_a_tuned_iterator_since_ending_one_can_take_a_minute() -> None:
    tuned = tf.data.Options()
    tuned.autotune.enabled = True
    assert read_ahead(tf.data.Dataset.range(3).with_options(tuned)).options().autotune.enabled is False
