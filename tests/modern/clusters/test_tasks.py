"""What a task of a cluster is told and reads, without one: RunConfigs, strategies and shares of an input."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from tests.modern.jobs import v1  # settles on Keras 2 first

from estimator_bridge.modern import sharing, strategies  # isort: skip
from estimator_bridge.modern.inputs import InputPipeline, recorded_iterators  # isort: skip
from estimator_bridge.modern.tasks import tasks  # isort: skip

CHIEF = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
EQUAL = {"worker": ["a:1", "b:1"]}


def _config(monkeypatch: pytest.MonkeyPatch, cluster: dict[str, list[str]], job: str, index: int, strategy: bool) -> Any:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": job, "index": index}}))
    with tf.Graph().as_default(), tasks():
        asked = tf.distribute.experimental.MultiWorkerMirroredStrategy() if strategy else None
        return v1.estimator.RunConfig("nowhere", train_distribute=asked)


@pytest.mark.parametrize(
    ("cluster", "job", "index", "expected"),
    [
        (CHIEF, "chief", 0, (True, 3, 3)),
        (CHIEF, "worker", 1, (False, 3, 3)),
        (EQUAL, "worker", 0, (True, 2, 2)),  # the first worker is the chief
        (EQUAL, "worker", 1, (False, 2, 2)),
        (CHIEF, "evaluator", 0, (False, 0, 1)),  # in no cluster; TensorFlow raises where a strategy is made for it
    ],
)
def test_a_script_with_a_strategy_finds_its_place(
    cluster: dict[str, list[str]], job: str, index: int, expected: tuple[bool, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, where TF1's coordinator told it later; and ``num_replicas_in_sync``, by which scripts scale, is right."""
    config = _config(monkeypatch, cluster, job, index, strategy=True)
    assert (config.task_type, config.task_id) == (job, index)
    assert (config.is_chief, config.num_worker_replicas, config.train_distribute.num_replicas_in_sync) == expected
    assert strategies.decided(config).strategy == "MultiWorkerMirroredStrategy"


def test_workers_without_servers_train_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(monkeypatch, CHIEF, "chief", 0, strategy=False)
    assert strategies.decided(config).strategy == "MultiWorkerMirroredStrategy"


@dataclasses.dataclass(frozen=True)
class Second:
    """The second of three workers, with a replica each."""

    workers = 3
    worker = 1
    replicas = 3


def _share(input_fn: Callable[..., Any]) -> tuple[list[list[int]], str]:
    with tf.Graph().as_default(), recorded_iterators() as made:
        batch = v1.data.make_one_shot_iterator(sharing.with_context(input_fn, Second())()).get_next()  # type: ignore[arg-type]
    pipeline = InputPipeline(batch, {iterator._iterator_resource.op.name: dataset for iterator, dataset in made})
    dataset, said = sharing.own_share(pipeline.dataset(), pipeline, input_fn, Second())  # type: ignore[arg-type]
    return [leaf.numpy().tolist() for (leaf,) in dataset], said


def _batches() -> Any:
    return tf.data.Dataset.range(16).batch(2)


def _own(input_context: Any) -> Any:
    return tf.data.Dataset.range(16).skip(input_context.input_pipeline_id).take(input_context.num_input_pipelines).batch(2)


def _off() -> Any:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return tf.data.Dataset.range(4).batch(2).with_options(options)


@pytest.mark.parametrize(
    ("input_fn", "expected", "word"),
    [
        (_batches, [[2, 3], [8, 9], [14, 15]], "takes one in 3: this one from number 1 on"),
        (_own, [[1, 2], [3]], "for input_context 1 of 3"),
        (lambda: tf.data.Dataset.range(8).shard(3, 1).batch(2), [[1, 4], [7]], "shards its dataset by itself"),
        (_off, [[0, 1], [2, 3]], "shards its dataset by itself"),
    ],
)
def test_a_worker_reads_its_share(input_fn: Callable[..., Any], expected: list[list[int]], word: str) -> None:
    batches, said = _share(input_fn)
    assert batches == expected
    assert word in said


def test_an_input_that_cannot_be_shared_is_refused() -> None:
    with tf.Graph().as_default():
        pipeline = InputPipeline(tf.constant([1, 2]), {})
    with pytest.raises(NotSupportedError, match="all would train on the same batches"):
        sharing.own_share(_batches(), pipeline, lambda: None, Second())  # type: ignore[arg-type]


def test_devices_in_use_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can connect once TensorFlow's eager context is there, as in this process."""
    config = _config(monkeypatch, {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}, "chief", 0, strategy=True)
    tf.constant(1)
    with pytest.raises(BridgeError, match="uses TensorFlow's devices already"):
        strategies.distribution_for(config)
