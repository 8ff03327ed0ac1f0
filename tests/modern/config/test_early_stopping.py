"""Early stopping: the step at which real hooks of tf.estimator stop, and the one at which the callbacks do."""

from __future__ import annotations

import random
from typing import Any

from tests.forked_programs import Run, observes
from tests.modern.config.programs.early_stopping import Case, steps_of_callbacks, steps_of_hooks

EVERY, STEPS = 5, 40  # evaluations every so many steps, of a training of so many

NAMES = {
    "early_stopping.stop_if_no_increase_hook": "max_steps_without_increase",
    "early_stopping.stop_if_no_decrease_hook": "max_steps_without_decrease",
    "early_stopping.stop_if_higher_hook": "threshold",
    "early_stopping.stop_if_lower_hook": "threshold",
}


def cases() -> list[Case]:
    """Metrics that rise, fall and stay, with and without min_steps, after a run of before or none."""
    choose = random.Random(7)
    made: list[Case] = []
    for row, argument in NAMES.items():
        for index in range(4):
            limit: float = choose.choice([3.0, 7.0]) if argument == "threshold" else choose.choice([5, 7, 10, 15, 20])
            arguments: dict[str, Any] = {argument: limit, "min_steps": choose.choice([0, 5, 12, 30])}
            before = [(1, 5.0), (3, 4.0)] if index % 3 == 2 else []
            values = [float(choose.randint(2, 8)) for _ in range(STEPS // EVERY)]
            made.append((row.partition(".")[2], arguments, before, values))
    return made


@observes(*NAMES)
def test_callbacks_stop_at_the_step_at_which_the_hooks_do(run: Run) -> None:
    real = run(steps_of_hooks, EVERY, STEPS, cases())
    assert run(steps_of_callbacks, EVERY, STEPS, cases()) == real
    assert len(set(real)) > 3
    assert STEPS in real
