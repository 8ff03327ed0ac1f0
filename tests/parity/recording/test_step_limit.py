"""Evaluations behind the last step: a loop that waits for further steps is ended, and other calls are not taken for one."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimator_bridge import legacy
from estimator_bridge.parity.recording.step_limit import StepLimit

legacy.install()

import tensorflow as tf  # noqa: E402 -- install() gives it Estimator

SCALE = 1.0


def one() -> None: ...


class Settings:
    def __getattr__(self, name: str) -> Any:
        settings: dict[str, Any] = {}
        return settings[name]


SETTINGS: Any = None


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
    data = np.arange(8.0)
    made: list[Callable[[], Callable[..., Any]]] = [
        lambda: one,
        lambda: of(one),
        lambda: inputs.read,
        lambda: functools.partial(of, {"x": data[:4], "y": [1, "a"]}),
        lambda: of(of({"x": data[:4].copy()})),
        lambda: of(list(range(20000))),
        lambda: tf.compat.v1.estimator.inputs.numpy_input_fn({"x": data[:4]}, data[4:], shuffle=False),
        lambda: tf.compat.v1.estimator.inputs.pandas_input_fn(
            pd.DataFrame({"x": data, "y": list("abcdefgh")})[["y"]], shuffle=False
        ),
    ]
    for function in made:
        path = [limit.is_repeated(function(), {"loss": 0.5}, inputs, 5, "".join(["model.ckpt", "-1"]), None) for _ in range(3)]
        assert path == [False, False, True]


def keyword_only(number: int) -> Callable[[], object]:
    def function(*, kept: int = number) -> object:
        return kept

    return function


def test_other_evaluations_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = reached()
    functions: list[Callable[[], object]] = [
        *(of([number]) for number in range(5)),
        *(functools.partial(of, value=np.arange(number)) for number in range(5)),
        *(of(object()) for _ in range(5)),
        *(keyword_only(number) for number in range(5)),
        *(of(kind(1)) for kind in (int, float, bool)),
    ]
    assert not any(limit.is_repeated(function, {}, None) for function in functions)
    assert not any(limit.is_repeated(Inputs().read, {}, None) for _ in range(5))
    monkeypatch.setattr(sys.modules[__name__], "SETTINGS", Settings())
    assert not limit.is_repeated(lambda: SETTINGS.data, {}), "an object whose attributes are keys is no obstacle"
    for number in range(5):
        monkeypatch.setattr(sys.modules[__name__], "SCALE", float(number))
        assert not limit.is_repeated(lambda: sum(x * SCALE for x in [1.0]), {}), "a function inside of it reads this"
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
