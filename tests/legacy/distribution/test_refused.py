"""Clusters in which tasks would idle, or train on variables of their own, are refused before training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy import install
from estimator_bridge.legacy.distribution.strategies import mend_strategies
from tests.legacy.distribution import job

CLUSTER = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}


def _be(monkeypatch: pytest.MonkeyPatch, **cluster: list[str]) -> None:
    install()
    task = {"type": "chief", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))


@pytest.mark.parametrize(
    "strategy",
    [
        lambda: tf.distribute.MirroredStrategy(["/cpu:0"]),
        lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
        tf.distribute.experimental.CentralStorageStrategy,
    ],
)
def test_a_strategy_of_one_process(strategy: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(strategy)
    _be(monkeypatch, **CLUSTER)
    with mend_strategies(), pytest.raises(NotSupportedError, match=r"in one process[^$]*1 chief, 1 worker"):
        tf.estimator.RunConfig(str(tmp_path), train_distribute=strategy())
    _be(monkeypatch, chief=CLUSTER["chief"])
    with mend_strategies():
        config = tf.estimator.RunConfig(str(tmp_path), train_distribute=strategy())
    assert (config.task_type, config.is_chief, config.master) == ("chief", True, "")


def test_trainers_without_a_parameter_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _be(monkeypatch, **CLUSTER)
    estimator = tf.estimator.Estimator(job.make_model_fn(), config=tf.estimator.RunConfig(str(tmp_path)))
    with mend_strategies(), pytest.raises(NotSupportedError, match="2 tasks would train without a place"):
        estimator.train(lambda: job.batches(2), max_steps=1)


def test_the_protocol_of_a_run_config_is_the_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These wheels have no server for this one, and say so."""
    _be(monkeypatch, **CLUSTER)
    from tensorflow_estimator.python.estimator import training

    config = tf.estimator.RunConfig(str(tmp_path), protocol="grpc+verbs")
    with pytest.raises(tf.errors.NotFoundError, match=r"grpc\+verbs"):
        training._TrainingExecutor._start_std_server(None, config)


def test_a_second_training_of_a_process_with_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In TensorFlow 1 it ended by an error of gRPC's; a chief alone has no server, and may train again."""
    _be(monkeypatch, chief=CLUSTER["chief"], ps=CLUSTER["worker"])
    from tensorflow_estimator.python.estimator import training

    monkeypatch.setattr(training._TrainingExecutor, "_start_std_server", lambda self, config: config.master)
    config = tf.estimator.RunConfig(str(tmp_path))
    alone = config.replace()
    alone._master = ""
    with mend_strategies():
        start = training._TrainingExecutor._start_std_server
        assert [start(None, alone), start(None, config), start(None, alone)] == ["", "grpc://127.0.0.1:1", ""]
        with pytest.raises(NotSupportedError, match=r"starts once in a process[^$]*another one at grpc://127.0.0.1:1"):
            start(None, config)
