"""A task that is lost for good, as launchers on other machines hear of it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.cluster.rendezvous import Loss, Recovery, Rendezvous
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import hosted_layout
from estimator_bridge.launcher.monitors.remote_failures import RemoteFailures
from estimator_bridge.launcher.outcome import Outcome
from tests.launcher.conftest import Play, alive, pids, wait_until

HOSTS, COUNTS = ["a:1", "b:1", "c:1"], {"chief": 1, "worker": 1, "ps": 1}
TOLD = Outcome(143)
At = Callable[[float], None]


@pytest.fixture
def meeting(tmp_path: Path) -> Rendezvous:
    return Rendezvous(tmp_path)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Sets the clock, by which a launcher looks once a second."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def set_clock(seconds: float) -> None:
        nonlocal now
        now = seconds

    return set_clock


def losses(meeting: Rendezvous, task: str) -> RemoteFailures:
    """Of the launcher of a task on a machine of its own."""
    return RemoteFailures(hosted_layout(HOSTS, COUNTS, task), meeting, lambda name, line: None)


def test_a_failure_is_everybodys_with_its_reason_and_its_exit_code(meeting: Rendezvous) -> None:
    evaluators, servers = losses(meeting, "evaluator:0"), losses(meeting, "ps:0")

    losses(meeting, "chief:0").tell(
        Outcome(3, BridgeError("chief 0 ended with exit code 3.", received="it printed: disk full"))
    )

    for each in (evaluators, servers):
        outcome = each.look(told=False)
        assert outcome is not None
        assert outcome.code == 3
        assert str(outcome.problem).startswith("chief 0 has failed for good on another machine")
        assert "disk full" in str(outcome.problem)
        each.tell(outcome)
    assert list(meeting.losses()) == [("chief", 0)], "who ends for another's failure has none to tell"
    meeting.forget("chief", 0)
    assert meeting.losses() == {}


@pytest.mark.parametrize(
    ("who", "recovery", "listener", "told", "ends"),
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
def test_who_is_told_to_end_ends_those_that_cannot_go_on_without(
    who: str, recovery: Recovery, listener: str, told: bool, ends: bool, meeting: Rendezvous
) -> None:
    meeting.report_recovery(recovery)
    listening = losses(meeting, listener)

    losses(meeting, who).tell(TOLD)

    assert listening.look(told) == (TOLD if ends else None)


def test_servers_and_evaluators_end_when_nobody_trains_any_more(meeting: Rendezvous, at: At) -> None:
    meeting.report_recovery(Recovery.TASK)
    listening = [losses(meeting, task) for task in ("ps:0", "evaluator:0")]

    losses(meeting, "chief:0").tell(TOLD)
    assert [each.look(told=False) for each in listening] == [None, None], "a worker trains"
    meeting.report_end("worker", 0)
    at(102)

    assert [each.look(told=False) for each in listening] == [TOLD, TOLD]


def test_who_was_lost_before_may_come_back_within_a_minute(meeting: Rendezvous, at: At) -> None:
    """All are started again, this launcher first."""
    losses(meeting, "chief:0").tell(Outcome(3, BridgeError("Failed.")))
    again, late = losses(meeting, "worker:0"), losses(meeting, "evaluator:0")
    at(130)
    assert again.look(told=False) is None
    meeting.report_loss("chief", 0, Loss(130, 3, "Failed."))
    at(132)
    assert again.look(told=False) is not None, "it came back, and failed again"

    losses(meeting, "ps:0").tell(Outcome(0))
    assert list(meeting.losses()) == [("chief", 0)]
    meeting.report_loss("chief", 0, Loss(1, 3, "Failed."))
    assert losses(meeting, "worker:0").look(told=False) is None
    at(193)
    assert late.look(told=False) is not None, "nobody started it"


@pytest.mark.parametrize(
    ("task", "plan", "code"),
    [
        ("evaluator", "lost:chief:3:disk full,sleep:60", 3),
        ("chief", "recovery:worker,step:1,exit:143|lost:worker:143,sleep:60", 143),
    ],
)
def test_a_launcher_ends_with_what_another_said(play: Play, tmp_path: Path, task: str, plan: str, code: int) -> None:
    """The reason, or its own word to those that train in step; which ended this task first, so that it was started again."""
    layout = hosted_layout([f"127.0.0.1:{port}" for port in (1, 2, 3)], COUNTS, f"{task}:0")

    ended = play({f"{task} 0": plan}, layouts=[layout], rendezvous=tmp_path / "shared")

    assert ended.code == code
    assert ended.states == {f"{task} 0": "stopped"}
    assert ("disk full" in ended.problem) == (code == 3)
    told = [(name, loss.problem) for (name, _), loss in Rendezvous(tmp_path / "shared").losses().items()]
    assert told == ([("chief", "disk full")] if code == 3 else [("worker", None), ("chief", None)])


@pytest.mark.parametrize("trainers", [["chief", "worker"], []])
def test_a_server_that_is_told_to_end_stays_until_all_that_train_have_saved(
    play: Play, tmp_path: Path, trainers: list[str]
) -> None:
    """A scheduler tells all machines at once; where nobody says that it has saved, the grace period ends."""
    seen: list[int] = []

    def scheduler() -> None:
        wait_until(lambda: bool(pids(tmp_path)))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.5)
        seen.extend(alive(pids(tmp_path)))
        for job in trainers:
            Rendezvous(tmp_path / "shared").report_loss(job, 0, Loss(time.time(), 143, None))

    thread = threading.Thread(target=scheduler)
    thread.start()
    layout = hosted_layout([f"127.0.0.1:{port}" for port in (1, 2, 3)], COUNTS, "ps:0")
    ended = play({"ps 0": "sleep:60"}, layouts=[layout], rendezvous=tmp_path / "shared", grace=30 if trainers else 1)
    thread.join()

    assert (ended.code, ended.states) == (143, {"ps 0": "stopped"})
    assert seen == pids(tmp_path)
