"""Workers that are lost at the worst moment: what they have left behind ends no training, and eats no steps of a later pool."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute.coordinator.cluster_coordinator import Closure, _CoordinatedClosureQueue
from tensorflow.python.distribute.coordinator.remote_value import RemoteValueStatus

from estimator_bridge.modern.training.step_loop import NEVER, Ran
from tests.modern import jobs  # noqa: F401 -- installs the legacy path

from estimator_bridge.modern.training import train  # isort: skip
from estimator_bridge.modern.callbacks.logs import LossLogger, NanGuard  # isort: skip
from estimator_bridge.modern.callbacks.stop import StopAtStep  # isort: skip
from estimator_bridge.modern.training.parameter_servers import train as shared_training  # isort: skip
from estimator_bridge.modern.training.parameter_servers.step_pool import Pool, _finished  # isort: skip
from estimator_bridge.modern.training.parameter_servers.step_tickets import Share  # isort: skip


class LosingPool:
    """Makes one step a call, with a loss; or the step is lost with who had its ticket, before or after it counted."""

    exact = True

    def __init__(self, fates: str) -> None:
        self.step = 0
        self._fates = iter(fates)

    def run(self, steps: int, until: int = NEVER, report_from: int = NEVER) -> Ran:
        assert steps <= 0 or until <= 3, "nothing would end this training"
        fate = next(self._fates) if steps > 0 else "not asked for"
        self.step += fate in ("made", "counted")
        losses = np.ones(int(fate == "made"))
        return Ran(losses, np.zeros(len(losses), np.int64), self.step, None, False, steps)


@pytest.mark.parametrize(
    "fates",
    [["lost", "made", "made", "made"], ["made", "counted", "made"], ["made", "lost", "made", "counted"]],
    ids="-".join,
)
def test_a_worker_that_is_lost_with_the_only_step_of_a_pool_ends_nothing(fates: Any) -> None:
    """Training goes on to exactly max_steps, also where the last step is the lost one."""
    pool = LosingPool(fates)
    transplant: Any = SimpleNamespace(global_step=tf.Variable(0), watched=[])
    told: Any = SimpleNamespace(is_requested=False)
    train._run(transplant, lambda: pool, [StopAtStep(None, 3), LossLogger(1), NanGuard()], told)
    assert pool.step == 3


def test_what_only_dead_workers_could_run_is_taken_back() -> None:
    """One that came back would run it with its old limit, on tickets of a later pool."""
    queue = _CoordinatedClosureQueue()
    queue.put(Closure(lambda: None, queue._cancellation_mgr))
    pool = object.__new__(Pool)
    pool._coordinator, pool._queue, pool._workers = queue, queue, [SimpleNamespace(_is_dead_with_error=True)]
    pool._wait()
    assert queue.done()
    queue.stop()


def test_a_result_that_goes_with_its_worker_before_it_is_fetched_is_left_out() -> None:
    """The steps count, whose losses nobody knows; the chief ended with an error, and began again from the last checkpoint."""

    def gone() -> Any:
        raise tf.errors.UnavailableError(None, None, "failed to connect to all addresses")

    made = (np.array([4]), np.array([0.5]), np.array(False))
    results = [SimpleNamespace(_status=RemoteValueStatus.READY, fetch=fetch) for fetch in (gone, lambda: made)]
    assert _finished(results) == [Share(*made)]


class Answering:
    """A worker, and what it knows of its tables: lost or not, aborted or filled, at each look."""

    def __init__(self, lost: list[bool], filled: list[bool]) -> None:
        self._lost, self._filled = iter(lost), iter(filled)

    @property
    def _is_dead_with_error(self) -> bool:
        return next(self._lost)

    @property
    def _status(self) -> RemoteValueStatus:
        return RemoteValueStatus.READY if next(self._filled) else RemoteValueStatus.ABORTED


@pytest.mark.parametrize(
    ("lost", "filled", "ready"),
    [([False], [True], True), ([False, False], [False, True], True), ([True], [], False), ([False, True], [False], False)],
    ids=["at once", "later", "lost", "lost meanwhile"],
)
def test_an_audited_step_waits_for_the_tables_of_a_worker_that_is_there(
    lost: list[bool], filled: list[bool], ready: bool
) -> None:
    """It is not handed out in a queue, behind them."""
    worker = Answering(lost, filled)
    pool: Any = object.__new__(Pool)
    pool._workers, pool._tables = [worker], [SimpleNamespace(_values=[worker])]
    assert pool._is_ready(0) is ready


def test_an_audited_step_of_a_worker_that_does_not_answer_is_none() -> None:
    def fail(limits: Any) -> Any:
        assert limits.numpy().tolist() == [8, 0]
        raise tf.errors.UnavailableError(None, None, "Socket closed")

    pool: Any = object.__new__(Pool)
    pool._workers, pool._tables = [SimpleNamespace(_is_dead_with_error=None, device_name="/cpu:0")], []
    pool._shares = SimpleNamespace(tickets=tf.Variable(0, dtype=tf.int64), on_worker=fail)
    assert pool._step_of(1, 7) == []
    assert pool._shares.tickets.numpy() == 7


def test_a_coordinator_that_does_not_stop_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a worker's replacement ends just as it is taken back: ``stop``, and so the destructor, waits for it without end."""
    asked = threading.Event()

    def stop() -> None:
        asked.set()
        threading.Event().wait()

    coordinator = SimpleNamespace(_cluster=SimpleNamespace(stop=stop))
    monkeypatch.setattr(shared_training, "coordinator", lambda config: coordinator)
    monkeypatch.setattr(shared_training, "_FAREWELL_SECONDS", 0.01)
    with shared_training._leader(None) as leader:
        assert leader is coordinator
        assert not asked.is_set()
    leader._cluster.stop()
    assert asked.wait(60)
