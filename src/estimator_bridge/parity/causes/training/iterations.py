"""Steps and updates that are counted: one too many an epoch, or trainings of another length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.causes.measures import OPTIMIZER, Parting, at
from estimator_bridge.parity.causes.optimizers.updates import rates_of
from estimator_bridge.parity.evidence import Evidence

_COUNTING = ("Adam", "Nadam", "Adamax", "AdamW")


@at(OPTIMIZER)
def iterations(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if the new optimizer counts more updates than steps, and its updates depend on that number."""
    counted = enumerate(evidence.new.iterations[: place.index], evidence.start + 1)
    wrong = next(((step, count) for step, count in counted if step != count), None)
    if wrong and _depends_on_count(evidence):
        seen = f"The new optimizer counts {wrong[1]} updates after step {wrong[0]}; bias correction and schedule move with it."
        change = (
            "Keras adds one at the end of each epoch if the dataset's size is unknown: give fit steps_per_epoch=, "
            "use dataset.apply(tf.data.experimental.assert_cardinality(n)), or an optimizer of tf_keras.optimizers.legacy."
        )
        yield Cause(CauseName.ITERATIONS, seen, change, wrong[0])


BY_ROWS = "Divide the new script's loss by the number of rows of each batch, e.g., by tf.reduce_mean, and not by a constant batch size."


def number_of_steps(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the trainings have other lengths."""
    old, new = len(evidence.old.losses), len(evidence.new.losses)
    if old != new and evidence.new.losses:
        epochs = ", ".join(map(str, evidence.new.steps_per_epoch[:5]))
        seen = f"The old script trains {old} steps, the new one {new}{f' (epochs of {epochs})' if epochs else ''}."
        change = "Compare steps, max_steps, epochs, repeat(), drop_remainder and steps_per_epoch."
        yield Cause(CauseName.STEPS, seen, change, evidence.start + min(old, new) + 1)


@at(OPTIMIZER)
def smaller_batch(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if losses differ first at a batch with fewer rows, by the ratio of the rows."""
    if not len(evidence.old.steps) < place.index <= len(evidence.batches):
        return
    whole, rows = (evidence.batches[index].rows[1] for index in (0, place.index - 1))
    old, new = evidence.old.losses[place.index - 1], evidence.new.losses[place.index - 1]
    if rows != whole and old and np.isclose(new / old, rows / whole, 0.02):  # a penalty is not divided
        seen = f"The batch of this step has {rows} rows, those before {whole}. Losses: old {old:.8g}, new {new:.8g}, which is x{rows}/{whole}."
        yield place.cause(CauseName.LOSS_SCALE, seen, BY_ROWS)


@at(OPTIMIZER)
def later_steps(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if losses differ only after the first steps, and no other rule says why."""
    if place.index > len(evidence.old.steps):
        pair = evidence.old.losses[place.index - 1], evidence.new.losses[place.index - 1]
        seen = f"The first {len(evidence.old.steps)} steps are equal. Losses then: old {pair[0]:.8g}, new {pair[1]:.8g}."
        change = (
            "Compare what depends on the step or the batch: warm-up, a last batch with fewer rows, an annealed weight; "
            "or rounding: --anchor 1 gives the old values back at each step."
        )
        yield place.cause(CauseName.LATER, seen, change)


def _depends_on_count(evidence: Evidence) -> bool:
    optimizers = [one for step in evidence.new.steps[:1] for one in step.optimizers]
    varies = any(np.ptp(new) > 1e-6 * np.max(new) for _, new, _ in rates_of(evidence))
    return varies or any(one.name in _COUNTING for one in optimizers)
