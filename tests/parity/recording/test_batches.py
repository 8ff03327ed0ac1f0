"""Recorded batches come back as they were: values, types, shapes and structure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge import legacy
from estimator_bridge.parity.recording.batches import leaves, replay, serialize
from estimator_bridge.parity.recording.legacy_side import BatchHook
from estimator_bridge.parity.recording.trace import Trace


def runs(dataset: Any, fetches: Callable[[Any], Any]) -> list[Any]:
    """Returns the values of ``fetches`` in a session, for each element."""
    found: list[Any] = []
    fetched = fetches(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next())
    with tf.compat.v1.Session() as session, contextlib.suppress(tf.errors.OutOfRangeError):
        while True:
            found.append(session.run(fetched))
    return found


def replayed(path: Path, input_fn: Any) -> list[Any]:
    with tf.Graph().as_default():
        return runs(replay(path, input_fn)(), lambda element: element)


def record(path: Path, input_fn: Any) -> list[Any]:
    """Records batches as the legacy side's hook does, without an Estimator."""
    with tf.Graph().as_default():
        seen = runs(input_fn(), lambda element: [element, leaves(element)])
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _, parts in seen:
            writer.write(serialize([tf.make_tensor_proto(part).SerializeToString() for part in parts]))
    return [values for values, _ in seen]


def dataset() -> Any:
    features = {
        "x": np.linspace(0, 1, 14, dtype=np.float32).reshape(7, 2),
        "text": np.array([b"", b"\xff\x00", b"a", b"b", b"c", b"d", b"e"]),
        "flag": np.arange(7) % 2 == 0,
    }
    return tf.compat.v1.data.Dataset.from_tensor_slices((features, np.arange(7, dtype=np.int64))).batch(3)


def test_dense_strings_and_the_last_partial_batch_come_back(tmp_path: Path) -> None:
    recorded = record(tmp_path / "r", dataset)
    found = replayed(tmp_path / "r", dataset)

    assert [len(labels) for _, labels in found] == [3, 3, 1]
    for (features, labels), (new_features, new_labels) in zip(recorded, found, strict=True):
        np.testing.assert_array_equal(labels, new_labels)
        assert features.keys() == new_features.keys()
        for key, values in features.items():
            assert values.dtype == new_features[key].dtype
            np.testing.assert_array_equal(values, new_features[key])


def test_sparse_features_come_back_sparse(tmp_path: Path) -> None:
    def sparse() -> Any:
        ids = tf.sparse.from_dense(tf.constant([[0, 3, 0], [1, 0, 2]], tf.int64))
        return tf.compat.v1.data.Dataset.from_tensors(({"ids": ids}, tf.constant([1.0, 0.0])))

    ((before, _),) = record(tmp_path / "r", sparse)
    ((after, _),) = replayed(tmp_path / "r", sparse)

    np.testing.assert_array_equal(before["ids"].indices, after["ids"].indices)
    np.testing.assert_array_equal(before["ids"].values, after["ids"].values)
    np.testing.assert_array_equal(before["ids"].dense_shape, after["ids"].dense_shape)


def test_static_shapes_survive(tmp_path: Path) -> None:
    record(tmp_path / "r", dataset)
    with tf.Graph().as_default():
        features, labels = replay(tmp_path / "r", dataset)().element_spec
    assert features["x"].shape.as_list() == [None, 2]
    assert labels.shape.as_list() == [None]
    assert labels.dtype == tf.int64


def test_an_input_of_tensors_is_replayed_in_their_structure(tmp_path: Path) -> None:
    record(tmp_path / "r", dataset)

    def tensors() -> Any:
        return tf.compat.v1.data.make_one_shot_iterator(dataset()).get_next()

    found = replayed(tmp_path / "r", tensors)
    assert [set(features) for features, _ in found] == [{"x", "text", "flag"}] * 3


def test_the_input_of_a_tpu_estimator_is_replayed(tmp_path: Path) -> None:
    legacy.install()
    record(tmp_path / "r", dataset)
    tpu = tf.compat.v1.estimator.tpu
    config = tpu.RunConfig(model_dir=str(tmp_path))
    estimator = tpu.TPUEstimator(lambda features, mode, params: None, config=config, use_tpu=False, train_batch_size=3)

    with tf.Graph().as_default():
        features, labels = estimator._call_input_fn(replay(tmp_path / "r", dataset), "train").element_spec
    assert set(features) == {"x", "text", "flag"}
    assert labels.dtype == tf.int64


def test_a_batch_is_in_the_file_before_the_call_ends(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.make()
    hook = BatchHook(trace, "predict-0", recording=True, batches=None)
    batch = [b"one", b"two"]

    hook.after_run(None, SimpleNamespace(results={"batches": [batch]}))

    assert list(tf.compat.v1.io.tf_record_iterator(str(trace.batches("predict-0")))) == [serialize(batch)]
