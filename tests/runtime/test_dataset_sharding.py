"""Definitions of datasets. The workers' decision is tested with each path's input_fns."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.runtime.dataset_sharding import Definition, definition


def _definition(added: int, device: str = "") -> Definition:
    with tf.Graph().as_default(), tf.device(device):
        return definition([_nested(added)])


def _nested(added: int) -> Any:
    return tf.data.Dataset.range(2).flat_map(lambda file: tf.data.Dataset.range(file).map(lambda x: x + added))


def test_names_of_functions_and_devices_do_not_change_the_definition() -> None:
    """A chief, which writes, may have made more functions than a worker."""
    assert _definition(1, "/cpu:0") == _definition(1, "/job:worker/task:1") != _definition(2)


def test_functions_of_other_datasets_do_not_count() -> None:
    with tf.Graph().as_default():
        tf.data.Dataset.range(2).flat_map(lambda file: tf.data.Dataset.range(file).shard(2, 0))
        assert not definition([_nested(1)]).shards
