"""Optimizer parameters for embedding tables: AdagradParameters, AdamParameters and eight more.

They are descriptions. Every class has the common parameters (``_COMMON``) and its own (``_OWN``), in the order of positional
arguments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

_Field = tuple[str, Any]
_Rule = tuple[str, Callable[[Any], bool], str]

_REQUIRED = object()
_COMMON: tuple[_Field, ...] = (
    ("use_gradient_accumulation", True),
    ("clip_weight_min", None),
    ("clip_weight_max", None),
    ("weight_decay_factor", None),
    ("multiply_weight_decay_factor_by_learning_rate", None),
)
_CLIPPING: tuple[_Field, ...] = (("clip_gradient_min", None), ("clip_gradient_max", None))
_RATE: tuple[_Field, ...] = (("learning_rate", _REQUIRED),)
_L1_L2: tuple[_Field, ...] = (("l1_regularization_strength", 0.0), ("l2_regularization_strength", 0.0))
_BETAS: tuple[_Field, ...] = (("beta1", 0.9), ("beta2", 0.999))

_OWN: dict[str, tuple[_Field, ...]] = {
    "AdagradParameters": (*_RATE, ("initial_accumulator", 0.1), *_COMMON, *_CLIPPING),
    "AdagradMomentumParameters": (
        *_RATE,
        ("momentum", _REQUIRED),
        ("use_nesterov", False),
        ("exponent", 2),
        ("beta2", 1),
        ("epsilon", 1e-10),
        *_COMMON,
        *_CLIPPING,
    ),
    "AdamParameters": (
        *_RATE,
        *_BETAS,
        ("epsilon", 1e-8),
        ("lazy_adam", True),
        ("sum_inside_sqrt", True),
        *_COMMON,
        *_CLIPPING,
    ),
    "FrequencyEstimatorParameters": tuple(
        (name, _REQUIRED) for name in ("tau", "max_delta", "outlier_threshold", "weight_exponent")
    ),
    "FtrlParameters": (
        *_RATE,
        ("learning_rate_power", -0.5),
        ("initial_accumulator_value", 0.1),
        *_L1_L2,
        *_COMMON,
        ("multiply_linear_by_learning_rate", False),
        ("beta", 0),
        ("allow_zero_accumulator", False),
        *_CLIPPING,
    ),
    "MomentumParameters": (*_RATE, ("momentum", _REQUIRED), ("use_nesterov", False), *_COMMON, *_CLIPPING),
    "ProximalAdagradParameters": (*_RATE, ("initial_accumulator", 0.1), *_L1_L2, *_COMMON, *_CLIPPING),
    "ProximalYogiParameters": (
        ("learning_rate", 0.01),
        *_BETAS,
        ("epsilon", 1e-3),
        *_L1_L2,
        ("initial_accumulator_value", 1e-6),
        *_COMMON,
        *_CLIPPING,
    ),
    "RMSPropParameters": (
        *_RATE,
        ("rho", _REQUIRED),
        ("momentum", _REQUIRED),
        ("epsilon", _REQUIRED),
        *_COMMON,
        *_CLIPPING,
    ),
    "StochasticGradientDescentParameters": (*_RATE, *_COMMON, *_CLIPPING),
}

_POSITIVE: tuple[Callable[[Any], bool], str] = (lambda value: value > 0, "greater than 0")
_NOT_NEGATIVE: tuple[Callable[[Any], bool], str] = (lambda value: value >= 0, "0 or greater")
_DECAY: tuple[Callable[[Any], bool], str] = (lambda value: 0 <= value < 1, "at least 0 and less than 1")
_L1_L2_RULES: tuple[_Rule, ...] = tuple((name, *_NOT_NEGATIVE) for name, _ in _L1_L2)
_BETA_RULES: tuple[_Rule, ...] = (*((name, *_DECAY) for name, _ in _BETAS), ("epsilon", *_POSITIVE))

_RULES: dict[str, tuple[_Rule, ...]] = {
    "AdagradParameters": (("initial_accumulator", *_POSITIVE),),
    "AdagradMomentumParameters": (("epsilon", *_POSITIVE), ("exponent", *_POSITIVE)),
    "AdamParameters": _BETA_RULES,
    "FtrlParameters": (
        ("learning_rate_power", lambda value: value <= 0, "0 or less"),
        ("initial_accumulator_value", *_NOT_NEGATIVE),
        *_L1_L2_RULES,
    ),
    "ProximalAdagradParameters": (("initial_accumulator", *_POSITIVE), *_L1_L2_RULES),
    "ProximalYogiParameters": (*_BETA_RULES, *_L1_L2_RULES),
}


# A class that does not take one of these parameters has this value.
_FIXED: dict[str, Any] = {"learning_rate": 1.0, "initial_linear_value": 0.0, **dict(_COMMON), **dict(_CLIPPING)}


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
        for name, holds, range_ in _RULES.get(kind, ()):
            value = getattr(self, name)
            if not holds(value):
                raise ValueError(f"{kind}: `{name}` must be {range_}. Received: {value}.")


def _build(name: str, fields: tuple[_Field, ...]) -> type:
    specs = [(field, Any) if default is _REQUIRED else (field, Any, default) for field, default in fields]
    fixed = {field: value for field, value in _FIXED.items() if field not in dict(fields)}
    made = dataclasses.make_dataclass(name, specs, bases=(OptimizationParameters,), namespace=fixed, eq=False)
    made.__module__, made.__doc__ = __name__, f"Parameters of an embedding table's optimizer: {name[: -len('Parameters')]}."
    return made


PARAMETERS: dict[str, type] = {name: _build(name, fields) for name, fields in _OWN.items()}
globals().update(PARAMETERS)
