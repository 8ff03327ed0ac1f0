"""Evaluations behind the last step: a loop that waits for further steps is ended, and other calls are not taken for one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from estimator_bridge.parity.recording.step_limit import StepLimit


def one() -> None: ...


def of(value: object) -> Callable[[], object]:
    return lambda: value


class Inputs:
    def read(self) -> None: ...


def reached() -> StepLimit:
    limit = StepLimit(1)
    limit.take()
    return limit


def test_the_third_equal_evaluation_is_repeated() -> None:
    """Checkpoints are named anew each time, and lambdas of one line are new functions."""
    limit, inputs = reached(), Inputs()
    made: list[Callable[[], Callable[[], Any]]] = [lambda: one, lambda: of(one), lambda: inputs.read]
    for function in made:
        path = [limit.is_repeated(function(), {"loss": 0.5}, inputs, 5, "".join(["model.ckpt", "-1"]), None) for _ in range(3)]
        assert path == [False, False, True]


def test_other_evaluations_are_not() -> None:
    limit = reached()
    functions: list[Callable[[], object]] = [
        *(of([number]) for number in range(5)),
        *(functools.partial(one) for _ in range(5)),
    ]
    assert not any(limit.is_repeated(function, {}, None) for function in functions)
    assert not any(limit.is_repeated(Inputs().read, {}, None) for _ in range(5))
    assert not any(limit.is_repeated(one, {}, steps) for steps in range(5))
    assert not any(limit.is_repeated(one, {"loss": 0.1 * number}) for number in range(5)), "what it reads may have changed"


def test_a_variable_without_a_value_is_no_obstacle() -> None:
    def function() -> object:
        return unset

    assert not reached().is_repeated(function, {})
    unset = None


def test_before_the_limit_everything_may_be_repeated() -> None:
    limit = StepLimit(1)
    assert not any(limit.is_repeated(one, {}) for _ in range(9))
