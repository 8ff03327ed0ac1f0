"""Names and variables of the slots that each optimizer keeps beside an embedding table."""

from __future__ import annotations

from collections import namedtuple

# The order in which each optimizer's slots are passed.
_SLOTS = {
    "Adagrad": ("accumulator",),
    "AdagradMomentum": ("accumulator", "momenta"),
    "Adam": ("m", "v"),
    "FrequencyEstimator": ("last_hit_step",),
    "Ftrl": ("accumulator", "linear"),
    "Momentum": ("momenta",),
    "ProximalAdagrad": ("accumulator",),
    "ProximalYogi": ("v", "m"),
    "RMSProp": ("ms", "mom"),
}


def _make_tuple(name: str, fields: tuple[str, ...]) -> type:
    return namedtuple(name, fields, module=__name__)


# TensorFlow's name is FtrlSlotVariable, in the singular.
SLOTS: dict[str, type] = {
    name: _make_tuple(name, fields)
    for optimizer, fields in _SLOTS.items()
    for name in (f"{optimizer}SlotVariableNames", f"{optimizer}SlotVariable{'' if optimizer == 'Ftrl' else 's'}")
}
globals().update(SLOTS)
