"""Optimizers of embedding tables: AdagradParameters, AdamParameters and eight more, and the names and variables of their slots.

They are descriptions. Every optimizer has the parameters that all have in common (``_COMMON``) and its own, in the order of positional arguments.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

_REQUIRED = object()
_COMMON: dict[str, Any] = {
    "use_gradient_accumulation": True,
    "clip_weight_min": None,
    "clip_weight_max": None,
    "weight_decay_factor": None,
    "multiply_weight_decay_factor_by_learning_rate": None,
}
_CLIPPING: dict[str, Any] = {"clip_gradient_min": None, "clip_gradient_max": None}
_LAST = _COMMON | _CLIPPING
_RATE = {"learning_rate": _REQUIRED}
_L1_L2 = {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0}
_BETAS = {"beta1": 0.9, "beta2": 0.999}
_MOMENTUM = {"momentum": _REQUIRED, "use_nesterov": False}
_FTRL = {"multiply_linear_by_learning_rate": False, "beta": 0, "allow_zero_accumulator": False}  # between the common parameters

_DEFAULTS: dict[str, dict[str, Any]] = {
    "Adagrad": {**_RATE, "initial_accumulator": 0.1, **_LAST},
    "AdagradMomentum": {**_RATE, **_MOMENTUM, "exponent": 2, "beta2": 1, "epsilon": 1e-10, **_LAST},
    "Adam": {**_RATE, **_BETAS, "epsilon": 1e-8, "lazy_adam": True, "sum_inside_sqrt": True, **_LAST},
    "FrequencyEstimator": dict.fromkeys(("tau", "max_delta", "outlier_threshold", "weight_exponent"), _REQUIRED),
    "Ftrl": {**_RATE, "learning_rate_power": -0.5, "initial_accumulator_value": 0.1, **_L1_L2, **_COMMON, **_FTRL, **_CLIPPING},
    "Momentum": {**_RATE, **_MOMENTUM, **_LAST},
    "ProximalAdagrad": {**_RATE, "initial_accumulator": 0.1, **_L1_L2, **_LAST},
    "ProximalYogi": {"learning_rate": 0.01, **_BETAS, "epsilon": 1e-3, **_L1_L2, "initial_accumulator_value": 1e-6, **_LAST},
    "RMSProp": {**_RATE, "rho": _REQUIRED, "momentum": _REQUIRED, "epsilon": _REQUIRED, **_LAST},
    "StochasticGradientDescent": {**_RATE, **_LAST},
}

_RULES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("learning_rate_power",), lambda value: value <= 0, "0 or less"),
    (tuple(_BETAS), lambda value: 0 <= value < 1, "at least 0 and less than 1"),
    (("epsilon", "exponent", "initial_accumulator"), lambda value: value > 0, "greater than 0"),
    (("initial_accumulator_value", *_L1_L2), lambda value: value >= 0, "0 or greater"),
)
# Parameters that TensorFlow does not check.
_UNCHECKED = {
    ("AdagradMomentumParameters", "beta2"),
    ("ProximalYogiParameters", "initial_accumulator_value"),
    ("RMSPropParameters", "epsilon"),
}

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

# A class that does not take one of these parameters has this value.
_FIXED: dict[str, Any] = {"learning_rate": 1.0, "initial_linear_value": 0.0, **_LAST}


class OptimizationParameters:
    """The base class of all parameters, which checks their values.

    Raises:
        ValueError: A value is out of its range, or gradients are clipped without being accumulated.

    Example:
        >>> PARAMETERS["AdamParameters"](0.1, beta1=1.0)
        Traceback (most recent call last):
        ValueError: AdamParameters: `beta1` must be at least 0 and less than 1. Received: 1.0.
    """

    use_gradient_accumulation: Any
    clip_gradient_min: Any
    clip_gradient_max: Any

    def __post_init__(self) -> None:
        kind = type(self).__name__
        clips = (self.clip_gradient_min, self.clip_gradient_max)
        if not self.use_gradient_accumulation and clips != (None, None):
            raise ValueError(f"{kind}: clipping gradients needs `use_gradient_accumulation`. Received: {clips}.")
        if not self.use_gradient_accumulation and getattr(self, "lazy_adam", True) is False:
            raise ValueError(f"{kind}: `lazy_adam` may be False only with `use_gradient_accumulation`.")
        for names, holds, range_ in _RULES:
            for name in names:
                if hasattr(self, name) and (kind, name) not in _UNCHECKED and not holds(getattr(self, name)):
                    raise ValueError(f"{kind}: `{name}` must be {range_}. Received: {getattr(self, name)}.")


def _build(optimizer: str, defaults: Mapping[str, Any]) -> type:
    specs = [(field, Any) if default is _REQUIRED else (field, Any, default) for field, default in defaults.items()]
    fixed = {field: value for field, value in _FIXED.items() if field not in defaults}
    made = dataclasses.make_dataclass(
        f"{optimizer}Parameters", specs, bases=(OptimizationParameters,), namespace=fixed, eq=False
    )
    made.__module__, made.__doc__ = __name__, f"Parameters of an embedding table's optimizer: {optimizer}."
    return made


def _make_tuple(name: str, fields: tuple[str, ...]) -> type:
    return namedtuple(name, fields, module=__name__)


PARAMETERS = {f"{optimizer}Parameters": _build(optimizer, defaults) for optimizer, defaults in _DEFAULTS.items()}
# TensorFlow's name is FtrlSlotVariable, in the singular.
SLOTS = {
    name: _make_tuple(name, fields)
    for optimizer, fields in _SLOTS.items()
    for name in (f"{optimizer}SlotVariableNames", f"{optimizer}SlotVariable{'' if optimizer == 'Ftrl' else 's'}")
}
globals().update(PARAMETERS | SLOTS)
