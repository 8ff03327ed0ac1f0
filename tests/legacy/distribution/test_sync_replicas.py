"""SyncReplicasOptimizer: replicas in threads of this process, with servers of their own. Expected weights are computed in float64 by hand."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.training.session_manager import SessionManager

from estimator_bridge.cluster.loopback import keep_to_loopback
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.launcher.layout import local_layout
from estimator_bridge.legacy import install, warn_once
from estimator_bridge.legacy.distribution import sync_replicas, sync_replicas_hook
from estimator_bridge.legacy.distribution.launched import server_waits
from tests.legacy.distribution import job

SECONDS = 240


@contextlib.contextmanager
def mended() -> Iterator[None]:
    manager = SessionManager.__init__
    soon = server_waits._defaults(manager, recovery_wait_secs=0.05)  # until a worker looks again whether the chief has come
    with mock.patch.object(manager, "__defaults__", soon), sync_replicas.synchronize_replicas():
        yield


class Counted(tf.train.SessionRunHook):
    """Counts the local steps of one replica."""

    steps = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.steps += 1


class Dies(tf.train.SessionRunHook):
    """Ends a replica after some steps, like a killed one, which closes no queue."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.left -= 1
        if not self.left:
            raise Killed


class Killed(Exception):  # noqa: N818
    pass


class Replicas:
    """The training tasks of a cluster, each an Estimator, and its servers."""

    def __init__(self, workers: int, folder: Path, patch: pytest.MonkeyPatch, **config: Any) -> None:
        install()
        layout = local_layout({"chief": 1, "worker": workers, "ps": 1})
        cluster = {job: [] for job in ("chief", "worker", "ps")}  # type: dict[str, list[str]]
        for task, address in layout.addresses.items():
            cluster[task.job].append(address)
        self.servers = [tf.train.Server(cluster, task.job, task.index) for task in layout.addresses]
        for address in layout.addresses.values():
            keep_to_loopback(int(address.rpartition(":")[2]))
        self.configs = []
        for task in sorted(layout.addresses):
            if task.job != "ps":
                patch.setenv("TF_CONFIG", layout.tf_configs[task])
                self.configs.append(tf.estimator.RunConfig(str(folder), save_checkpoints_steps=1000, **config))
        self.hooks = [Counted() for _ in self.configs]

    def trainer(self, place: int, aggregated: int, total: int | None = None, **options: Any) -> Callable[[], Any]:
        """Returns a function that trains one replica on each n-th batch of n, without the batches that it has ``taken``."""
        config, number, taken = self.configs[place], len(self.configs), options.pop("taken", 0)
        wrap = options.pop("wrap", lambda optimizer, config: tf.train.SyncReplicasOptimizer(optimizer, aggregated, total))
        model_fn = options.pop("model_fn", None) or job.make_model_fn(wrap, **options)
        estimator = tf.estimator.Estimator(model_fn, config=config)
        return functools.partial(
            estimator.train,
            lambda: job.batches(number).shard(number, place).skip(taken),
            max_steps=job.STEPS,
            hooks=[self.hooks[place]],
        )

    def wait_for_gradients(self) -> None:
        """Waits until each accumulator holds a gradient."""
        with tf.Graph().as_default(), tf.Session(self.servers[0].target) as session:
            with tf.device("/job:ps"):
                kept = [
                    tf.ConditionalAccumulator(tf.float32, start.shape, shared_name=f"{name}:0/grad_accum")
                    for name, start in job.START.items()
                ]
            held = [accumulator.num_accumulated() for accumulator in kept]
            while session.run(held) != [1] * len(kept):
                time.sleep(0.01)

    @property
    def steps(self) -> list[int]:
        """Local steps of each replica."""
        return [hook.steps for hook in self.hooks]


def together(calls: list[Callable[[], Any]]) -> None:
    """Runs functions in threads, which end with this process, and raises the first error of one."""
    errors: list[BaseException] = []

    def run(call: Callable[[], Any]) -> None:
        try:
            call()
        except (BridgeError, AssertionError, RuntimeError, ValueError, TypeError, tf.errors.OpError) as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS
    while any(thread.is_alive() for thread in threads) and not errors and time.monotonic() < end:
        time.sleep(0.01)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)


def summaries(folder: Path) -> dict[str, float]:
    """Returns the last summaries of the replicas."""
    (file,) = folder.glob("*tfevents*")
    values = [value for event in tf.train.summary_iterator(str(file)) for value in event.summary.value]
    return {value.tag.removeprefix("sync_replicas/"): value.simple_value for value in values if value.tag.startswith("sync_")}


def assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6, err_msg=name)


def test_three_replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas(2, tmp_path, monkeypatch)
    with mended():
        together([replicas.trainer(place, aggregated=3) for place in (2, 1, 0)])
    assert replicas.steps == [job.STEPS] * 3
    assert_close(job.saved(tmp_path), job.by_hand())


def test_two_batches_of_each_replica_for_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas(1, tmp_path, monkeypatch)
    with mended():
        together([replicas.trainer(place, aggregated=4, total=2) for place in (0, 1)])
    assert summaries(tmp_path) == {"local_steps/chief_0": 60, "local_steps/worker_0": 60, "gradients_not_used": 0}
    assert_close(job.saved(tmp_path), job.by_hand(2 * job.GLOBAL_BATCH))


def test_a_killed_replica_gives_as_many_gradients_to_an_update_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gives two: after 20 local steps it has one token, which it needs. The chief's hook is among the chief hooks."""
    replicas = Replicas(1, tmp_path, monkeypatch)

    def worker() -> None:
        with pytest.raises(Killed):
            replicas.trainer(1, aggregated=4, total=2, hooks=[Dies(20)])()
        replicas.trainer(1, aggregated=4, total=2, taken=20)()

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        made = job.make_model_fn(lambda optimizer, config: tf.train.SyncReplicasOptimizer(optimizer, 4, 2))
        spec = made(features, labels, mode, config)
        return spec._replace(training_hooks=(), training_chief_hooks=spec.training_hooks)

    with mended():
        together([replicas.trainer(0, 4, model_fn=model_fn), worker])
    assert summaries(tmp_path) == {"local_steps/chief_0": 60, "local_steps/worker_0": 60, "gradients_not_used": 0}
    assert_close(job.saved(tmp_path), job.by_hand(2 * job.GLOBAL_BATCH))


def test_gradients_of_before_do_not_outlive_the_chief(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker has given its gradient of batch 5 and waits: the chief begins again at step 0, and the worker with batch 6."""
    monkeypatch.setattr(sync_replicas_hook, "_COUNT_SECONDS", 0)  # the worker has taken one step more
    monkeypatch.setattr(sync_replicas._TokenQueues, "close", lambda self, cancel_pending_enqueues=False: tf.no_op())
    replicas = Replicas(1, tmp_path, monkeypatch)

    def chief() -> None:
        with pytest.raises(Killed):
            replicas.trainer(0, aggregated=2, hooks=[Dies(5)])()
        replicas.wait_for_gradients()
        replicas.trainer(0, aggregated=2)()

    with mended():
        together([chief, replicas.trainer(1, aggregated=2)])
    assert "chief 0 is back: dropped 1 gradient from before its restart" in caplog.text
    size, steps = job.GLOBAL_BATCH // 2, np.arange(job.STEPS)
    firsts = np.stack([2 * steps, 2 * (steps + 6) + 1], 1) * size
    rows = (firsts[..., None] + np.arange(size)).reshape(job.STEPS, -1) % len(job.X)
    assert_close(job.saved(tmp_path), job.by_hand(rows=rows))


def test_backup_replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Two gradients of three replicas make an update: a slow replica may miss steps, and late gradients are dropped and counted."""
    monkeypatch.setattr(warn_once, "_warned", set())
    replicas = Replicas(2, tmp_path, monkeypatch)
    with mended():
        together([replicas.trainer(place, aggregated=2, total=3) for place in (0, 1, 2)])
    assert sum(replicas.steps) >= 2 * job.STEPS
    assert "an update takes 2 gradients of 3 replicas, gradients that come too late are dropped" in caplog.text
    assert "total_num_replicas" not in caplog.text
    assert tf.train.load_variable(str(tmp_path), "global_step") >= job.STEPS


def test_a_chief_does_not_train_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas(1, tmp_path, monkeypatch, session_creation_timeout_secs=1)
    with mended(), pytest.raises(BridgeError, match="worker 0 did not start to train within 1 s"):
        together([replicas.trainer(0, aggregated=2)])
    assert replicas.steps == [0, 0]


def test_a_chief_trains_alone_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mended: all updates are of one replica's gradients, two of them each."""
    monkeypatch.setattr(sync_replicas, "_with_own_tokens", lambda original: original)
    for part in ("_add_replica_hook", "_fewest_tokens"):
        monkeypatch.setattr(sync_replicas, part, lambda method, *rest, **options: method(*rest, **options))
    replicas = Replicas(1, tmp_path, monkeypatch)
    with mended():
        together([replicas.trainer(0, aggregated=2)])
    assert replicas.steps[0] >= 2 * job.STEPS
    assert tf.train.load_variable(str(tmp_path), "global_step") == job.STEPS


def test_tokens_that_the_script_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens would let replicas run ahead of the updates, so there are none, and a warning says so."""
    replicas = Replicas(1, tmp_path, monkeypatch)

    class Eager(tf.train.SyncReplicasOptimizer):
        def make_session_run_hook(self, is_chief: bool, num_tokens: int = 5) -> Any:
            return super().make_session_run_hook(is_chief, num_tokens)

    with mended():
        together([replicas.trainer(place, 2, wrap=lambda optimizer, config: Eager(optimizer, 2)) for place in (0, 1)])
    assert replicas.steps == [job.STEPS] * 2
    assert "tokens at the start: 0 instead of 5" in caplog.text


@pytest.mark.parametrize(("place", "is_chief", "told"), [(0, False, "0 hooks"), (1, True, "1 hooks")])
def test_hooks_that_would_leave_all_waiting(
    place: int, is_chief: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = Replicas(1, tmp_path, monkeypatch)

    class Mistaken(tf.train.SyncReplicasOptimizer):
        def make_session_run_hook(self, _: bool, num_tokens: int = -1) -> Any:
            return super().make_session_run_hook(is_chief, num_tokens)

    with mended(), pytest.raises(NotSupportedError, match=f"{told} of this task apply gradients"):
        together([replicas.trainer(place, 2, wrap=lambda optimizer, config: Mistaken(optimizer, 2))])


def test_a_cluster_of_one_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    model_fn = job.make_model_fn(lambda optimizer, config: tf.train.SyncReplicasOptimizer(optimizer, 1))
    hook = Counted()
    with mended():
        tf.estimator.Estimator(model_fn, str(tmp_path)).train(lambda: job.batches(1), max_steps=5, hooks=[hook])
    assert tf.train.load_variable(str(tmp_path), "global_step") == 5
