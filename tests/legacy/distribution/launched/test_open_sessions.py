"""A task that trains in step leaves its session open at the end of a training, and closes it before the next."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow.compat.v1 as tf

from estimator_bridge.cluster.rendezvous import Recovery, Rendezvous
from estimator_bridge.legacy import install
from estimator_bridge.legacy.distribution.launched import reporting
from estimator_bridge.legacy.distribution.launched.open_sessions import LeavingHook


def train(fails: bool = False) -> tf.Session:
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
    first = train()
    assert is_open(first)
    second = train()
    assert not is_open(first)
    assert is_open(second)


def test_a_training_that_fails_closes_its_session() -> None:
    assert not is_open(train(fails=True))


@pytest.mark.parametrize("recovery", Recovery)
@pytest.mark.parametrize("workers", [1, 2])
def test_who_leaves_its_session(recovery: Recovery, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    monkeypatch.setattr(reporting, "_recovery", lambda strategy: recovery)
    config = SimpleNamespace(task_type="worker", task_id=0, num_worker_replicas=workers)
    reported = reporting._with_task_hook(lambda self, spec, worker_hooks, *rest: worker_hooks, Rendezvous(tmp_path))

    hooks = reported(SimpleNamespace(_train_distribution=None, config=config), None, [], [], None, [])

    assert any(isinstance(hook, LeavingHook) for hook in hooks) == (recovery is Recovery.GANG and workers == 2)
