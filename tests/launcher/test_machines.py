"""One task of a cluster whose other tasks run on other machines, for which this machine stands in."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous
from estimator_bridge.cluster.server_status import Answer, Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher import request_checks
from estimator_bridge.launcher.layout import hosted_layout
from estimator_bridge.launcher.monitors import readiness, remote_tasks, restarts
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.ports import free_ports, is_free
from tests.launcher.conftest import STAND_IN, Play, command, local_cluster, pids, wait_until

COUNTS = {"chief": 1, "worker": 1, "ps": 1}


def hosts() -> list[str]:
    return [f"127.0.0.1:{port}" for port in free_ports(3)]


def test_each_machine_gets_the_same_list_and_runs_its_own_task() -> None:
    layout = hosted_layout(["a:1", "b:2", "c:3"], COUNTS, "worker:0")

    assert list(layout.tf_configs) == [TaskId("worker", 0)]
    assert json.loads(layout.tf_configs[TaskId("worker", 0)]) == {
        "cluster": {"chief": ["a:1"], "worker": ["b:2"], "ps": ["c:3"]},
        "task": {"type": "worker", "index": 0},
    }
    assert json.loads(hosted_layout(["a:1", "b:2", "c:3"], COUNTS, "evaluator:0").tf_configs[TaskId("evaluator", 0)])["task"] == {
        "type": "evaluator", "index": 0}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "task", "said"),
    [
        (["a:1", "b:2"], "ps:0", "3 different addresses such as host:2222, for chief 0, worker 0, ps 0"),
        (["a:1", "b", "c:3"], "ps:0", "--hosts does not give each task an address of its own"),
        (["a:1", "b:2", "a:1"], "ps:0", "3 different addresses"),
        (["a:1", "b:65536", "c:3"], "ps:0", "--hosts does not give each task an address of its own"),
        (["a:1", "b:0", "c:3"], "ps:0", "--hosts does not give each task an address of its own"),
        (["a:1", "grpc://b:2", "c:3"], "ps:0", "--hosts does not give each task an address of its own"),
        (["a:1", " b:2", "c:3"], "ps:0", "--hosts does not give each task an address of its own"),
        (["a:1", "b:2", "c:3"], "worker:1", "one of chief:0, worker:0, ps:0, evaluator:0"),
    ],
)
def test_hosts_that_are_no_cluster(given: list[str], task: str, said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        hosted_layout(given, COUNTS, task)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--hosts", "192.0.2.1:1"], "--hosts and --task must be given together."),
        (["--hosts", "192.0.2.1:1", "--task", "chief:0"], "Servers of this cluster can be reached over the network."),
        (["--hosts", "127.0.0.1:1", "--chief", "0", "--ps", "1", "--task", "ps:0"], "No task would train."),
        (["--rendezvous", "shared"], "--rendezvous is only for clusters on several machines."),
        (
            ["--hosts", "127.0.0.1:1", "--task", "chief:0", "--rendezvous", "/proc/no"],
            "The rendezvous of the launchers cannot be used.",
        ),
    ],
)
def test_the_command_line_refuses(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert main(["launch", "--log-dir", str(tmp_path), *arguments, __file__]) == 2
    assert capsys.readouterr().err.startswith(f"estimator-bridge: {said}")


@pytest.mark.parametrize("known", [True, False])
def test_a_taken_port_is_named_with_its_process(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr(request_checks, "_END_SECONDS", 0.2)
    if not known:  # as of another user's process
        monkeypatch.setattr(psutil, "net_connections", lambda kind: [])
    with socket.create_server(("", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        options = ["--hosts", f"127.0.0.1:1,{address}", "--worker", "1", "--task", "worker:0"]

        assert main(["launch", "--log-dir", str(tmp_path / "logs"), *options, __file__]) == 2

    said = capsys.readouterr().err
    assert f"worker 0 cannot serve at {address}: the port is taken." in said
    received = f"process {os.getpid()}, {psutil.Process().name()}" if known else "a process that the system hides"
    assert f"received: {received}" in said
    assert not (tmp_path / "logs").exists()


def test_a_port_whose_server_has_just_ended_is_free() -> None:
    """Its connections linger for a minute, and block a socket that does not set SO_REUSEADDR, as servers do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
    with pytest.raises(OSError, match="in use"), socket.socket() as strict:
        strict.bind(("127.0.0.1", port))
    assert is_free(port)


def test_a_tf_config_without_trainers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"ps": ["127.0.0.1:1"]}, "task": {"type": "ps", "index": 0}}))
    assert main(["launch", "--log-dir", str(tmp_path), __file__]) == 2
    assert capsys.readouterr().err.startswith("estimator-bridge: No task would train.")


@pytest.mark.parametrize(("job", "state"), [("ps", "stopped"), ("evaluator", "done")])
def test_a_single_task_ends_when_other_launchers_report_the_end(play: Play, tmp_path: Path, job: str, state: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    Rendezvous(shared).report_end(TaskId("chief", 0))

    def worker_ends() -> None:
        """Reports the end as the worker's launcher does, after the task of this launcher has started."""
        wait_until(lambda: bool(pids(tmp_path)))
        Rendezvous(shared).report_end(TaskId("worker", 0))
        Rendezvous(shared).set_flag(Flag.TRAINED)

    threading.Thread(target=worker_ends, daemon=True).start()
    plan = "stay" if job == "ps" else "trained,say:evaluated"

    ended = play({f"{job} 0": plan}, layouts=[hosted_layout(hosts(), COUNTS, f"{job}:0")], rendezvous=shared)

    assert (ended.code, ended.states) == (0, {f"{job} 0": state})


@pytest.mark.parametrize("shares", [True, False])
def test_a_parameter_server_that_ends_while_a_remote_task_trains_has_failed(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: bool
) -> None:
    """The worker's launcher has not reported an end; without a shared folder the worker's server answers."""
    rendezvous = tmp_path / "shared" if shares else None
    if shares:
        (tmp_path / "shared").mkdir()
        Rendezvous(tmp_path / "shared").report_end(TaskId("chief", 0))
    answer = Answer(TaskId("worker", 0), "127.0.0.1:1", Health.MISSING if shares else Health.READY)
    monkeypatch.setattr(remote_tasks, "ask", lambda servers, timeout: [answer])
    monkeypatch.setattr(restarts, "_REMOTE_SECONDS", 0.1)

    ended = play({"ps 0": "exit:0"}, layouts=[hosted_layout(hosts(), COUNTS, "ps:0")], rendezvous=rendezvous)

    assert (ended.code, ended.states) == (1, {"ps 0": "failed"})
    assert ended.problem.startswith("ps 0 ended with exit code 0, so the others were ended.")


@pytest.mark.parametrize("said", [False, True])
def test_an_evaluators_launcher_neither_sets_nor_clears_ready(tmp_path: Path, said: bool) -> None:
    layout, rendezvous = hosted_layout(hosts(), COUNTS, "evaluator:0"), Rendezvous(tmp_path)
    if said:
        rendezvous.set_flag(Flag.READY)

    checks = Preflight(local_cluster(layout, rendezvous, ready=60))
    checks.begin()

    assert checks.judge() is None
    assert rendezvous.has_flag(Flag.READY) is said


@pytest.mark.parametrize(("recovery", "shared", "ready"), [("gang", True, False), ("gang", False, True), ("task", True, True)])
def test_a_task_in_step_waits_until_the_others_have_been_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovery: str, shared: bool, ready: bool
) -> None:
    """Old servers still answer for a moment. If their launchers learn nothing of the restart, they may go on."""
    incarnation = {TaskId("chief", 0): 1, TaskId("worker", 0): 1, TaskId("ps", 0): 1}
    answers = [Answer(task, "", Health.READY, milliseconds=1.0) for task in incarnation]
    monkeypatch.setattr(
        readiness, "ask", lambda *_: [dataclasses.replace(one, incarnation=incarnation[one.task]) for one in answers]
    )
    monkeypatch.setattr(readiness, "_ASK_SECONDS", 0)
    layout, rendezvous = hosted_layout(hosts(), COUNTS, "worker:0"), Rendezvous(tmp_path)
    rendezvous.report_recovery(Recovery(recovery))
    if shared:
        rendezvous.set_flag(Flag.SHARED)
    checks = Preflight(local_cluster(layout, rendezvous, ready=60))
    for life in (1, 2):
        incarnation[TaskId("worker", 0)] = life
        checks.begin()
        assert checks.judge() is None
        assert rendezvous.has_flag(Flag.READY) is (ready or life == 1)
    incarnation.update({TaskId("chief", 0): 2, TaskId("ps", 0): 2})
    rendezvous.report_gang_start()
    assert checks.judge() is None
    assert rendezvous.has_flag(Flag.READY)
    assert checks.gang_starts == (not ready), "the servers that answered had started by then, so no restart follows them"


def never_answered(
    monkeypatch: pytest.MonkeyPatch, rendezvous: Rendezvous, servers: int, ready: float
) -> tuple[float, list[str]]:
    """Returns the seconds (up to 1000) until an evaluator's launcher takes training for over, and its lines."""
    now, said = 50.0, []
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(remote_tasks, "ask", lambda servers, timeout: [])
    counts = {"chief": 1, "worker": servers - 1}
    layout = hosted_layout(hosts()[:servers], counts, "evaluator:0")
    cluster = local_cluster(layout, rendezvous, lambda name, line: said.append(line), ready=ready, finish=100)
    asks = remote_tasks.RemoteTasks(cluster)
    while not asks.is_training_over() and now < 1050:
        now += 10
    return now - 50, said


def test_an_evaluator_that_starts_after_the_training_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after, said = never_answered(monkeypatch, Rendezvous(tmp_path), servers=2, ready=60)
    assert after == 170, "the first look after both deadlines"
    assert said == ["no chief or worker has answered for 100 s: training counts as over"]


@pytest.mark.parametrize(("servers", "ready"), [(1, 60), (2, 0)])
def test_silence_means_nothing_if_no_server_is_asked(
    servers: int, ready: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert never_answered(monkeypatch, Rendezvous(tmp_path), servers, ready) == (1000, [])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--hosts", "127.0.0.1:1", "--task", "evaluator:0"],
        ["--engine", "slurm", "--evaluator", "1", "--trusted-network"],
        ["--engine", "kubeflow", "--image", "a", "--evaluator", "1", "--trusted-network"],
    ],
)
def test_an_evaluator_that_could_not_learn_of_the_end_is_refused(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert main(["launch", "--log-dir", str(tmp_path), *arguments, __file__]) == 2
    assert capsys.readouterr().err.startswith("estimator-bridge: The evaluator would never learn that training has ended")

    if "--engine" in arguments:
        assert main(["launch", *arguments, "--rendezvous", str(tmp_path), __file__]) == 0
        assert main(["launch", *arguments, "--worker", "1", __file__]) == 0


def test_the_rendezvous_of_a_training_that_has_ended(play: Play, tmp_path: Path) -> None:
    """A parameter server of another training would end at once; the evaluator of this one may start again."""
    shared = tmp_path / "shared"
    shared.mkdir()
    Rendezvous(shared).report_end(TaskId("chief", 0))
    Rendezvous(shared).report_end(TaskId("worker", 0))
    Rendezvous(shared).set_flag(Flag.TRAINED)
    places = hosts()

    for task in ("worker:0", "ps:0"):
        with pytest.raises(
            BridgeError, match=r"The training of this rendezvous has ended(.|\n)*a new folder for each training"
        ):
            play({}, layouts=[hosted_layout(places, COUNTS, task)], rendezvous=shared)
    ended = play({"evaluator 0": "trained"}, layouts=[hosted_layout(places, COUNTS, "evaluator:0")], rendezvous=shared)

    assert (ended.code, ended.states) == (0, {"evaluator 0": "done"})


def test_reports_of_an_earlier_start_are_cleared(play: Play, tmp_path: Path) -> None:
    """A launcher that had no answer for long had set TRAINED."""
    shared = tmp_path / "shared"
    shared.mkdir()
    before = Rendezvous(shared)
    before.report_step(TaskId("worker", 0), 500)
    before.report_step(TaskId("chief", 0), 500)
    before.set_flag(Flag.TRAINED)

    ended = play({"worker 0": "exit:3"}, layouts=[hosted_layout(hosts(), COUNTS, "worker:0")], rendezvous=shared)

    assert ended.launched.tasks[0].step is None
    assert (before.step(TaskId("chief", 0)), before.has_flag(Flag.TRAINED)) == (500, False)
    [(task, failure)] = before.failures().items()
    assert (task, failure.code, failure.problem) == (TaskId("worker", 0), 3, ended.problem)


def test_processes_of_two_machines_with_one_number_write_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, machines = Path.write_text, iter(["a", "b"])
    monkeypatch.setattr(os, "getpid", lambda: 7)
    monkeypatch.setattr(socket, "gethostname", lambda: next(machines))

    def interrupted(self: Path, *arguments: Any, **options: Any) -> int:
        monkeypatch.setattr(Path, "write_text", write)
        written = write(self, *arguments, **options)
        Rendezvous(tmp_path).report_recovery(Recovery.TASK)
        return written

    monkeypatch.setattr(Path, "write_text", interrupted)
    Rendezvous(tmp_path).report_recovery(Recovery.TASK)

    assert Rendezvous(tmp_path).recovery() is Recovery.TASK
    assert [file.name for file in tmp_path.iterdir()] == ["recovery"]


def test_a_file_that_another_machine_replaces_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS reports "stale" for a file that was opened before its replacement."""
    Rendezvous(tmp_path).report_step(TaskId("chief", 0), 7)
    read = Path.read_text

    def stale(self: Path, *arguments: Any, **options: Any) -> str:
        monkeypatch.setattr(Path, "read_text", read)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(Path, "read_text", stale)
    assert Rendezvous(tmp_path).step(TaskId("chief", 0)) == 7


def test_a_folder_that_cannot_be_read_is_named(play: Play, tmp_path: Path) -> None:
    (tmp_path / "shared" / "chief-0.ended").mkdir(parents=True)  # stands for a share that answers with an error

    with pytest.raises(BridgeError, match=r"cannot be read.\n.*\n.*chief-0.ended: Is a directory"):
        play({"worker 0": "stay"}, layouts=[hosted_layout(hosts(), COUNTS, "worker:0")], rendezvous=tmp_path / "shared")


def test_a_worker_that_has_ended_reports_it(play: Play, tmp_path: Path) -> None:
    ended = play(
        {"worker 0": "flags,say:trained"}, layouts=[hosted_layout(hosts(), COUNTS, "worker:0")], rendezvous=tmp_path / "shared"
    )

    assert ended.code == 0
    assert "worker 0    | loopback ready shared" in ended.output
    assert Rendezvous(tmp_path / "shared").has_ended(TaskId("worker", 0))
    assert not Rendezvous(tmp_path / "shared").has_ended(TaskId("chief", 0))


def test_a_parameter_server_ends_when_no_chief_or_worker_has_answered_for_long(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chief, which no launcher started, ends once its server has answered."""
    monkeypatch.setattr(remote_tasks, "_ASK_SECONDS", 0.2)

    def record_answer(servers: Mapping[TaskId, str], timeout: float) -> list[Answer]:
        answers = ask(servers, timeout)
        if any(answer.health is Health.READY for answer in answers):
            (tmp_path / "answered").touch()
        return answers

    monkeypatch.setattr(remote_tasks, "ask", record_answer)
    addresses = hosts()
    chief = hosted_layout(addresses, COUNTS, "chief:0")
    environment = os.environ | {"TF_CONFIG": chief.tf_configs[TaskId("chief", 0)]}
    asked = [sys.executable, str(STAND_IN), *command(tmp_path, {"chief 0": "serve,file:answered"})[2:]]
    process = subprocess.Popen(asked, env=environment)
    try:
        ended = play({"ps 0": "say:there,stay"}, layouts=[hosted_layout(addresses, COUNTS, "ps:0")], finish=5)
    finally:
        process.kill()
        process.wait()

    assert (ended.code, ended.states) == (0, {"ps 0": "stopped"})
    assert process.returncode == 0, "the chief had ended by then"


@pytest.mark.parametrize(("recovery", "code", "runs"), [("gang", 0, 3), ("task", 3, 2)])
def test_tasks_in_step_are_restarted_with_those_of_another_launcher(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovery: str, code: int, runs: int
) -> None:
    """The other launcher reports the restart a moment later. Its task failed first; this one would be given up by itself."""
    monkeypatch.setattr(restarts, "_FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(restarts, "_FOLLOW_SECONDS", 0.1)
    plan = f"recovery:{recovery},step:1,exit:3|recovery:{recovery},step:1,gang-start,exit:3|"

    ended = play({"chief 0": plan}, layouts=[hosted_layout(hosts(), COUNTS, "chief:0")], rendezvous=tmp_path / "shared")

    assert ended.code == code
    assert len(list(tmp_path.glob("chief-0.run-*"))) == runs
