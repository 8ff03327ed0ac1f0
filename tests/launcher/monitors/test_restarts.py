"""Clusters of stand-ins that fail: restarts, and failures that end the launch."""

from __future__ import annotations

import re
from typing import Any

import pytest

from estimator_bridge.launcher.monitors import restarts as restarting
from estimator_bridge.launcher.monitors import stall
from estimator_bridge.launcher.outcome import NoRestart
from tests.launcher.conftest import DEADLINE, Ended, Play

COUNTS = {"chief": 1, "worker": 1, "ps": 1, "evaluator": 1}
SERVING = "recovery:task,serve,"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarting, "_FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(restarting, "_AT_ONCE_SECONDS", DEADLINE)  # the start of a stand-in takes its time on a busy machine


def restarts(ended: Ended) -> dict[str, int]:
    return {task["task"]: task["restarts"] for task in ended.launched.to_json()["tasks"] if task["restarts"]}


def test_a_worker_and_a_parameter_server_are_restarted_by_themselves(play: Play) -> None:
    both = "printed:incarnation 0000000000000008:2"  # the servers of the second start
    plans = {
        "chief 0": SERVING + f"ready,step:1,{both},step:9",
        "worker 0": f"serve,ready,meet:chief:0:1,step:1,killed|serve,ready,step:5,{both}",
        "ps 0": "serve,ready,meet:worker:0:1,killed|serve,stay",
    }

    ended = play(plans, ready=DEADLINE)

    assert ended.code == 0, ended.problem
    assert restarts(ended) == {"worker 0": 1, "ps 0": 1}
    again = [line for line in ended.output if line.startswith("launch") and "incarnation 0000000000000008" in line]
    assert sorted(line.split()[2] for line in again) == ["ps", "worker"]
    assert all(line.endswith(", restarted: it was 0000000000000007") for line in again)
    assert "launch      | worker 0 ended with exit code 137; restarting in 0.1 s: worker 0" in ended.output
    addresses = {line.split()[5] for line in ended.output if ": ready, " in line}
    assert len(addresses) == 3, "the ports are those of before"


def test_all_tasks_but_the_evaluator_are_restarted_if_no_recovery_is_reported(play: Play) -> None:
    plans = {
        "chief 0": "serve,ready,step:1,stay|serve,ready,step:4",
        "worker 0": "serve,ready,step:1,exit:1|serve,ready,step:4",
        "ps 0": "serve,stay",
        "evaluator 0": "trained",
    }

    ended = play(plans, COUNTS, ready=DEADLINE)

    assert ended.code == 0, ended.problem
    assert restarts(ended) == {"chief 0": 1, "worker 0": 1, "ps 0": 1}


def test_a_coordinator_is_restarted_with_all_tasks_and_a_worker_by_itself(play: Play) -> None:
    plans = {
        "chief 0": "recovery:worker,step:1,meet:worker:0:4,killed|step:4",
        "worker 0": "recovery:worker,step:1,killed|step:4,stay|",
        "ps 0": "stay",
    }

    ended = play(plans)

    assert ended.code == 0, ended.problem
    assert restarts(ended) == {"chief 0": 1, "worker 0": 2, "ps 0": 1}


def test_a_preempted_worker_does_not_interrupt_the_chief_that_saves(play: Play) -> None:
    plans = {
        "chief 0": "save,step:1,stay|say-last,step:4",
        "worker 0": "meet:chief:0,step:1,last:3,exit:143|step:4",
    }

    ended = play(plans, {"chief": 1, "worker": 1})

    assert ended.code == 0, ended.problem
    assert restarts(ended) == {"chief 0": 1, "worker 0": 1}
    said = [line.partition("| ")[2] for line in ended.output if line.startswith("chief 0 ")]
    assert said == ["saved, with 0 parameter servers", "last step None"]


@pytest.mark.parametrize(
    ("worker", "limits", "runs", "reason"),
    [
        ("exit:3", {}, 0, NoRestart.NO_PROGRESS),
        ("killed", {}, 1, NoRestart.NO_PROGRESS_AGAIN),
        ("step:5,exit:3", {}, 1, NoRestart.NO_STEP_SINCE_FAILURE),
        ("step:5,final:a reason of its own,exit:3", {}, 0, NoRestart.FINAL),
        ("step:5,killed", {"restarts": 0}, 0, NoRestart.DISABLED),
        (
            "step:5,exit:3|step:6,exit:3",
            {"restarts": 1},
            1,
            NoRestart.LIMIT_REACHED,
        ),
    ],
)
def test_a_failure_that_would_repeat_ends_the_launch(
    play: Play, worker: str, limits: dict[str, Any], runs: int, reason: NoRestart
) -> None:
    plans = {"chief 0": "stay", "worker 0": "recovery:task," + worker.replace("|", "|recovery:task,"), "ps 0": "stay"}

    ended = play(plans, **limits)

    assert ended.code == (137 if worker.endswith("killed") else 3)
    assert restarts(ended) == ({"worker 0": runs} if runs else {})
    assert ended.no_restart is reason
    [task] = [task for task in ended.launched.tasks if task.name.job == "worker"]
    assert ended.problem.endswith(f" {reason.value.format(task=task, final='a reason of its own')}.")


def test_an_exit_code_given_after_the_training_lets_the_others_export(play: Play) -> None:
    plans = {
        "chief 0": "recovery:task,meet:worker:0:5,step:5,trained-to:5,printed:exit code 3,say:exported",
        "worker 0": "step:5,trained-to:5,final:its own reason,exit:3",
        "ps 0": "stay",
    }

    ended = play(plans)

    assert (ended.code, restarts(ended)) == (3, {})
    assert ended.states == {"chief 0": "done", "worker 0": "failed", "ps 0": "stopped"}
    assert ended.no_restart is NoRestart.FINAL
    assert "its own reason" in ended.problem


def test_an_evaluator_that_fails_at_once_is_not_restarted_while_others_train(play: Play) -> None:
    ended = play({"chief 0": "recovery:task,step:1,stay", "ps 0": "stay", "evaluator 0": "meet:chief:0:1,exit:4"}, COUNTS)

    assert ended.code == 4
    assert restarts(ended) == {}


def test_a_task_that_holds_up_the_others_is_named_and_restarted(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "_ASK_SECONDS", 5.0)  # a busy machine answers late, a stopped process not at all
    monkeypatch.setattr(stall, "_FIRST_STEP", 100)
    plans = {
        "chief 0": SERVING + "ready,meet:worker:0:1,step:1,meet:worker:0:3,step:2",
        "worker 0": "serve,ready,step:1,stopped|serve,ready,step:3",
        "ps 0": "serve,stay",
    }

    ended = play(plans, ready=DEADLINE, stall=2)

    assert ended.code == 0, ended.problem
    assert restarts(ended) == {"worker 0": 1}
    said = [line.partition("| ")[2] for line in ended.output if line.startswith("launch")]
    [stopped] = [line for line in said if "STOPPED by a signal" in line]
    assert stopped.startswith("worker 0: STOPPED by a signal (process ")
    assert re.search(r"at step 1 for \d+ s, missing: no answer within 5 s$", stopped)
    assert [line for line in said if line.startswith("chief 0: runs, at step 1 for ") and line.endswith(", answers")]


def test_a_stall_without_a_suspect_ends_the_launch_with_the_state_of_every_task(play: Play) -> None:
    plans = {"chief 0": "step:7,stay", "worker 0": "meet:chief:0,step:6,stay", "ps 0": "stay"}

    ended = play(plans, stall=1, restarts=0)

    assert ended.code == 1
    assert ended.problem.startswith("Training has stalled: no step for ")
    assert "chief 0: runs, at step 7 for " in ended.problem
    assert re.search("ps 0: runs, makes no steps, missing: no (connection|answer within 1 s)", ended.problem)


def test_an_evaluation_is_no_stall(play: Play) -> None:
    plans = {"chief 0": "step:7,trained-to:8,sleep:1.5", "worker 0": "step:7,trained-to:8", "ps 0": "stay"}
    assert play(plans, stall=0.5).code == 0


def test_tasks_that_never_report_a_step_are_described_and_left_alone(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "_FIRST_STEP", 1)
    wait = "printed:chief 0. runs"

    ended = play({"chief 0": wait, "worker 0": wait, "ps 0": "stay"}, stall=0.5)

    assert ended.code == 0
    assert any("chief 0: runs, no step since its start" in line for line in ended.output)


def test_tasks_of_another_tensorflow_do_not_train_together(play: Play) -> None:
    plans = {f"{job} 0": "version:2.21.0,serve,ready,step:1" for job in ("chief", "ps")}

    ended = play(plans | {"worker 0": "version:2.15.1,serve,ready,step:1"}, ready=DEADLINE)

    assert ended.code == 1
    assert ended.problem.startswith("The tasks run different versions of TensorFlow.")
    assert "chief 0: 2.21.0, ps 0: 2.21.0, worker 0: 2.15.1" in ended.problem
    assert {task["global_step"] for task in ended.launched.to_json()["tasks"]} == {None}
