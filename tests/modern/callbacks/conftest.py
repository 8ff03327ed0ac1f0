"""Fixtures of the tests of callbacks."""

from __future__ import annotations

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
