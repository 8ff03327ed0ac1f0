"""A launcher that is lost without a word, as those on other machines notice it, and what becomes of the training."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from estimator_bridge.cluster.rendezvous import Flag, Loss, Recovery, Rendezvous
from estimator_bridge.cluster.server_status import Answer, Health
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher import supervisor
from estimator_bridge.launcher.layout import hosted_layout
from estimator_bridge.launcher.monitors import heartbeats, readiness, restarts
from estimator_bridge.launcher.monitors.heartbeats import Heartbeats
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.outcome import Outcome, Timeouts
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.launcher.processes.task import Task
from tests.launcher.conftest import Play, command, wait_until

pytestmark = pytest.mark.timeout(120)
HOSTS, COUNTS = ["a:1", "b:1", "c:1"], {"chief": 1, "worker": 1, "ps": 1}
WORKER = TaskId("worker", 0)
ENDS = {
    "ended": lambda meeting: meeting.report_end("worker", 0),
    "lost": lambda meeting: meeting.report_loss("worker", 0, Loss(1, 143, None)),
    "trained": lambda meeting: meeting.set_flag(Flag.TRAINED),
}
LAUNCHER = """
import json, pathlib, sys
from estimator_bridge.cluster import signs
from estimator_bridge.cluster.launching import launch
from estimator_bridge.cluster.layout import hosted_layout
from estimator_bridge.cluster.outcome import Timeouts
signs._GIVE_SECONDS = 0.1
hosts, counts, task, command, logs, shared = json.loads(sys.argv[1])
layout = hosted_layout(hosts, counts, task)
sys.exit(launch([layout], command, pathlib.Path(logs), Timeouts(), sys.stdout, rendezvous=pathlib.Path(shared)).outcome.code)
"""


class Watch:
    """The launcher of a task, in a time of its own, listening to the worker's, on a machine of its own.

    Attributes:
        now: the time, 100 at the start; both look every 2 seconds, and give a sign or listen every 6.
        serves: whether the worker's server answers.
        told: what the reader is told, and when.
    """

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, task: str = "chief:0", lost: str = "worker:0", ready: float = 60
    ) -> None:
        self.now = 100.0
        self.serves = False
        self.told: list[str] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(heartbeats, "ask", self._ask)
        self.meeting = Rendezvous(folder)
        ours, theirs = (hosted_layout(HOSTS, COUNTS, each) for each in (task, lost))
        limits = Timeouts(ready, lost=60)
        self.preflight = Preflight(ours, [], self.meeting, ready, self._say)
        self.ours = Heartbeats(ours, self.meeting, limits, self.preflight, self._say)
        self.theirs = Heartbeats(theirs, self.meeting, limits, self.preflight, lambda name, line: None)

    def _ask(self, servers: dict[TaskId, str], timeout: float) -> list[Answer]:
        health = Health.READY if self.serves else Health.MISSING
        return [
            Answer(task, address, health, reason="" if self.serves else "no connection") for task, address in servers.items()
        ]

    def _say(self, name: str, line: str) -> None:
        self.told.append(f"at {self.now:g}: {line}")

    def until(self, end: float, there: bool) -> Outcome | None:
        """Looks until then, or until it ends."""
        while self.now < end:
            self.now += 2
            if there:
                self.theirs.look()
            self.ours.look()
            if (outcome := self.ours.judge()) is not None:
                return outcome
        return None


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(tmp_path, monkeypatch)


@pytest.mark.parametrize("end", [None, *ENDS])
def test_silence_is_told_once_and_so_is_a_return(watch: Watch, end: str | None) -> None:
    """Of a worker's launcher; that of the parameter server has not started yet. Who has ended may be silent. A server that answers is not lost."""
    watch.serves = True
    watch.until(148, there=True)
    if end:
        ENDS[end](watch.meeting)
    assert watch.until(248, there=False) is None
    watch.until(300, there=end is None)

    silent = "the launcher of worker 0 gives no sign of life for 42 s: it is stopped, or its way to the rendezvous is lost; its server answers"
    expected = [f"at 186: {silent}", "at 252: the launcher of worker 0 is there again"]
    assert watch.told == ([] if end else expected)


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
def test_who_is_lost_ends_what_does_not_go_on_without(
    recovery: Recovery, lost: str, awaited: bool, ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(tmp_path, monkeypatch, "evaluator:0", lost)
    watch.meeting.report_recovery(recovery)
    [task] = hosted_layout(HOSTS, COUNTS, lost).tf_configs

    watch.until(148, there=True)
    watch.preflight.awaited = {task} if awaited else set()
    outcome = watch.until(300, there=False)

    address = dict(zip(("chief", "worker", "ps"), HOSTS, strict=True))[task.job]
    [line] = watch.told
    assert line.startswith(
        f"at 186: {task} at {address} is lost: its launcher gives no sign of life for 42 s, its server no answer ("
    )
    assert ("training goes on without it, and takes it back" in line) != ends
    assert (outcome is not None) == ends
    assert watch.ours.strands == ends
    if outcome is not None:
        assert watch.now == 204, "60 s after the last sign"
        assert outcome.code == 1
        assert str(outcome.problem).startswith(f"{task} at {address} is lost, and training does not go on without it.")
        assert "no sign of life for 60 s; no connection" in str(outcome.problem)


def test_who_is_there_again_in_time_is_taken_back(watch: Watch) -> None:
    watch.until(148, there=True)
    assert watch.until(200, there=False) is None
    assert watch.ours.lost == {WORKER}
    assert watch.until(400, there=True) is None
    assert (watch.ours.lost, watch.told[1:]) == (set(), ["at 204: the launcher of worker 0 is there again"])


def test_a_server_that_answers_again_is_not_lost(watch: Watch) -> None:
    watch.until(148, there=True)
    watch.until(200, there=False)
    watch.serves = True
    assert watch.until(400, there=False) is None
    assert watch.ours.lost == set()
    assert "gives no sign of life for 60 s" in watch.told[1]
    assert "its server answers" in watch.told[1]


def test_a_machine_that_is_stopped_for_half_a_minute_is_not_missed(watch: Watch) -> None:
    watch.until(148, there=True)
    watch.until(180, there=False)
    watch.until(300, there=True)
    assert watch.told == []


def test_who_was_stopped_itself_has_heard_nobody_meanwhile(watch: Watch) -> None:
    """A scheduler that suspends a job stops all machines, and lets one go on before the other."""
    watch.until(148, there=True)
    watch.now += 600
    assert watch.until(watch.now + 4, there=False) is None
    watch.until(watch.now + 100, there=True)
    assert watch.told == []


def test_a_sign_of_a_life_before_is_none(watch: Watch) -> None:
    """All launchers are started again, this one first: for the servers of the others there is --ready-timeout."""
    watch.meeting.give_sign("worker", 0)
    watch.preflight.awaited = {WORKER}
    assert watch.until(400, there=False) is None
    assert watch.told == []


def test_nobody_is_lost_where_no_server_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(tmp_path, monkeypatch, ready=0)
    watch.until(148, there=True)
    assert watch.until(400, there=False) is None
    [line] = watch.told
    assert line.endswith("its server is not asked (--ready-timeout 0)")


@pytest.mark.parametrize("lost", [True, False])
def test_the_time_of_all_servers_begins_when_a_lost_one_is_back(
    lost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler may start its launcher later than servers have to answer; TensorFlow takes its time after that."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(readiness, "ask", lambda *_: [Answer(WORKER, "b:1", Health.MISSING, reason="no connection")])
    layout = hosted_layout(HOSTS, COUNTS, "chief:0")
    task = Task(TaskId("chief", 0), [], {}, tmp_path / "log", lambda name, text: None)
    checks = Preflight(layout, [task], Rendezvous(tmp_path), 60, lambda name, text: None)
    checks.begin()
    for now in range(101, 300):
        if (outcome := checks.look({WORKER} if lost and now <= 200 else ())) is not None:
            break
    assert outcome is not None
    assert now == (261 if lost else 161)


def test_a_training_is_over_without_those_that_it_went_on_without(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chief of an asynchronous one has ended well, its worker is lost, and a parameter server waits for nobody else."""
    monkeypatch.setattr(heartbeats, "_GIVE_SECONDS", 0.1)
    monkeypatch.setattr(heartbeats, "_SILENT_SECONDS", 0.3)
    monkeypatch.setattr(readiness, "ask", lambda asked, _: [Answer(task, "", Health.READY, (), 1, 1.0) for task in asked])
    meeting = Rendezvous(tmp_path / "shared")
    meeting.folder.mkdir()
    meeting.report_end("chief", 0)
    layout = hosted_layout([f"127.0.0.1:{port}" for port in free_ports(3)], COUNTS, "ps:0")

    def worker() -> None:
        wait_until(lambda: meeting.sign("ps", 0) is not None)
        for _ in range(4):
            meeting.give_sign("worker", 0)
            time.sleep(0.1)

    (thread := threading.Thread(target=worker)).start()
    ended = play({"ps 0": "recovery:task,sleep:60"}, layouts=[layout], rendezvous=meeting.folder, ready=60, lost=0.5)
    thread.join()

    assert (ended.code, ended.states) == (0, {"ps 0": "stopped"})
    assert [line for line in ended.output if "worker 0 at 127.0.0.1:" in line and "training goes on without it" in line]


def test_a_machine_that_is_killed_ends_those_that_train_in_step_with_it(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two launchers: the worker's, at 127.0.0.2, is killed, and its guard kills its task. The chief's task fails then, as TensorFlow's do,
    and is started again to wait for all servers: for less time than they have from there. It has nothing to save, so SIGTERM is no long wait.
    """
    for name, seconds in (("_GIVE_SECONDS", 0.1), ("_SILENT_SECONDS", 1.0)):
        monkeypatch.setattr(heartbeats, name, seconds)
    monkeypatch.setattr(restarts, "_FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "_LEAD_SECONDS", 0.1)
    one, other = free_ports(2)
    hosts, counts, shared = [f"127.0.0.1:{one}", f"127.0.0.2:{other}"], {"chief": 1, "worker": 1}, tmp_path / "shared"
    plans = {
        "chief 0": "recovery:gang,serve,ready,step:1,meet:worker:0:2,exit:1|stubborn,serve,ready,step:3",
        "worker 0": "serve,ready,step:1,sleep:60",
    }
    asked = json.dumps([hosts, counts, "worker:0", command(tmp_path, plans), str(tmp_path / "worker"), str(shared)])
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, asked], stdout=subprocess.DEVNULL)

    def machine() -> None:
        """Is lost in the midst of its training; the other task sees that its server has gone, and fails."""
        meeting = Rendezvous(shared)
        wait_until(lambda: meeting.step("worker", 0) == 1 and meeting.step("chief", 0) == 1)
        launcher.kill()
        launcher.wait()
        meeting.report_step("worker", 0, 2)

    (thread := threading.Thread(target=machine)).start()
    try:
        ended = play(plans, layouts=[hosted_layout(hosts, counts, "chief:0")], rendezvous=shared, ready=60, lost=3, grace=1000)
    finally:
        launcher.kill()
        thread.join()

    assert ended.code == 1
    assert ended.problem.startswith(f"worker 0 at {hosts[1]} is lost, and training does not go on without it.")
    assert [task.restarts for task in ended.launched.tasks] == [1]
    assert ended.launched.tasks[0].step == 1, "it waited, and trained alone for no step"
    [line] = [
        line for line in ended.output if f"worker 0 at {hosts[1]} is lost: its launcher gives no sign of life for" in line
    ]
    assert "(no connection); training does not go on without it, and ends if it is not there again by" in line
    [loss] = Rendezvous(shared).losses().values()
    assert loss.problem == ended.problem, "which launchers of further machines hear"
