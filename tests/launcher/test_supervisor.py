"""Clusters of stand-ins: they find each other, are checked, and end together."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cluster.tasks import TaskContext, TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import given_layout, local_layout, make_layout
from estimator_bridge.launcher.outcome import NoRestart
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.request_checks import check_network
from estimator_bridge.runtime.json_positions import read_object
from tests.launcher.conftest import DEADLINE, Play, pids, wait_until

SERVED = {"chief 0": "serve,ready,step:20", "worker 0": "serve,ready,step:19", "ps 0": "serve,stay"}


def test_each_task_knows_its_place_and_the_end_of_the_others(play: Play) -> None:
    plans = {"chief 0": "config,flags,say:hello", "worker 1": "config", "ps 0": "config,stay"}
    counts = {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1}

    ended = play(plans | {"evaluator 0": "config,trained,say:evaluated", "worker 0": "printed:chief 0. done"}, counts)

    assert ended.code == 0
    assert ended.states == {"ps 0": "stopped", "worker 0": "done", "worker 1": "done", "chief 0": "done", "evaluator 0": "done"}
    configs = [json.loads(line.partition("| ")[2]) for line in ended.output if '"cluster"' in line]
    assert sorted((config["task"]["type"], config["task"]["index"]) for config in configs) == [
        ("chief", 0), ("evaluator", 0), ("ps", 0), ("worker", 1)]  # fmt: skip
    cluster = configs[0]["cluster"]
    assert all(config["cluster"] == cluster for config in configs)
    assert {job: len(tasks) for job, tasks in cluster.items()} == {"ps": 1, "worker": 2, "chief": 1}
    addresses = [address for tasks in cluster.values() for address in tasks]
    assert len(set(addresses)) == 4
    assert {address.partition(":")[0] for address in addresses} == {"127.0.0.1"}
    assert "chief 0     | hello" in ended.output
    assert "chief 0     | loopback ready shared" in ended.output
    assert ended.log("chief-0").splitlines()[-1] == "hello"
    assert ended.log("evaluator-0").splitlines()[-1] == "evaluated"


def test_no_task_trains_before_every_server_has_answered(play: Play) -> None:
    ended = play(SERVED | {"ps 0": "sleep:1,serve,stay"}, ready=DEADLINE)

    assert ended.code == 0
    ready = [
        line for line in ended.output if line.startswith("launch") and ": ready, CPU:0, incarnation 0000000000000007" in line
    ]
    assert [line.split()[2] for line in ready] == ["ps", "worker", "chief"]
    steps = {task["task"]: task["global_step"] for task in ended.launched.to_json()["tasks"]}
    assert steps == {"chief 0": 20, "worker 0": 19, "ps 0": None}


@pytest.mark.parametrize(
    ("worker", "ready", "said"),
    [
        ("stay", 4, "missing, no (connection|answer within 0.5 s)"),
        ("serve:worker:1,stay", DEADLINE, "another task, worker 1 answers here"),  # which ends it at once
    ],
)
def test_a_cluster_that_is_not_ready_names_the_missing_task(play: Play, worker: str, ready: float, said: str) -> None:
    ended = play(SERVED | {"worker 0": worker}, ready=ready)

    assert ended.code == 1
    assert ended.problem.startswith("The cluster is not ready")
    [line] = [line for line in ended.problem.splitlines() if "worker 0 at 127.0.0.1:" in line]
    assert re.search(f"{said}$", line)
    assert set(ended.states.values()) == {"stopped"}


@pytest.mark.parametrize(
    ("plans", "code", "first"),
    [
        ({"chief 0": "exit:7", "worker 0": "stay"}, 7, "chief 0 ended with exit code 7"),
        ({"worker 0": "say:disk full,exit:3", "chief 0": "child,stay"}, 3, "worker 0 ended with exit code 3"),
        ({"worker 0": "killed", "chief 0": "stay"}, 137, "worker 0 ended with exit code 137"),
        ({"ps 0": "exit:0", "chief 0": "stay"}, 1, "ps 0 ended with exit code 0"),
    ],
)
def test_the_first_task_that_fails_ends_the_others_and_is_named(
    play: Play, plans: dict[str, str], code: int, first: str
) -> None:
    ended = play({"ps 0": "stay"} | plans)

    assert ended.code == code
    assert ended.problem.splitlines()[0] == f"{first}, so the others were ended."
    assert ended.states[first[: first.index(" ended")]] == "failed"
    assert ("disk full" in ended.problem) == (code == 3)


def test_a_full_disk_is_reported_once_and_training_goes_on(play: Play, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "chief-0.log").symlink_to("/dev/full")

    ended = play({"chief 0": "say:hello,sleep:0.3,say:goodbye", "worker 0": "say:hello", "ps 0": "stay"})

    assert ended.code == 0, ended.problem
    assert [line for line in ended.output if line.startswith("chief")] == ["chief 0     | hello", "chief 0     | goodbye"]
    [told] = [line for line in ended.output if "cannot be written" in line]
    assert told.startswith(f"launch      | {tmp_path / 'logs' / 'chief-0.log'} cannot be written: No space left on device")


def test_a_launcher_that_is_interrupted_starts_no_more_tasks(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of tasks start in turn, on a machine that they keep busy."""
    start = Spawner.start
    started = []

    def told_meanwhile(*arguments: Any) -> socket.socket:
        started.append(control := start(*arguments))
        wait_until(lambda: bool(pids(tmp_path)))
        os.kill(os.getpid(), signal.SIGTERM)
        return control

    monkeypatch.setattr(Spawner, "start", told_meanwhile)

    ended = play({"ps 0": "stay", "worker 0": "stay", "chief 0": "stay"})

    assert ended.code == 128 + signal.SIGTERM
    assert len(started) == 1
    assert set(ended.states.values()) == {"stopped"}


def test_a_process_that_a_task_leaves_behind_ends_with_it(play: Play) -> None:
    """``play`` looks for survivors; here one left its parent and its session."""
    assert play({"chief 0": "child", "ps 0": "stay"}).code == 0


def test_a_task_that_does_not_end_after_the_chief_is_named(play: Play) -> None:
    ended = play({"worker 0": "stay", "ps 0": "stay"}, finish=0.5)

    assert ended.code == 1
    assert ended.problem.startswith("worker 0: still running 0.5 s after the end of the training.")


def test_a_port_that_was_taken_meanwhile(play: Play) -> None:
    layout = local_layout({"chief": 1, "worker": 1})
    with socket.create_server(("", 0)) as taken:
        conflicting = dict.fromkeys(layout.addresses, f"127.0.0.1:{taken.getsockname()[1]}")
        ended = play({"chief 0": "bind"}, layouts=[make_layout(conflicting, list(layout.tf_configs)), layout], ready=DEADLINE)

    assert ended.code == 0
    assert ended.states == {"chief 0": "done", "worker 0": "done"}
    assert ended.output.count("launch      | a port was taken before its server started") == 1


def test_a_port_that_is_taken_on_every_try_is_named(play: Play) -> None:
    layout = local_layout({"chief": 1, "worker": 1})
    with socket.create_server(("", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        conflicting = make_layout({**layout.addresses, TaskId("chief", 0): address}, list(layout.tf_configs))
        ended = play({"chief 0": "bind", "worker 0": "stay"}, layouts=[conflicting], ready=DEADLINE)

    assert ended.code == 1
    assert ended.no_restart is NoRestart.PORT_TAKEN
    assert address in ended.problem


@pytest.mark.parametrize(("job", "code"), [("worker", 3), ("ps", 3), ("evaluator", 3), ("ps", 0)])
def test_one_task_of_a_cluster_on_other_machines(play: Play, job: str, code: int) -> None:
    """The task gets its TF_CONFIG unchanged, and the launch ends with the task."""
    tf_config = {"cluster": {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}, "rpc_layer": "grpc"}
    tf_config["task"] = {"type": job, "index": 0}

    ended = play(
        {f"{job} 0": f"config,flags,exit:{code}"},
        layouts=[given_layout(TaskContext(read_object(json.dumps(tf_config), "TF_CONFIG")))],
    )

    assert ended.code == code
    assert list(ended.states) == [f"{job} 0"]
    assert json.loads(ended.output[0].partition("| ")[2]) == tf_config
    assert "shared" not in ended.output[1], "tasks elsewhere have folders of their own"


@pytest.mark.parametrize("address", ["10.example:2222", "0.0.0.0:2222", "[2001:db8::1]:2222", "127.0.0.1.example:2222"])
def test_servers_that_other_machines_can_reach_need_permission(address: str) -> None:
    task = TaskId("chief", 0)
    check_network(make_layout({task: "127.0.0.1:2222", TaskId("ps", 0): "[::1]:2222"}, [task]), is_trusted=False)
    layout = make_layout({task: address}, [task])
    assert not layout.is_local
    check_network(layout, is_trusted=True)
    with pytest.raises(BridgeError, match="add --trusted-network"):
        check_network(layout, is_trusted=False)


def test_a_cluster_without_trainers_is_refused() -> None:
    with pytest.raises(BridgeError, match="No task would train"):
        local_layout({"chief": 0, "ps": 2})
