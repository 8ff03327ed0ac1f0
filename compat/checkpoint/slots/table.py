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
        epsilon: TF1's default and Keras', where Keras' must be set to TF1's.
        sparse: what tf_keras' newer optimizers and Keras 3 do otherwise with sparse gradients; "" for nothing.
        sparse_keras3: what Keras 3 alone does otherwise.
        sparse_legacy: the same of ``tf_keras.optimizers.legacy`` where it has no momentum slot.
        note: what else to know.
    """

    name: str
    keras_class: str
    rows: tuple[SlotRow, ...]
    betas: Mapping[str, str] = dataclasses.field(default_factory=dict)
    epsilon: tuple[float | None, float] | None = None
    sparse: str = ""
    sparse_keras3: str = ""
    sparse_legacy: str = ""
    note: str = ""


DUPLICATES = "the gradients of a row that occurs twice are not added up"
BETAS = {"beta1_power": "beta_1", "beta2_power": "beta_2"}
NO_COUNTERPART = {
    "AdagradDA": "Keras has no AdagradDA",
    "ProximalAdagrad": "Keras has no proximal Adagrad",
    "LARS": "Keras has no LARS",
    "MomentumW": "Keras' SGD with weight_decay decays before the step, MomentumW after it",
    "ExponentialMovingAverage": "it is no optimizer: give the averages as the model's values, or use_ema",
}
