"""The number of workers of a training: which numbers it may have, and when it changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.monitors.resizing import ElasticSize, Resizing, elastic_size
from estimator_bridge.launcher.processes.task import State

NONE = {"chief": 1, "worker": 0, "ps": 0, "evaluator": 0}


def test_a_launch_begins_with_the_given_or_the_largest_number() -> None:
    size, number = elastic_size(NONE | {"evaluator": 1}, given=False, allowed=[1, 2, 4])
    assert number == 4
    assert size.counts(2) == {"chief": 1, "worker": 1, "evaluator": 1}
    assert elastic_size(NONE | {"worker": 1}, given=True, allowed=[1, 2, 4])[1] == 2


@pytest.mark.parametrize(
    ("counts", "received"),
    [
        (NONE | {"worker": 2}, "1 chief, 2 worker"),
        (NONE | {"ps": 1}, "1 chief, 1 ps"),
        (NONE | {"chief": 0, "worker": 2}, "2 worker"),
    ],
)
def test_other_tasks_are_refused(counts: dict[str, int], received: str) -> None:
    with pytest.raises(BridgeError, match=received):
        elastic_size(counts, given=True, allowed=[1, 2, 4])


class Cluster:
    """A cluster of a chief and three workers that train."""

    def __init__(self, trained: str = "") -> None:
        self.rendezvous: Any = SimpleNamespace(has_trained=lambda task: str(task) == trained)
        names = [TaskId("chief", 0), *(TaskId("worker", index) for index in range(3))]
        self.trainers: Any = [SimpleNamespace(name=name, state=State.TRAINING, exit_code=None, ended_at=0.0) for name in names]
        self.said: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)


@pytest.mark.parametrize(
    ("code", "state", "number"),
    [
        (143, State.FAILED, 2),
        (137, State.FAILED, 2),
        (1, State.FAILED, None),
        (143, State.STOPPED, None),
        (0, State.DONE, None),
    ],
)
def test_fewer_workers_go_on_when_one_was_ended_by_a_signal(code: int, state: State, number: int | None) -> None:
    """A script that fails by itself would fail again; one that the launcher ended is not lost."""
    cluster: Any = Cluster()
    resizing = Resizing(cluster, ElasticSize({}, [1, 2, 4]), [])
    assert resizing.judge() is None
    cluster.trainers[2].state, cluster.trainers[2].exit_code = state, code
    outcome = resizing.judge()
    assert (outcome.workers if outcome else None) == number
    assert len(cluster.said) == (number is not None)


def test_no_smaller_number_leaves_the_loss_to_the_restarts() -> None:
    cluster: Any = Cluster()
    cluster.trainers[0].state, cluster.trainers[0].exit_code = State.FAILED, 137
    assert Resizing(cluster, ElasticSize({}, [4, 8]), []).judge() is None


def test_a_worker_that_is_killed_after_the_training_is_not_lost() -> None:
    """The chief still exports."""
    cluster: Any = Cluster(trained="worker 1")
    cluster.trainers[2].state, cluster.trainers[2].exit_code = State.FAILED, 139
    assert Resizing(cluster, ElasticSize({}, [1, 2, 4]), []).judge() is None


def test_a_worker_that_was_asked_to_end_is_lost_although_it_says_that_its_training_is_over() -> None:
    cluster: Any = Cluster(trained="worker 1")
    cluster.trainers[2].state, cluster.trainers[2].exit_code = State.FAILED, 143
    assert Resizing(cluster, ElasticSize({}, [1, 2, 4]), []).judge()


def test_the_worker_that_ended_first_is_named() -> None:
    """The others ended with it."""
    cluster: Any = Cluster()
    for number, task in enumerate(cluster.trainers):
        task.state, task.exit_code, task.ended_at = State.FAILED, 143, float((number + 2) % 4)
    assert Resizing(cluster, ElasticSize({}, [1, 2, 4]), []).judge()
    assert cluster.said[0].startswith("worker 1 was lost")


def test_more_workers_begin_when_the_user_asks() -> None:
    cluster: Any = Cluster()
    outcome = Resizing(cluster, ElasticSize({}, [2, 4, 8]), asked := [10]).judge()
    assert not asked
    assert outcome
    assert outcome.workers == 8
    assert Resizing(cluster, ElasticSize({}, [2, 4]), [10]).judge() is None
    assert cluster.said[-1] == "4 workers are the most that the plan allows"
