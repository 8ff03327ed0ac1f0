"""Fixtures of the tests of callbacks."""

from __future__ import annotations

import sys
from typing import Any

import pytest


@pytest.fixture
def loop_calls(monkeypatch: Any) -> list[int]:
    """Collects the number of steps of each call of the loop."""
    from estimator_bridge.modern.training.step_loop import StepLoop  # after the tests have settled on a Keras

    made: list[int] = []
    run = StepLoop.run

    def recording(self: Any, steps: int, *limits: int) -> Any:
        made.append(steps)
        return run(self, steps, *limits)

    monkeypatch.setattr(StepLoop, "run", recording)
    return made


@pytest.fixture
def reference_variables(monkeypatch: Any) -> None:
    """Makes the legacy path's variables reference variables, as the runner does, for which TF2's control flow cannot be used."""
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    toggle = sys.modules[tf.compat.v1.resource_variables_enabled.__module__]
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False)
    monkeypatch.setattr(toggle, "_DEFAULT_USE_RESOURCE", False)
