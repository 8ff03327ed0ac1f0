"""Stalls of a training, by the clock."""

from __future__ import annotations

import math
import time
import types
from pathlib import Path

import pytest

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.layout import local_layout
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.monitors.restarts import Restarter
from estimator_bridge.launcher.monitors.stall import Stall
from tests.launcher.conftest import local_cluster


@pytest.mark.parametrize(
    ("again", "patience"),
    [
        ("worker", 1000.0),  # it builds its graph, and the others, which reported that they train, may wait for it
        ("ps", 1000.0),
        ("evaluator", 100.0),  # no step waits for it
    ],
)
def test_the_first_step_after_a_start_may_take_longer(
    again: str, patience: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    layout, rendezvous = local_layout({"chief": 1, "worker": 1, "ps": 1, "evaluator": 1}), Rendezvous(tmp_path)
    cluster = local_cluster(layout, rendezvous, stall=100)
    tasks = {task.name.job: task for task in cluster.tasks}
    stall = Stall(cluster, Restarter(cluster, Preflight(cluster)))
    now = 50.0
    tasks["chief"].record_step(7)
    rendezvous.report_step(TaskId("chief", 0), 7)
    tasks[again].started_at = since = 60.0
    if again == "evaluator":
        since = 50.0

    now = since + patience
    assert stall.find_stall() is None
    now += 1
    assert stall.find_stall() == patience + 1

    tasks["chief"].record_step(8)
    now += 100
    assert stall.find_stall() is None
    now += 1
    assert stall.find_stall() == 101


@pytest.mark.parametrize("steps_after_the_loss", [True, False])
def test_a_training_that_makes_no_step_since_a_machine_was_lost_waits_for_it(
    steps_after_the_loss: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    layout, rendezvous = local_layout({"chief": 1}), Rendezvous(tmp_path)
    cluster = local_cluster(layout, rendezvous, stall=120)
    lost = types.SimpleNamespace(shortest_silence=math.inf)
    stall = Stall(cluster, Restarter(cluster, Preflight(cluster)), lost)  # type: ignore[arg-type]
    now = stepped = 140.0 if steps_after_the_loss else 105.0  # the last heartbeat came at 100
    cluster.tasks[0].record_step(7)
    rendezvous.report_step(TaskId("chief", 0), 7)
    now = 142.0
    assert stall.find_stall() is None  # nobody is lost yet

    stalls: list[float] = []
    while now < stepped + 130 and not stalls:
        now += 1
        lost.shortest_silence = now - 100
        stalls += [now - stepped] if stall.find_stall() else []
    assert stalls == ([121.0] if steps_after_the_loss else [38.0])


def test_a_task_that_waits_for_an_evaluation_has_not_stalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    layout, rendezvous = local_layout({"chief": 1, "worker": 1}), Rendezvous(tmp_path)
    cluster = local_cluster(layout, rendezvous, stall=100)
    stall = Stall(cluster, Restarter(cluster, Preflight(cluster)))
    for task in cluster.tasks:
        task.record_step(7)
        rendezvous.report_step(task.name, 7)
    with rendezvous.pause_steps(TaskId("chief", 0)):
        while now < 500:
            now += 1
            assert stall.find_stall() is None
    now = 599.0
    assert stall.find_stall() is None
    now = 601.0
    assert stall.find_stall() == 102  # since the evaluation was last noticed


@pytest.mark.parametrize("does", ["evaluates", "ends its script"])
def test_what_has_no_steps_is_a_stall_where_nothing_may_idle(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    layout, rendezvous = local_layout({"chief": 1, "worker": 1}), Rendezvous(tmp_path)
    cluster = local_cluster(layout, rendezvous, stall=100, may_idle=False)
    stall = Stall(cluster, Restarter(cluster, Preflight(cluster)))
    for task in cluster.tasks:
        task.record_step(7)
        rendezvous.report_step(task.name, 7, training=does == "evaluates")
    with rendezvous.pause_steps(TaskId("chief", 0)):
        now = 1001.0
        assert stall.find_stall() is None
        now = 1002.0
        assert stall.find_stall() == 1001
