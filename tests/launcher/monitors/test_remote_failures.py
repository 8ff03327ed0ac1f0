"""Tasks that fail and are not restarted, as launchers on other machines learn of them."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.cluster.rendezvous import Recovery, Rendezvous, TaskFailure
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import hosted_layout
from estimator_bridge.launcher.monitors.remote_tasks import RemoteTasks
from estimator_bridge.launcher.outcome import Outcome
from tests.launcher.conftest import DEADLINE, Play, alive, local_cluster, pids, wait_until

HOSTS, COUNTS = ["a:1", "b:1", "c:1"], {"chief": 1, "worker": 1, "ps": 1}
PREEMPTED = Outcome(143)
CHIEF, WORKER = TaskId("chief", 0), TaskId("worker", 0)
At = Callable[[float], None]


@pytest.fixture
def rendezvous(tmp_path: Path) -> Rendezvous:
    return Rendezvous(tmp_path)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Returns a function that sets the clock; a launcher looks once a second."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def set_clock(seconds: float) -> None:
        nonlocal now
        now = seconds

    return set_clock


def failures(rendezvous: Rendezvous, name: str, was_preempted: bool = False) -> RemoteTasks:
    """Returns the monitor in the launcher of a task on a machine of its own."""
    layout = hosted_layout(HOSTS, COUNTS, name)
    cluster = local_cluster(layout, rendezvous)
    cluster.tasks[0].exit_code = EXIT_CODE if was_preempted else None
    return RemoteTasks(cluster)


def test_a_failure_reaches_every_launcher_with_its_reason_and_exit_code(rendezvous: Rendezvous) -> None:
    evaluators, servers = failures(rendezvous, "evaluator:0"), failures(rendezvous, "ps:0")

    failures(rendezvous, "chief:0").report(
        Outcome(3, BridgeError("chief 0 ended with exit code 3.", received="it printed: disk full"))
    )

    for each in (evaluators, servers):
        outcome = each.judge()
        assert outcome is not None
        assert outcome.code == 3
        assert str(outcome.problem).startswith("chief 0 has failed on another machine")
        assert "disk full" in str(outcome.problem)
        each.report(outcome)
    assert list(rendezvous.failures()) == [CHIEF], "a launcher that ends because of a remote failure reports none"
    rendezvous.clear_reports(CHIEF)
    assert rendezvous.failures() == {}


@pytest.mark.parametrize(
    ("sender", "recovery", "listener", "was_preempted", "ends"),
    [
        ("chief:0", Recovery.GANG, "worker:0", False, True),
        ("worker:0", Recovery.GANG, "evaluator:0", False, True),
        ("chief:0", Recovery.WORKER, "ps:0", False, True),
        ("worker:0", Recovery.WORKER, "chief:0", False, False),  # a coordinator goes on without it
        ("worker:0", Recovery.WORKER, "chief:0", True, True),  # a replica that trained in step with it has ended, too
        ("chief:0", Recovery.TASK, "worker:0", False, False),
        ("evaluator:0", Recovery.GANG, "chief:0", False, False),
    ],
)
def test_a_preempted_task_ends_those_that_cannot_go_on_without_it(
    sender: str, recovery: Recovery, listener: str, was_preempted: bool, ends: bool, rendezvous: Rendezvous
) -> None:
    rendezvous.report_recovery(recovery)
    listening = failures(rendezvous, listener, was_preempted)

    failures(rendezvous, sender).report(PREEMPTED)

    job, index = sender.split(":")
    assert listening.judge() == (dataclasses.replace(PREEMPTED, lost=[TaskId(job, int(index))]) if ends else None)


def test_servers_and_evaluators_end_when_no_task_trains(rendezvous: Rendezvous, at: At) -> None:
    rendezvous.report_recovery(Recovery.TASK)
    listening = [failures(rendezvous, task) for task in ("ps:0", "evaluator:0")]

    failures(rendezvous, "chief:0").report(PREEMPTED)
    assert [each.judge() for each in listening] == [None, None], "a worker trains"
    rendezvous.report_end(WORKER)
    at(102)

    assert [each.judge() for each in listening] == [dataclasses.replace(PREEMPTED, lost=[CHIEF])] * 2


def test_a_task_that_failed_before_may_come_back_within_a_minute(rendezvous: Rendezvous, at: At) -> None:
    """All are started again, this launcher first."""
    failures(rendezvous, "chief:0").report(Outcome(3, BridgeError("Failed.")))
    again, late = failures(rendezvous, "worker:0"), failures(rendezvous, "evaluator:0")
    at(130)
    assert again.judge() is None
    rendezvous.report_failure(CHIEF, TaskFailure(130, 3, "Failed."))
    at(132)
    assert again.judge() is not None, "it came back, and failed again"

    failures(rendezvous, "ps:0").report(Outcome(0))
    assert list(rendezvous.failures()) == [CHIEF]
    rendezvous.report_failure(CHIEF, TaskFailure(1, 3, "Failed."))
    assert failures(rendezvous, "worker:0").judge() is None
    at(193)
    assert late.judge() is not None, "nobody started it"


@pytest.mark.parametrize(
    ("task", "plan", "code"),
    [
        ("evaluator", "lost:chief:3:disk full,stay", 3),
        ("chief", "recovery:worker,step:1,exit:143|lost:worker:143,stay", 143),
    ],
)
def test_a_launcher_ends_with_the_failure_that_another_reported(
    play: Play, tmp_path: Path, task: str, plan: str, code: int
) -> None:
    """The other launcher reports a reason, or a preemption that ended and restarted the task of this launcher first."""
    layout = hosted_layout([f"127.0.0.1:{port}" for port in (1, 2, 3)], COUNTS, f"{task}:0")

    ended = play({f"{task} 0": plan}, layouts=[layout], rendezvous=tmp_path / "shared")

    assert ended.code == code
    assert ended.states == {f"{task} 0": "stopped"}
    assert ("disk full" in ended.problem) == (code == 3)
    reported = [(task.job, failure.problem) for task, failure in Rendezvous(tmp_path / "shared").failures().items()]
    assert reported == ([("chief", "disk full")] if code == 3 else [("worker", None), ("chief", None)])


@pytest.mark.parametrize("trainers", [["chief", "worker"], []])
def test_a_preempted_parameter_server_stays_until_all_trainers_have_saved(
    play: Play, tmp_path: Path, trainers: list[str]
) -> None:
    """A scheduler preempts all machines at once; if no trainer reports that it has saved, the grace period ends."""
    stayed: list[float] = []

    def scheduler() -> None:
        wait_until(lambda: bool(pids(tmp_path)))
        preempted_at = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)
        if trainers:
            time.sleep(1)
            assert alive(pids(tmp_path))
        else:
            wait_until(lambda: not alive(pids(tmp_path)))
        stayed.append(time.monotonic() - preempted_at)
        for job in trainers:
            Rendezvous(tmp_path / "shared").report_failure(TaskId(job, 0), TaskFailure(time.time(), 143, None))

    thread = threading.Thread(target=scheduler)
    thread.start()
    layout = hosted_layout([f"127.0.0.1:{port}" for port in (1, 2, 3)], COUNTS, "ps:0")
    ended = play({"ps 0": "stay"}, layouts=[layout], rendezvous=tmp_path / "shared", grace=DEADLINE if trainers else 1)
    thread.join()

    assert (ended.code, ended.states) == (143, {"ps 0": "stopped"})
    assert stayed[0] >= 1
