"""Launchers that are lost without a report, as launchers on other machines notice them, and the effect on the training."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import pytest

from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous, TaskFailure
from estimator_bridge.cluster.server_status import Answer, Health
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher import supervisor
from estimator_bridge.launcher.layout import hosted_layout
from estimator_bridge.launcher.monitors import heartbeats, readiness, restarts, stall
from estimator_bridge.launcher.monitors.heartbeats import Heartbeats, Presence
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.outcome import Outcome
from estimator_bridge.launcher.ports import free_ports
from tests.launcher.conftest import DEADLINE, Play, command, local_cluster, pids, wait_until
from tests.launcher.run_launcher import Request

HOSTS, COUNTS = ["a:1", "b:1", "c:1"], {"chief": 1, "worker": 1, "ps": 1}
WORKER = TaskId("worker", 0)
ENDS = {
    "ended": lambda rendezvous: rendezvous.report_end(WORKER),
    "lost": lambda rendezvous: rendezvous.report_failure(WORKER, TaskFailure(1, 143, None)),
    "trained": lambda rendezvous: rendezvous.set_flag(Flag.TRAINED),
}


def wait_heard(rendezvous: Rendezvous, listener: TaskId) -> None:
    """Waits until a launcher has read the heartbeats of others, which it does after each of its own, once more."""
    for _ in range(2):
        before = rendezvous.heartbeat(listener)
        wait_until(lambda: rendezvous.heartbeat(listener) != before)  # noqa: B023


class Watch:
    """Heartbeats of two launchers on machines of their own, in a time of their own: this one listens to the other.

    Attributes:
        now: Time, 100 at the start; both update every 2 seconds, and give a heartbeat or listen every 6.
        serves: Whether the other task's server answers.
        said: Lines for the user.
        changes: Times and presences when the other launcher's presence changed.
    """

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, task: str = "chief:0", other: str = "worker:0", ready: float = 60
    ) -> None:
        self.now = 100.0
        self.serves = False
        self.said: list[str] = []
        self.changes: list[tuple[float, Presence]] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(heartbeats, "ask", self._ask)
        self.rendezvous = Rendezvous(folder)
        ours, theirs = (hosted_layout(HOSTS, COUNTS, each) for each in (task, other))
        [self.other] = theirs.tf_configs
        cluster = local_cluster(ours, self.rendezvous, self._say, ready=ready, lost=60)
        self.preflight = Preflight(cluster)
        self.ours = Heartbeats(cluster, self.preflight)
        self.theirs = Heartbeats(local_cluster(theirs, self.rendezvous), Preflight(cluster))

    def _ask(self, servers: dict[TaskId, str], timeout: float) -> list[Answer]:
        health = Health.READY if self.serves else Health.MISSING
        return [
            Answer(task, address, health, reason="" if self.serves else "no connection") for task, address in servers.items()
        ]

    def _say(self, name: str, line: str) -> None:
        self.said.append(line)
        self.changes.append((self.now, self.ours.presence(self.other)))

    def until(self, end: float, beats: bool) -> Outcome | None:
        """Updates until a time, or until the launch ends; the other launcher gives heartbeats if ``beats``."""
        while self.now < end:
            self.now += 2
            if beats:
                self.theirs.update()
            self.ours.update()
            if (outcome := self.ours.judge()) is not None:
                return outcome
        return None


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(tmp_path, monkeypatch)


@pytest.mark.parametrize("end", [None, *ENDS])
def test_a_silent_launcher_is_reported_once_and_so_is_its_return(watch: Watch, end: str | None) -> None:
    """The worker's launcher is meant; that of the parameter server has not started. A launcher that has ended may be silent."""
    watch.serves = True
    watch.until(148, beats=True)
    if end:
        ENDS[end](watch.rendezvous)
    assert watch.until(248, beats=False) is None
    watch.until(300, beats=end is None)

    assert watch.changes == ([] if end else [(186, Presence.SILENT), (252, Presence.PRESENT)])
    assert all("the launcher of worker 0" in line for line in watch.said)
    assert end or "no heartbeat for 42 s" in watch.said[0]


@pytest.mark.parametrize(
    ("recovery", "lost", "awaited", "ends"),
    [
        (Recovery.TASK, "worker:0", False, False),
        (Recovery.TASK, "worker:0", True, True),  # before training
        (Recovery.TASK, "chief:0", False, True),
        (Recovery.TASK, "ps:0", False, True),
        (Recovery.WORKER, "worker:0", False, False),
        (Recovery.WORKER, "ps:0", False, True),
        (Recovery.REPLICA, "worker:0", False, True),
        (Recovery.GANG, "worker:0", False, True),
    ],
)
def test_a_lost_task_ends_a_training_that_needs_it(
    recovery: Recovery, lost: str, awaited: bool, ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(tmp_path, monkeypatch, "evaluator:0", lost)
    watch.rendezvous.report_recovery(recovery)
    task = watch.other

    watch.until(148, beats=True)
    watch.preflight.awaited = {task} if awaited else set()
    outcome = watch.until(300, beats=False)

    address = dict(zip(("chief", "worker", "ps"), HOSTS, strict=True))[task.job]
    [line] = watch.said
    assert watch.changes == [(186, Presence.LOST)]
    assert line.startswith(f"{task} at {address} is lost: its launcher gave no heartbeat for 42 s")
    assert ("training goes on without it" in line) != ends
    assert (outcome is not None) == ends
    assert watch.ours.is_needed_task_lost == ends
    if outcome is not None:
        assert watch.now == 204, "60 s after the last heartbeat"
        assert outcome.code == 1
        assert str(outcome.problem).startswith(f"{task} at {address} is lost, and training does not go on without it.")
        assert "no heartbeat for 60 s; no connection" in str(outcome.problem)


def test_a_launcher_that_is_back_in_time_is_accepted(watch: Watch) -> None:
    watch.until(148, beats=True)
    assert watch.until(200, beats=False) is None
    assert watch.ours.lost == {WORKER}
    assert watch.until(400, beats=True) is None
    assert (watch.ours.lost, watch.changes[1:]) == (set(), [(204, Presence.PRESENT)])


def test_a_server_that_answers_again_is_not_lost(watch: Watch) -> None:
    watch.until(148, beats=True)
    watch.until(200, beats=False)
    watch.serves = True
    assert watch.until(400, beats=False) is None
    assert watch.ours.lost == set()
    assert [presence for _, presence in watch.changes] == [Presence.LOST, Presence.SILENT]
    assert "no heartbeat for 60 s" in watch.said[1]
    assert "its server answers" in watch.said[1]


def test_a_machine_that_is_stopped_for_half_a_minute_is_not_missed(watch: Watch) -> None:
    watch.until(148, beats=True)
    watch.until(180, beats=False)
    watch.until(300, beats=True)
    assert watch.said == []


def test_a_launcher_that_was_stopped_itself_does_not_count_that_time_as_silence(watch: Watch) -> None:
    """A scheduler that suspends a job stops all machines, and lets one go on before the other."""
    watch.until(148, beats=True)
    watch.now += 600
    assert watch.until(watch.now + 4, beats=False) is None
    watch.until(watch.now + 100, beats=True)
    assert watch.said == []


def test_a_heartbeat_of_an_earlier_start_does_not_count(watch: Watch) -> None:
    """All launchers are started again, this one first; --ready-timeout applies to the servers of the others."""
    watch.rendezvous.beat(WORKER)
    watch.preflight.awaited = {WORKER}
    assert watch.until(400, beats=False) is None
    assert watch.said == []


def test_no_task_is_lost_if_no_server_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(tmp_path, monkeypatch, ready=0)
    watch.until(148, beats=True)
    assert watch.until(400, beats=False) is None
    [line] = watch.said
    assert watch.ours.presence(WORKER) is Presence.SILENT
    assert line.endswith("its server was not asked (--ready-timeout 0)")


@pytest.mark.parametrize("lost", [True, False])
def test_the_time_of_all_servers_begins_when_a_lost_one_is_back(
    lost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler may start its launcher later than servers have to answer; TensorFlow takes its time after that."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(readiness, "ask", lambda *_: [Answer(WORKER, "b:1", Health.MISSING, reason="no connection")])
    layout = hosted_layout(HOSTS, COUNTS, "chief:0")
    checks = Preflight(local_cluster(layout, Rendezvous(tmp_path), ready=60))
    checks.begin()
    for now in range(101, 300):
        checks.lost = {WORKER} if lost and now <= 200 else ()
        if (outcome := checks.judge()) is not None:
            break
    assert outcome is not None
    assert now == (261 if lost else 161)


def test_a_training_ends_without_the_tasks_that_it_went_on_without(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chief of an asynchronous training has ended, its worker is lost, and a parameter server waits for no other task."""
    monkeypatch.setattr(heartbeats, "_BEAT_SECONDS", 0.1)
    monkeypatch.setattr(readiness, "ask", lambda asked, _: [Answer(task, "", Health.READY, (), 1, 1.0) for task in asked])
    rendezvous = Rendezvous(tmp_path / "shared")
    rendezvous.folder.mkdir()
    rendezvous.report_end(TaskId("chief", 0))
    layout = hosted_layout([f"127.0.0.1:{port}" for port in free_ports(3)], COUNTS, "ps:0")

    def worker() -> None:
        wait_until(lambda: rendezvous.heartbeat(TaskId("ps", 0)) is not None and bool(pids(tmp_path)))
        for _ in range(2):
            rendezvous.beat(WORKER)
            wait_heard(rendezvous, TaskId("ps", 0))
        monkeypatch.setattr(heartbeats, "_SILENT_SECONDS", 0.3)

    (thread := threading.Thread(target=worker)).start()
    ended = play({"ps 0": "recovery:task,stay"}, layouts=[layout], rendezvous=rendezvous.folder, ready=DEADLINE, lost=0.5)
    thread.join()

    assert (ended.code, ended.states) == (0, {"ps 0": "stopped"})
    assert [line for line in ended.output if "worker 0 at 127.0.0.1:" in line and "training goes on without it" in line], ended


def test_a_machine_that_is_killed_ends_those_that_train_in_step_with_it(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's launcher, at 127.0.0.2, is killed, and its guard kills its task. The chief's task then fails, as TensorFlow's do,
    and is restarted to wait for all servers. It has nothing to save, so it does not wait long after SIGTERM.
    """
    monkeypatch.setattr(heartbeats, "_BEAT_SECONDS", 0.1)
    monkeypatch.setattr(restarts, "_FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(stall, "_STEPS_AFTER_LOSS", 0.0)  # as short as the silence below
    monkeypatch.setattr(supervisor, "_LEAD_SECONDS", 0.1)
    (one, other), chief = free_ports(2), TaskId("chief", 0)
    hosts, counts, shared = [f"127.0.0.1:{one}", f"127.0.0.2:{other}"], {"chief": 1, "worker": 1}, tmp_path / "shared"
    plans = {
        "chief 0": "recovery:gang,serve,ready,step:1,meet:worker:0:2,exit:1|stubborn,serve,ready,step:3",
        "worker 0": "serve,ready,step:1,stay",
    }
    logs, timeouts = str(tmp_path / "worker"), {"ready": DEADLINE}
    request = Request(counts, command(tmp_path, plans), logs, timeouts, hosts=hosts, task="worker:0", shared=str(shared))
    launcher = subprocess.Popen(request.command(), stdout=subprocess.DEVNULL)

    def machine() -> None:
        """Loses the worker's machine during the training; the chief's task sees that the server is gone, and fails."""
        rendezvous = Rendezvous(shared)
        wait_until(lambda: rendezvous.step(WORKER) == rendezvous.step(chief) == 1)
        wait_heard(rendezvous, chief)
        before = rendezvous.heartbeat(WORKER)
        wait_until(lambda: rendezvous.heartbeat(WORKER) != before)
        wait_heard(rendezvous, chief)
        launcher.kill()
        launcher.wait()
        monkeypatch.setattr(heartbeats, "_SILENT_SECONDS", 1.0)  # not before: a busy machine is silent, too
        rendezvous.report_step(WORKER, 2)

    (thread := threading.Thread(target=machine)).start()
    try:
        ended = play(
            plans, layouts=[hosted_layout(hosts, counts, "chief:0")], rendezvous=shared, ready=DEADLINE, lost=3, grace=1000
        )
    finally:
        launcher.kill()
        thread.join()

    assert ended.code == 1
    assert ended.problem.startswith(f"worker 0 at {hosts[1]} is lost, and training does not go on without it.")
    assert [task.restarts for task in ended.launched.tasks] == [1]
    assert ended.launched.tasks[0].step == 1, "it waited, and trained alone for no step"
    [line] = [line for line in ended.output if f"worker 0 at {hosts[1]} is lost: its launcher gave no heartbeat for" in line]
    assert "(no connection); training does not go on without it, and ends if it is not back by" in line
    [failure] = Rendezvous(shared).failures().values()
    assert failure.problem == ended.problem, "which launchers of further machines hear"
