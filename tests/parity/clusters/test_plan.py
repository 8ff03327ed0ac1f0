"""The tasks of a compared cluster, and their seeds."""

from __future__ import annotations

from estimator_bridge.parity.clusters.plan import ClusterPlan


def test_the_chief_comes_first_and_only_trainers_train() -> None:
    plan = ClusterPlan({"chief": 1, "worker": 2, "ps": 1, "evaluator": 1})
    assert [task.file_stem for task in plan.tasks] == ["chief-0", "worker-0", "worker-1", "evaluator-0", "ps-0"]
    assert [task.file_stem for task in plan.trainers] == ["chief-0", "worker-0", "worker-1"]
    assert str(plan) == "1 chief, 2 worker, 1 ps, 1 evaluator"


def test_each_trainer_on_parameter_servers_draws_its_own_batches() -> None:
    plan = ClusterPlan({"chief": 1, "worker": 2, "ps": 1})
    assert [plan.seed_of(task, 7) for task in plan.trainers] == [7, 1007, 2007]


def test_workers_that_divide_one_input_shuffle_it_alike() -> None:
    plan = ClusterPlan({"chief": 1, "worker": 2})
    assert [plan.seed_of(task, 7) for task in plan.trainers] == [7, 7, 7]
