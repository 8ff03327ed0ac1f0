"""Comparisons made up for the tests of the report."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any, Protocol

import pytest

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.result import (
    LossPoint,
    MetricPair,
    ParityFinding,
    ParityResult,
    PredictionGroup,
    Thresholds,
    VariableDiff,
)

HOSTILE = '<script>alert("x")</script></script><!-- \x1b[31m\u202e[bold red]&amp;{{ 7 * 7 }}'


class Make(Protocol):
    """An equal run without content, and what a test changes in it."""

    def __call__(self, **changes: Any) -> ParityResult:
        """The changed run."""


def losses(num_steps: int, factor: float = 1 + 1e-7) -> tuple[LossPoint, ...]:
    """A falling, noisy loss; the modern side is ``factor`` times the legacy one."""
    noise = random.Random(num_steps)
    values = [2.3 * math.exp(-4 * step / num_steps) + 0.05 + 0.01 * noise.random() for step in range(num_steps)]
    return tuple(LossPoint(step, value, value * factor) for step, value in enumerate(values, start=1))


@pytest.fixture
def make() -> Make:
    base = ParityResult(("train.py",), "replay", "equal", Thresholds())
    return lambda **changes: dataclasses.replace(base, **changes)


@pytest.fixture
def empty_run(make: Make) -> ParityResult:
    return make()


@pytest.fixture
def equal_run(make: Make) -> ParityResult:
    """A run whose sides differ in the last bits."""
    return make(
        losses=losses(200),
        metrics=(MetricPair("", 200, "accuracy", 0.975, 0.975), MetricPair("", 200, "loss", 0.05, 0.05 + 1e-9)),
        variables=(VariableDiff("dense/kernel", (64, 10), 1e-6), VariableDiff("dense/bias", (10,), 0.0)),
        predictions=(PredictionGroup("predict-0", "classes", True, 0.0), PredictionGroup("predict-0", "logits", True, 1e-7)),
        notes=("Dropout was made equal.",),
        environment={"tensorflow": "2.21.0"},
        seconds={"legacy": 38.2, "modern": 31.7},
    )


@pytest.fixture
def identical_run(make: Make) -> ParityResult:
    """A run whose sides have the same values."""
    return make(
        losses=losses(20, 1.0),
        metrics=(MetricPair("", 20, "accuracy", 0.975, 0.975), MetricPair("", 20, "loss", math.nan, math.nan)),
        variables=(VariableDiff("dense/kernel", (64, 10), 0.0),),
        predictions=(PredictionGroup("predict-0", "classes", True, 0.0), PredictionGroup("predict-0", "logits", True, 0.0)),
    )


@pytest.fixture
def different_run(make: Make) -> ParityResult:
    """A run whose sides differ from step 2 on."""
    return make(
        verdict="different",
        losses=(LossPoint(1, 2.0, 2.0), *losses(50, 1.02)[1:]),
        metrics=(MetricPair("", 50, "accuracy", 0.975, 0.875),),
        variables=(VariableDiff("dense/kernel", (64, 10), 1e-2), VariableDiff("dense/bias", (10,), 1e-6)),
        findings=(
            ParityFinding("first update", "dense/kernel moved 1.1 times as far.", 2),
            ParityFinding("metric", "accuracy: 0.975 and 0.875.", 50),
        ),
    )


@pytest.fixture
def broken_run(make: Make) -> ParityResult:
    """Losses that stop being numbers: first on one side, then on both."""
    points = [
        point
        if point.step < 20
        else LossPoint(point.step, point.legacy, math.nan)
        if point.step < 30
        else LossPoint(point.step, math.inf, -math.inf)
        if point.step < 35
        else LossPoint(point.step, math.nan, math.nan)
        for point in losses(40)
    ]
    return make(
        verdict="different",
        losses=tuple(points),
        metrics=(MetricPair("", 40, "loss", math.nan, math.inf),),
        variables=(VariableDiff("kernel", (1,), math.nan), VariableDiff("bias", (1,), math.inf)),
        findings=(ParityFinding("loss", "legacy 0.1, modern NaN.", 20),),
    )


@pytest.fixture
def long_run(make: Make) -> ParityResult:
    """20,000 steps with one spike, 2,000 variables with long names."""
    points = list(losses(20_000))
    points[10_864] = dataclasses.replace(points[10_864], modern=7.0)
    names = [f"layer_{index}/" + "a_rather_long_scope/" * (index % 12) + "kernel" for index in range(2000)]
    return make(
        verdict="different",
        losses=tuple(points),
        variables=tuple(VariableDiff(name, (128, 64), 1e-9 * (index + 1)) for index, name in enumerate(names)),
        findings=(ParityFinding("loss", "legacy 0.3, modern 7.0.", 10_865),),
    )


@pytest.fixture
def hostile_run(make: Make) -> ParityResult:
    """Markup, escape sequences, template syntax and lone surrogates wherever a string can stand."""
    return make(
        command=(HOSTILE, "\udc80"),
        verdict="different",
        losses=losses(3),
        metrics=(MetricPair(HOSTILE, 3, HOSTILE, 1.0, 2.0),),
        variables=(VariableDiff(HOSTILE, (1,), 0.5, HOSTILE), VariableDiff("scope/" * 2000, (), None)),
        predictions=(PredictionGroup(HOSTILE, HOSTILE, False, math.inf), PredictionGroup("p" * 9000, "", True)),
        findings=(ParityFinding("calls", HOSTILE), ParityFinding("loss", HOSTILE, 1)),
        notes=(HOSTILE,),
        environment={HOSTILE: HOSTILE},
        seconds={HOSTILE: 1.0},
    )


@pytest.fixture
def rewritten_run(different_run: ParityResult) -> ParityResult:
    """A rewrite whose loss is a sum."""
    cause = Cause(CauseName.LOSS_SCALE, "Losses: old 1, new 64.", "Reduce the loss by tf.reduce_mean.", 1, ("dense/kernel",))
    return dataclasses.replace(different_run, new_side="new", cause=cause)
