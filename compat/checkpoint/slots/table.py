"""What a slot table says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

Scale = Literal["none", "minus learning_rate"]


@dataclasses.dataclass(frozen=True)
class SlotRow:
    """One slot.

    Attributes:
        suffix: what follows the variable's name in a TF1 checkpoint.
        legacy: its name in ``tf_keras.optimizers.legacy``.
        keras: the list that holds it in tf_keras' newer optimizers and in Keras 3.
        scale: what Keras' value is, times TF1's.
        absent_when: when Keras has no such slot; zeros are written on the way back.
    """

    suffix: str
    legacy: str
    keras: str
    scale: Scale = "none"
    absent_when: str = ""


@dataclasses.dataclass(frozen=True)
class OptimizerTable:
    """A TF1 optimizer's slots.

    Attributes:
        name: as ``naming`` recognises it.
        keras_class: of the counterpart.
        rows: its slots.
        betas: beta power variable -> Keras hyperparameter, where it keeps them.
        uncorrected: its moments are used without bias correction, unless beta powers are kept beside them.
        epsilon: TF1's default and Keras', where Keras' must be set to TF1's.
        absent: family of Keras' optimizers -> why the class is not among them.
        sparse: family -> what it does otherwise with sparse gradients.
        sparse_but_momentum: the family "legacy" does as TF1 where it has a momentum slot.
        note: what else to know.
    """

    name: str
    keras_class: str
    rows: tuple[SlotRow, ...]
    betas: Mapping[str, str] = dataclasses.field(default_factory=dict)
    uncorrected: bool = False
    epsilon: tuple[float | None, float] | None = None
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sparse: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sparse_but_momentum: bool = False
    note: str = ""


def newer(difference: str) -> Mapping[str, str]:
    """What both families but "legacy" do."""
    return {"tf_keras": difference, "keras3": difference}


def every(difference: str) -> Mapping[str, str]:
    """What all families do."""
    return {"legacy": difference, **newer(difference)}


DUPLICATES = {"keras3": "the gradients of a row that occurs twice are not added up"}
BETAS = {"beta1_power": "beta_1", "beta2_power": "beta_2"}
ITERATIONS = 10_000_000  # beta ** iterations is 0 in float32, so that Keras' bias correction factors are 1
NO_COUNTERPART = {
    "AdagradDA": "Keras has no AdagradDA",
    "ProximalAdagrad": "Keras has no proximal Adagrad",
    "RegAdagrad": "Keras has no Adagrad that leaves regularization out of its accumulator",
    "AddSign": "Keras has no AddSign",
    "PowerSign": "Keras has no PowerSign",
    "Shampoo": "Keras has no Shampoo",
    "LARS": "Keras has no LARS",
    "MomentumW": "Keras' SGD with weight_decay decays before the step, MomentumW after it",
    "ExponentialMovingAverage": "it is no optimizer: give the averages as the model's values, or use_ema",
}
