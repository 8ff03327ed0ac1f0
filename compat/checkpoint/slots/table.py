"""The type of a slot table, and values that several tables share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

BETAS = {"beta1_power": "beta_1", "beta2_power": "beta_2"}
DUPLICATES = {"keras3": "the gradients of a row that occurs twice are not added up"}
ITERATIONS = 10_000_000  # beta ** iterations is 0 in float32, so that Keras' bias correction factors are 1
KERAS_EPSILON = 1e-7  # every Keras optimizer's default
NO_COUNTERPART = {name: f"Keras has no {name}" for name in ("AdagradDA", "AddSign", "LARS", "PowerSign", "Shampoo")} | {
    "ProximalAdagrad": "Keras has no proximal Adagrad",
    "RegAdagrad": "Keras has no Adagrad that leaves regularization out of its accumulator",
    "MomentumW": "Keras' SGD with weight_decay decays before the step, MomentumW after it",
    "ExponentialMovingAverage": "it is not an optimizer: give the averages as the model's values, or use_ema",
}


@dataclasses.dataclass(frozen=True)
class SlotRow:
    """A slot of an optimizer.

    Attributes:
        suffix: Suffix of the variable's name in a TF1 checkpoint.
        legacy: Name in ``tf_keras.optimizers.legacy``.
        keras: List that holds it in tf_keras' newer optimizers and in Keras 3.
        scale: Factor from TF1's value to Keras'.
        absent_when: Condition under which Keras has no such slot; zeros are written on the way back.
    """

    suffix: str
    legacy: str
    keras: str
    scale: Literal["none", "minus learning_rate"] = "none"
    absent_when: str = ""


SHADOW = "ExponentialMovingAverage"
# Moving averages: a TF1 graph keeps VARIABLE/ExponentialMovingAverage, a Keras optimizer with use_ema a list. The legacy family has none.
AVERAGE = SlotRow(SHADOW, "", "model_variables_moving_average")


@dataclasses.dataclass(frozen=True)
class OptimizerTable:
    """A TF1 optimizer's slots.

    Attributes:
        name: Name that ``naming`` gives it.
        keras_class: Class of the counterpart.
        rows: Slots.
        betas: Beta power variable -> Keras hyperparameter, if it keeps beta powers.
        uncorrected: True if it uses its moments without bias correction, unless there are beta powers beside them.
        epsilon: TF1's default, if Keras' must be set to it.
        absent: Family of Keras optimizers -> reason why it lacks the class.
        sparse: Family of Keras optimizers -> difference with sparse gradients.
        sparse_but_momentum: True if the family "legacy" does not differ if it has a momentum slot.
        note: Further advice.
    """

    name: str
    keras_class: str
    rows: tuple[SlotRow, ...]
    betas: Mapping[str, str] = dataclasses.field(default_factory=dict)
    uncorrected: bool = False
    epsilon: float | None = None
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sparse: Mapping[str, str] = dataclasses.field(default_factory=DUPLICATES.copy)
    sparse_but_momentum: bool = False
    note: str = ""


def newer(difference: str) -> Mapping[str, str]:
    """Returns a difference of both families but "legacy"."""
    return {"tf_keras": difference, "keras3": difference}


def every(difference: str) -> Mapping[str, str]:
    """Returns a difference of all families."""
    return {"legacy": difference, **newer(difference)}
