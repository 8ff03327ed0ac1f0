"""A launched training task that is told to end saves and ends; those that train in step end after the same one."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.distribute.cluster_resolver.cluster_resolver import SimpleClusterResolver

from estimator_bridge.cluster.preemption import EXIT_CODE, Preemption
from estimator_bridge.cluster.rendezvous import VARIABLE, Flag, Recovery, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.legacy import install
from estimator_bridge.legacy.distribution import sync_replicas
from estimator_bridge.legacy.distribution.launched import task_hook
from estimator_bridge.legacy.distribution.launched.launched_task import join_launcher
from estimator_bridge.legacy.distribution.launched.task_hook import LeavingHook, TaskHook
from estimator_bridge.legacy.distribution.replicas import Replicas


class Task:
    """One of several that train in step; its session knows the global step."""

    def __init__(self, rendezvous: Rendezvous, index: int, first_step: int) -> None:
        self.told, self.stopped, self.step = Preemption(), False, first_step
        config = SimpleNamespace(task_type="worker", task_id=index)
        self.hook = TaskHook(rendezvous, config, "step", self.told, is_in_step=True)
        self.hook.after_create_session(self, None)

    def run(self, fetch: str) -> int:
        return self.step

    def request_stop(self) -> None:
        self.stopped = True

    def take_step(self) -> None:
        self.step += 1
        context = SimpleNamespace(session=self, request_stop=self.request_stop)
        self.hook.after_run(context, SimpleNamespace(results=None))


@pytest.mark.parametrize("told", [[0], [1], [0, 1]])
@pytest.mark.parametrize("order", [1, -1])
def test_tasks_in_step_end_after_the_same_one(told: list[int], order: int, tmp_path: Path) -> None:
    rendezvous = Rendezvous(tmp_path)
    rendezvous.report_last_step(9)  # of an earlier life of this cluster, which went on from there
    tasks = [Task(rendezvous, index, first_step=9) for index in range(2)]
    for step in range(10, 20):
        for index in told:
            tasks[index].told.is_requested |= step == 15
        for task in tasks[::order]:
            task.take_step()
        if any(task.stopped for task in tasks):
            break
    assert [task.stopped for task in tasks] == [True, True]
    assert step == 17
    assert tasks[0].hook.stopped


@pytest.mark.parametrize(("mark", "noted"), [(Flag.SHARED, True), (Flag.LOOPBACK, False)])
def test_who_trains_in_step_stays_for_the_last_step_where_all_hear_of_it(
    mark: Flag, noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On several machines, too. Where others are told nothing, they would wait for it."""
    monkeypatch.setattr(task_hook, "_recovery", lambda strategy: Recovery.GANG)
    (rendezvous := Rendezvous(tmp_path)).set_flag(mark)
    config = SimpleNamespace(task_type="worker", task_id=0, num_worker_replicas=2)
    train = functools.partial(task_hook._train_with_task_hook, rendezvous, lambda *arguments: signal.getsignal(signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)

    handler = train(SimpleNamespace(_train_distribution=None, config=config), None, [], [], None, [])

    assert (handler is not before) == noted


def test_tasks_of_a_strategy_restart_together_unless_it_has_parameter_servers() -> None:
    asynchronous = tf.distribute.experimental.ParameterServerStrategy(SimpleClusterResolver(tf.train.ClusterSpec({})))
    assert task_hook._recovery(asynchronous) is Recovery.TASK
    assert task_hook._recovery(tf.distribute.OneDeviceStrategy("/cpu:0")) is Recovery.GANG


@pytest.mark.parametrize(
    ("aggregated", "recovery"), [(2, Recovery.REPLICA), (1, Recovery.WORKER), (3, Recovery.WORKER), (None, Recovery.TASK)]
)
def test_the_tasks_to_wait_for_depend_on_the_gradients_of_an_update(aggregated: int | None, recovery: Recovery) -> None:
    """Two replicas give one gradient each, or the fast one also gives those of a lost one."""
    cluster = tf.train.ClusterSpec({"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]})
    optimizer = aggregated and tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), aggregated, 2)
    token = sync_replicas._building.set(Replicas(SimpleNamespace(cluster_spec=cluster), optimizer))
    try:
        assert task_hook._recovery(None) is recovery
    finally:
        sync_replicas._building.reset(token)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    loss = tf.reduce_mean(tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn() -> Any:
    return tf.data.Dataset.from_tensors([[1.0]]).repeat()


def test_a_task_alone_saves_and_ends_and_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setenv(VARIABLE, str(tmp_path))

    class Told(tf.train.SessionRunHook):
        steps = 0

        def before_run(self, run_context: Any) -> None:
            self.steps += 1
            if self.steps == 7:
                os.kill(os.getpid(), signal.SIGTERM)

    def train() -> None:
        tf.estimator.Estimator(model_fn, str(tmp_path / "model")).train(input_fn, max_steps=12, hooks=[Told()])

    before = signal.getsignal(signal.SIGTERM)
    with join_launcher():
        with pytest.raises(SystemExit) as ended:
            train()
        assert ended.value.code == EXIT_CODE == 143
        assert tf.train.load_variable(str(tmp_path / "model"), "global_step") == 7
        train()
    assert tf.train.load_variable(str(tmp_path / "model"), "global_step") == 12
    assert signal.getsignal(signal.SIGTERM) is before
    rendezvous = Rendezvous(tmp_path)
    assert rendezvous.step(TaskId("worker", 0)) == 12
    assert not rendezvous.is_training(TaskId("worker", 0))
    assert rendezvous.recovery() is Recovery.TASK


def train_once(fails: bool = False) -> tf.Session:
    """Trains once, and returns the session of the training."""
    with tf.Graph().as_default(), contextlib.suppress(InterruptedError):
        tf.train.create_global_step()
        with tf.train.MonitoredSession(hooks=[LeavingHook()]) as monitored:
            session: tf.Session = monitored._tf_sess()
            if fails:
                raise InterruptedError
    return session


def is_open(session: tf.Session) -> bool:
    with contextlib.suppress(RuntimeError):
        session.run(session.graph.get_operations()[0])
        return True
    return False


def test_a_session_stays_open_until_the_next_training_begins() -> None:
    first = train_once()
    assert is_open(first)
    second = train_once()
    assert not is_open(first)
    assert is_open(second)


def test_a_training_that_fails_closes_its_session() -> None:
    assert not is_open(train_once(fails=True))


@pytest.mark.parametrize("recovery", Recovery)
@pytest.mark.parametrize("workers", [1, 2])
def test_who_leaves_its_session(recovery: Recovery, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    monkeypatch.setattr(task_hook, "_recovery", lambda strategy: recovery)
    config = SimpleNamespace(task_type="worker", task_id=0, num_worker_replicas=workers)
    reported = functools.partial(
        task_hook._train_with_task_hook, Rendezvous(tmp_path), lambda self, spec, worker_hooks, *rest: worker_hooks
    )

    hooks = reported(SimpleNamespace(_train_distribution=None, config=config), None, [], [], None, [])

    assert any(isinstance(hook, LeavingHook) for hook in hooks) == (recovery is Recovery.GANG and workers == 2)
