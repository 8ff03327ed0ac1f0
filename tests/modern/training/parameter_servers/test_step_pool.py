"""Workers that are lost at the worst moment: their remains neither end a training nor take steps of a later pool."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute.coordinator.cluster_coordinator import Closure, _CoordinatedClosureQueue
from tensorflow.python.distribute.coordinator.remote_value import RemoteValueStatus

from estimator_bridge.modern.training.step_loop import NEVER, PREEMPTED, SAVE, STOP, Ran
from tests.modern import jobs  # noqa: F401 -- installs the legacy path

from estimator_bridge.modern.training import train  # isort: skip
from estimator_bridge.modern.callbacks.logs import LossLogger, NanGuard  # isort: skip
from estimator_bridge.modern.callbacks.at_steps import StopAtStep  # isort: skip
from estimator_bridge.modern.training.parameter_servers import train as shared_training  # isort: skip
from estimator_bridge.modern.training.parameter_servers.step_pool import StepPool, TakenSteps, Workers, finished  # isort: skip


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
    transplant: Any = SimpleNamespace(global_step=tf.Variable(0), watched=[], follow=lambda: None)
    preemption: Any = SimpleNamespace(is_requested=False)
    train.run_steps(transplant, lambda: pool, [StopAtStep(None, 3), LossLogger(1), NanGuard()], preemption)
    assert pool.step == 3


def coordinator_of(*workers: Any, prepared: Any = (), queue: Any = None) -> Any:
    """A coordinator whose workers ran ``prepare`` with the results ``prepared``."""
    return SimpleNamespace(
        _cluster=SimpleNamespace(closure_queue=queue, workers=workers),
        _create_per_worker_resources=lambda prepare: SimpleNamespace(_values=prepared),
        done=queue.done if queue else None,
    )


def test_what_only_dead_workers_could_run_is_taken_back() -> None:
    """A worker that came back would run it with its old limit, on tickets of a later pool."""
    queue = _CoordinatedClosureQueue()
    queue.put(Closure(lambda: None, queue._cancellation_mgr))
    Workers(coordinator_of(SimpleNamespace(_is_dead_with_error=True, worker_index=0), queue=queue)).wait()
    assert queue.done()
    queue.stop()


def test_a_result_that_goes_with_its_worker_before_it_is_fetched_is_left_out() -> None:
    """Its steps count, but their losses are lost; formerly the chief failed, and restarted from the last checkpoint."""

    def gone() -> Any:
        raise tf.errors.UnavailableError(None, None, "failed to connect to all addresses")

    made = TakenSteps(np.array([4]), np.array([0.5]), np.array(False), np.array(5))
    results = [SimpleNamespace(_status=RemoteValueStatus.READY, fetch=fetch) for fetch in (gone, lambda: made)]
    assert finished(results) == [made]


class Answering:
    """A worker that is lost or not, and whose tables are aborted or filled, each time it is polled."""

    device_name = "/cpu:0"
    worker_index = 0

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
    """It is not scheduled in a queue, behind them."""
    worker = Answering(lost, filled)
    workers = Workers(coordinator_of(worker, prepared=[worker]), lambda: None)
    assert workers.run_on(0, tf.identity, tf.constant(3)) == (3 if ready else None)


def test_an_audited_step_of_a_worker_that_does_not_answer_is_none() -> None:
    def fail(limits: Any) -> Any:
        raise tf.errors.UnavailableError(None, None, "Socket closed")

    assert Workers(coordinator_of(Answering([False], []))).run_on(0, fail, tf.constant(3)) is None


class Losing:
    """One worker that is lost: its calls are asked for and give nothing."""

    indices = (0,)

    def __init__(self) -> None:
        self.limits: list[list[int]] = []

    def run_on(self, worker: int, function: Any, limits: Any) -> None:
        self.limits.append(limits.numpy().tolist())

    def schedule(self, function: Any, limits: Any) -> list[Any]:
        self.limits.append(limits.numpy().tolist())
        return []

    def wait(self) -> None:
        """Nothing runs."""


def test_a_pool_goes_on_without_the_audited_step_of_a_lost_worker() -> None:
    """The step's ticket is drawn again, by the chief."""
    global_step, tickets = tf.Variable(7), tf.Variable(0, dtype=tf.int64)

    def on_chief(limit: int, most: int) -> TakenSteps:
        drawn = np.arange(tickets.numpy(), limit)
        global_step.assign_add(len(drawn))
        return TakenSteps(tf.ones(len(drawn)), tf.constant(drawn), tf.constant(False), tf.identity(global_step))

    counted: list[tuple[int, ...]] = []
    audit = SimpleNamespace(turns=lambda *limits: iter([(1, 7)]), count=lambda *steps: counted.append(steps))
    workers = Losing()
    pool: Any = StepPool
    ran = pool(
        SimpleNamespace(global_step=global_step),
        workers,
        SimpleNamespace(tickets=tickets, on_worker=None, on_chief=on_chief),
        audit,
    ).run(1, until=9)
    assert workers.limits == [[8, NEVER], [9, NEVER]]
    assert (len(ran.losses), ran.step, ran.ended) == (2, 9, False)
    assert counted == [(2, 7, 9)]


class Busy:
    """A cluster of one worker, which takes two tickets while the chief makes a step, and two more until its next."""

    indices = (0,)
    _status = RemoteValueStatus.READY

    def __init__(self) -> None:
        self.global_step, self.tickets = tf.Variable(0), tf.Variable(0, dtype=tf.int64)
        self.limits: list[int] = []
        self.wanted: list[list[bool]] = []
        self.taken: list[int] = []
        self.is_running = False
        transplant = SimpleNamespace(global_step=self.global_step, due=[True], set_wanted=self.wanted.append)
        ticketed = SimpleNamespace(
            tickets=self.tickets, on_worker=None, on_chief=self.on_chief, watched=SimpleNamespace(variables=[])
        )
        make: Any = StepPool
        self.pool = make(transplant, self, ticketed, one_by_one=True)

    def schedule(self, function: Any, limits: Any) -> list[Any]:
        self.limits.append(int(limits[0]))
        self.taken, self.is_running = [], True
        return [self]

    def fetch(self) -> TakenSteps:
        return TakenSteps(np.ones(len(self.taken)), np.array(self.taken), np.array(False), self.global_step.numpy())

    def check(self) -> None:
        """No call has failed."""

    def wait(self) -> None:
        self.go_on()
        self.is_running = False

    def go_on(self) -> None:
        """Takes two tickets, if the worker is at work."""
        drawn = [int(self.tickets.assign_add(1)) - 1 for _ in range(2 if self.is_running else 0)]
        good = [ticket for ticket in drawn if ticket < self.limits[-1]]
        self.global_step.assign_add(len(good))
        self.taken += good

    def on_chief(self, limit: int, most: int) -> TakenSteps:
        assert most == 1
        self.go_on()
        drawn = np.array([int(self.tickets.assign_add(1)) - 1])
        drawn = drawn[drawn < limit]
        self.global_step.assign_add(len(drawn))
        self.go_on()
        return TakenSteps(tf.zeros(len(drawn)), tf.constant(drawn), tf.constant(False), tf.identity(self.global_step))


def test_a_pool_stays_open_between_the_steps_that_a_hook_sees() -> None:
    """The worker goes on, up to the step that somebody must see, which the chief makes when nobody else trains."""
    busy = Busy()
    made = [busy.pool.run(1, until=12, report_from=12) for _ in range(3)]
    assert busy.limits == [11]
    assert [ran.step for ran in made] == [5, 10, 12]
    assert [ran.losses.tolist() for ran in made[:2]] == [[0], [0]]
    assert made[2].losses.tolist() == [1] * 9 + [0]
    assert [ran.report for ran in made] == [None, None, []]
    assert busy.wanted == [[True]]


@pytest.mark.parametrize("request_", [STOP, SAVE, PREEMPTED])
def test_who_ends_or_saves_a_training_closes_its_pool(request_: int) -> None:
    """No step is running afterwards, and the next pool begins at the global step."""
    busy = Busy()
    busy.pool.run(1)
    ended = busy.pool.run(request_)
    assert (ended.step, ended.agreed, busy.is_running) == (5, request_, False)
    ran = busy.pool.run(1)
    assert (ran.step, busy.limits) == (10, [200, 205])
    saves = request_ == SAVE  # nobody looks at what that returns, and the worker's losses may be NaN
    assert [one.losses.tolist() for one in (ended, ran)] == [[] if saves else [1] * 4, [1] * 4 * saves + [0]]


def test_a_coordinator_that_does_not_stop_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a worker's replacement ends just as it comes back, ``stop``, and so the destructor, waits for it without end."""
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
    assert asked.wait(240)
