"""The verdict on a cluster, by traces written by hand."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.parity.clusters.judging import judge_tasks
from estimator_bridge.parity.clusters.plan import ClusterPlan
from estimator_bridge.parity.judge import judge
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityResult, Thresholds

PLAN = ClusterPlan({"chief": 1, "worker": 1, "ps": 1, "evaluator": 1})
STEPS = ((0.9, 11), (0.5, 12))  # loss and digest of the batch


class Sides:
    """Two sides that agree unless a test writes something else."""

    def __init__(self, folder: Path) -> None:
        self._traces = {
            side: {task.file_stem: Trace(folder / side / task.file_stem) for task in PLAN.tasks}
            for side in ("legacy", "modern")
        }
        for trace in (trace for traces in self._traces.values() for trace in traces.values()):
            trace.make()

    def train(self, side: str, task: str, steps: Any = STEPS, noise: tuple[str, ...] = ()) -> None:
        trace = self._traces[side][task]
        trace.write("train", call="train-0", max_steps=len(STEPS))
        trace.write("random", call="train-0", unseeded=True, in_step=list(noise), functions=[])
        for step, (loss, batch) in enumerate(steps, 1):
            trace.write("step", call="train-0", step=step, loss=loss, batch=batch)
        trace.write("trained", call="train-0", model_dir="model", checkpoint=None)

    def evaluate(self, side: str, *metrics: dict[str, float]) -> None:
        for given in metrics:
            name = f"evaluate-model.ckpt-{given['global_step']:.0f}"
            self._traces[side]["evaluator-0"].write("evaluated", call=name, name="", metrics=given)

    def judge(self) -> ParityResult:
        one = functools.partial(judge, command=("train.py",), replaying=True, replicas=1, thresholds=Thresholds())
        return judge_tasks(PLAN, one, *(list(traces.values()) for traces in self._traces.values()))


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


def evaluated(loss: float, step: int) -> dict[str, float]:
    return {"loss": loss, "global_step": step}


def test_evaluations_that_only_one_evaluator_was_fast_enough_to_make_are_no_difference(sides: Sides) -> None:
    for side in ("legacy", "modern"):
        for task in ("chief-0", "worker-0"):
            sides.train(side, task)
    sides.evaluate("legacy", evaluated(2.0, 0), evaluated(0.4, 2))
    sides.evaluate("modern", evaluated(0.7, 1), evaluated(0.4, 2))

    result = sides.judge()

    assert (result.verdict, result.findings) == ("equal", ())
    assert [(pair.step, pair.legacy, pair.modern) for pair in result.metrics] == [(2, 0.4, 0.4)]
    assert "worker 0: equal, 2 steps." in result.notes


def test_a_worker_that_differs_is_named(sides: Sides) -> None:
    for task in ("chief-0", "worker-0"):
        sides.train("legacy", task)
    sides.train("modern", "chief-0")
    sides.train("modern", "worker-0", ((0.9, 11), (0.6, 13)))

    result = sides.judge()

    assert (result.verdict, result.exit_code) == ("different", 1)
    assert [finding.level for finding in result.findings] == ["batch", "loss"]
    assert all(finding.message.startswith("worker 0: ") for finding in result.findings)


def test_on_parameter_servers_the_chief_has_the_steps_and_nobody_looks_at_batches(sides: Sides) -> None:
    for task in ("chief-0", "worker-0"):
        sides.train("legacy", task)
    sides.train("modern", "chief-0", tuple((loss, None) for loss, _ in STEPS))
    sides.train("modern", "worker-0", ())

    result = sides.judge()

    assert (result.verdict, result.findings) == ("equal", ())
    assert "worker 0: the gradients of its own recorded batches are in the chief's steps." in result.notes


@pytest.mark.parametrize(("noise", "verdict"), [((), "different"), (("dropout/random_uniform",), "not comparable")])
def test_an_evaluation_decides_only_after_equal_trainings(noise: tuple[str, ...], verdict: str, sides: Sides) -> None:
    for side, steps in (("legacy", STEPS), ("modern", ((0.9, 11), (0.7, 12)) if noise else STEPS)):
        for task in ("chief-0", "worker-0"):
            sides.train(side, task, steps, noise)
    sides.evaluate("legacy", evaluated(0.4, 2))
    sides.evaluate("modern", evaluated(0.5, 2))

    result = sides.judge()

    assert result.verdict == verdict
    assert any(finding.level == "metric" for finding in result.findings)


def test_evaluators_that_end_at_other_steps_differ(sides: Sides) -> None:
    for side in ("legacy", "modern"):
        for task in ("chief-0", "worker-0"):
            sides.train(side, task)
    sides.evaluate("legacy", evaluated(2.0, 0), evaluated(0.4, 2))
    sides.evaluate("modern", evaluated(2.0, 0))

    result = sides.judge()

    assert result.verdict == "different"
    assert result.findings[-1].message == "The last evaluation is that of step 2 on the legacy side, of 0 on the modern."
