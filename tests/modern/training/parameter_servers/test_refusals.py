"""Steps that several trainers at once would silently change are refused by name before training."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.runtime.estimator_calls import TrainCall
from tests.modern import jobs  # installs the legacy path

from estimator_bridge.modern.graph import model_graph  # isort: skip
from estimator_bridge.modern.distribution import parameter_servers, worker_feed  # isort: skip
from estimator_bridge.modern.training.parameter_servers import train  # isort: skip
from estimator_bridge.modern.distribution.worker_feed import Feed, take  # isort: skip
from estimator_bridge.modern.training.parameter_servers.shared_transplant import SharedTransplant  # isort: skip
from estimator_bridge.modern.training.parameter_servers.train import failures_named  # isort: skip
from estimator_bridge.modern.distribution.strategies import Distribution  # isort: skip

v1 = tf.compat.v1


def _train_spec(make_train_op: Callable[[Any], Any]) -> Any:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = v1.losses.mean_squared_error(labels, v1.layers.dense(features["x"], 1))
        return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=make_train_op(loss))

    return model_fn


def _counts_twice(loss: Any) -> Any:
    step = v1.train.get_global_step()
    return tf.group(v1.train.GradientDescentOptimizer(0.1).minimize(loss, step), v1.assign_add(step, 1))


def _counts_not(loss: Any) -> Any:
    return v1.train.GradientDescentOptimizer(0.1).minimize(loss)


def _counts_by_assignment(loss: Any) -> Any:
    """Counts like BERT's optimization.py."""
    step = v1.train.get_global_step()
    return tf.group(v1.train.GradientDescentOptimizer(0.1).minimize(loss), step.assign(step + 1))


def _keeps_a_metric(loss: Any) -> Any:
    _, update = v1.metrics.mean(loss)
    return tf.group(v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()), update)


def _is_synchronous(loss: Any) -> Any:
    optimizer = v1.train.SyncReplicasOptimizer(v1.train.GradientDescentOptimizer(0.1), 2, 2)
    return optimizer.minimize(loss, v1.train.get_global_step())


@pytest.mark.parametrize(
    ("make_train_op", "words"),
    [
        (_counts_twice, "does not increase the global step by one"),
        (_counts_not, "a train_op that does not count"),
        (_counts_by_assignment, r"AssignVariableOp(.|\n)*Write global_step.assign_add\(1\)"),
        (_keeps_a_metric, r"local variable 'mean/(total|count)'"),
        (_is_synchronous, r"SyncReplicasOptimizer takes 2 gradients(.|\n)*replicas_to_aggregate"),
    ],
)
def test_a_train_op_that_trainers_cannot_share(make_train_op: Callable[[Any], Any], words: str, tmp_path: Path) -> None:
    estimator = jobs.estimator(_train_spec(make_train_op), tmp_path)
    graph = model_graph.build(estimator, jobs.regression_input, model_graph.TRAIN, None)
    with pytest.raises(NotSupportedError, match=words):
        SharedTransplant(graph)


def test_the_learning_rate_is_each_trainers_own_and_in_no_variable(tmp_path: Path) -> None:
    def train_op(loss: Any) -> Any:
        step = v1.train.get_global_step()
        return v1.train.AdamOptimizer(v1.train.exponential_decay(0.1, step, 2, 0.5)).minimize(loss, step)

    estimator = jobs.estimator(_train_spec(train_op), tmp_path)
    transplant = SharedTransplant(model_graph.build(estimator, jobs.regression_input, model_graph.TRAIN, None))
    batch = tuple(next(iter(transplant.model.pipeline.dataset())))
    tf.function(lambda: transplant.step(batch)[0])()
    ((_, optimizer),) = transplant.updates
    assert not any(isinstance(value, tf.Variable) for name, value in optimizer._hyper.items() if name != "decay")


def test_tasks_that_do_not_answer_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameter_servers, "_CONNECT_SECONDS", 0.3)
    own, worker, server = (f"127.0.0.1:{port}" for port in free_ports(3))
    with pytest.raises(
        BridgeError,
        match=f"TF_CONFIG: some tasks do not answer(.|\n)* /job:worker/task:0 at {worker}, /job:ps/task:0 at {server}",
    ):
        parameter_servers._coordinator((("chief", (own,)), ("worker", (worker,)), ("ps", (server,))), 0, None)


def test_a_port_in_use_is_told_before_anything_is_connected() -> None:
    with (
        socket.create_server(("", 0)) as server,
        pytest.raises(BridgeError, match=r"Address already in use(.|\n)*tf.train.Server"),
    ):
        parameter_servers._check_free(f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize(("jobs_of", "missing"), [(("master", "worker", "ps"), "chief"), (("chief", "ps"), "worker")])
def test_a_cluster_without_a_chief_or_a_worker(jobs_of: tuple[str, ...], missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A master is a chief of before TensorFlow 1.4."""
    addresses = {job: [f"127.0.0.1:{port}"] for port, job in enumerate(jobs_of, 1)}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": addresses, "task": {"type": "ps", "index": 0}}))
    with pytest.raises(NotSupportedError, match=f"this cluster has no {missing}"):
        parameter_servers.coordinator(v1.estimator.RunConfig())


def test_a_batch_that_was_not_used_is_taken_again_and_the_end_is_told() -> None:
    steps: list[int] = []
    feed = Feed("worker 0", lambda step, batch: steps.append(step))
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(4.0), [b"a", b"b", b"c", b"d"])).batch(2)
    feed.publish(iter(dataset))
    spec = dataset.element_spec

    def taken(unused: bool, step: int) -> Any:
        given, batch = take(unused, tf.constant(step, tf.int64), spec)
        return [tensor.numpy().tolist() for tensor in batch] if given else None

    assert taken(True, -1) == [[0.0, 1.0], [b"a", b"b"]]
    assert taken(True, -1) == [[0.0, 1.0], [b"a", b"b"]]
    assert taken(False, 7) == [[2.0, 3.0], [b"c", b"d"]]
    assert taken(False, 8) is None
    assert taken(True, -1) is None
    assert steps == [7, 8]


def test_another_input_than_the_chiefs_is_refused() -> None:
    feed = Feed("worker 1")
    feed.publish(iter(tf.data.Dataset.from_tensors((np.float32(1.0),))))
    with (
        pytest.raises(
            NotSupportedError, match=r"\AThe input_fn of worker 1 gives different tensors(.|\n)*int64(.|\n)*drop_remainder.*\Z"
        ),
        failures_named(),
    ):
        take(True, tf.constant(-1, tf.int64), [tf.TensorSpec([], tf.int64)])


def test_a_script_that_does_not_come_to_its_training_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_feed, "_PUBLISH_SECONDS", 0.01)
    feed = Feed("worker 1")
    with pytest.raises(BridgeError, match=r"\AThe script of worker 1 has not reached its training"), failures_named():
        take(True, tf.constant(-1, tf.int64), [tf.TensorSpec([], tf.int64)])
    assert not feed.ended.is_set()


def test_an_error_of_the_scripts_own_input_stays_as_it_is() -> None:
    class NotSupportedError(Exception):
        pass

    def fail() -> None:
        raise NotSupportedError("a bad row")

    with pytest.raises(tf.errors.UnknownError, match="a bad row"), failures_named():
        tf.py_function(fail, [], [])


@pytest.mark.parametrize("task", ["chief", "worker"])
def test_a_second_training_in_one_process(task: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker could not tell when it ends; with ``train_and_evaluate`` it would start a second server at its port."""
    addresses = {job: [f"127.0.0.1:{port}"] for port, job in enumerate(("chief", "worker", "ps"), 1)}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": addresses, "task": {"type": task, "index": 0}}))
    estimator = jobs.estimator(_train_spec(_counts_not), tmp_path)
    used = Feed(f"{task} 0")
    used.publish(iter(tf.data.Dataset.from_tensors((np.float32(1.0),))))
    monkeypatch.setattr(parameter_servers, "_feed", lambda task: used)
    for second in (
        lambda: train.train(estimator, TrainCall(jobs.regression_input, max_steps=1), Distribution(None)),
        lambda: parameter_servers.start(lambda executor, config: pytest.fail("a second server"), None, estimator.config),
    ):
        with pytest.raises(NotSupportedError, match=f"{task} 0 has trained on parameter servers already"):
            second()


def test_a_server_starts_once_where_a_first_training_was_done_before_the_script_was_started_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = {job: [f"127.0.0.1:{port}"] for port, job in enumerate(("chief", "worker", "ps"), 1)}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": addresses, "task": {"type": "worker", "index": 0}}))
    monkeypatch.setattr(parameter_servers, "_feed", lambda task: Feed("worker 0"))
    monkeypatch.setattr(parameter_servers, "_servers", {})
    config = v1.estimator.RunConfig()
    first, second = (parameter_servers.start(lambda executor, config: object(), None, config) for _ in range(2))
    assert first is second
