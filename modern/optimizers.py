"""TF1 optimizers and the Keras optimizers that take their place: one row an optimizer.

``tf_keras.optimizers.legacy`` is the target because only its optimizers treat sparse gradients as TF1 did. Epsilons are always
given: Keras' defaults differ from TF1's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

Optimizer = Any  # tf.compat.v1.train.Optimizer or tf_keras.optimizers.legacy.Optimizer


@dataclasses.dataclass(frozen=True)
class Rule:
    """How one TF1 optimizer becomes a Keras one.

    Attributes:
        keras: name under ``tf_keras.optimizers.legacy``.
        hyperparameters: Keras argument -> attribute of the TF1 optimizer that holds it.
        slots: TF1 slot name -> Keras slot name.
        constants: Keras arguments that TF1 had no name for.
        attributes: what to set on the Keras optimizer once it is made.
        scale: Keras slot value / TF1 slot value as a function of the learning rate, where the two differ.
    """

    keras: str
    hyperparameters: Mapping[str, str]
    slots: Mapping[str, str]
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    scale: Callable[[float], float] = lambda learning_rate: 1.0


RULES: Mapping[str, Rule] = {
    "GradientDescentOptimizer": Rule("SGD", {"learning_rate": "_learning_rate"}, {}),
    "MomentumOptimizer": Rule(
        "SGD",
        {"learning_rate": "_learning_rate", "momentum": "_momentum", "nesterov": "_use_nesterov"},
        {"momentum": "momentum"},
        scale=lambda learning_rate: -learning_rate,  # Keras accumulates -learning_rate * gradient
    ),
    "AdagradOptimizer": Rule(
        "Adagrad",
        {"learning_rate": "_learning_rate", "initial_accumulator_value": "_initial_accumulator_value"},
        {"accumulator": "accumulator"},
        {"epsilon": 1e-30},  # TF1 has none, and Keras takes 0 for "use the default"
    ),
    "AdamOptimizer": Rule(
        "Adam",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {"m": "m", "v": "v"},
    ),
    "RMSPropOptimizer": Rule(
        "RMSprop",
        {
            "learning_rate": "_learning_rate",
            "rho": "_decay",
            "momentum": "_momentum",
            "epsilon": "_epsilon",
            "centered": "_centered",
        },
        {"rms": "rms", "momentum": "momentum", "mg": "mg"},
        # Without momentum Keras has neither the slot nor TF1's kernel, and treats sparse gradients in another way.
        attributes={"_momentum": True},
    ),
    "FtrlOptimizer": Rule(
        "Ftrl",
        {
            "learning_rate": "_learning_rate",
            "learning_rate_power": "_learning_rate_power",
            "initial_accumulator_value": "_initial_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
            "l2_shrinkage_regularization_strength": "_l2_shrinkage_regularization_strength",
            "beta": "_beta",
        },
        {"accum": "accumulator", "linear": "linear"},
    ),
    "AdadeltaOptimizer": Rule(
        "Adadelta",
        {"learning_rate": "_lr", "rho": "_rho", "epsilon": "_epsilon"},
        {"accum": "accum_grad", "accum_update": "accum_var"},
    ),
}


def rule_for(optimizer: Optimizer) -> Rule | None:
    """The row for a TF1 optimizer.

    Returns:
        None where Keras has no counterpart: own subclasses, hyperparameters that change while training (other than a learning
        rate that is a tensor), and momentum under a learning rate that changes or is 0, which Keras' velocity would weigh
        differently.

    Example:
        >>> import tensorflow as tf
        >>> rule_for(tf.compat.v1.train.AdamOptimizer()).keras
        'Adam'
    """
    name = type(optimizer).__name__
    if name not in RULES or type(optimizer) is not getattr(tf.compat.v1.train, name):
        return None
    values = hyperparameters(optimizer)
    changing = {key for key, value in values.items() if not isinstance(value, (bool, int, float))}
    if name == "MomentumOptimizer":
        return None if changing or not values["learning_rate"] else RULES[name]
    return RULES[name] if changing <= {"learning_rate"} and not _reads_itself(values["learning_rate"]) else None


def hyperparameters(optimizer: Optimizer) -> dict[str, Any]:
    """The values a TF1 optimizer was made with, under Keras' names: Python numbers, or what a schedule is made of."""
    rule = RULES[type(optimizer).__name__]
    return {name: _value(getattr(optimizer, attribute)) for name, attribute in rule.hyperparameters.items()}


def _value(value: Any) -> Any:
    given = value() if callable(value) and not isinstance(value, tf.Variable) else value
    constant = tf.get_static_value(given) if isinstance(given, tf.Tensor) else given
    if constant is None:  # a schedule; one that is called would make new operations each time, so it stays as it was given
        return value
    return constant.item() if isinstance(constant, (np.generic, np.ndarray)) else constant


def _reads_itself(learning_rate: Any) -> bool:
    """True for what is no node of the graph: variables and callables, which the optimizer reads when it applies."""
    return not isinstance(learning_rate, (bool, int, float, tf.Tensor))


def build(optimizer: Optimizer, given: Mapping[str, Any]) -> Optimizer:
    """The Keras optimizer that continues a TF1 one; a learning-rate schedule starts at 0 and is set at every step.

    Args:
        optimizer: a TF1 optimizer that ``rule_for`` knows.
        given: its ``hyperparameters``.

    Returns:
        A ``tf_keras.optimizers.legacy`` optimizer with every hyperparameter given.
    """
    import tf_keras

    rule = RULES[type(optimizer).__name__]
    values = {name: 0.0 if tf.is_tensor(value) else value for name, value in given.items()}
    made = getattr(tf_keras.optimizers.legacy, rule.keras)(**values, **rule.constants)
    for name, value in rule.attributes.items():
        setattr(made, name, value)
    return made


def iterations(global_step: int, beta_power: float, beta: float) -> int:
    """The number of updates an Adam slot has seen: TF1 keeps it as ``beta ** (t + 1)``.

    Args:
        global_step: trusted where it agrees with ``beta_power`` (always so for one optimizer, one update a step).
        beta_power: the checkpoint's ``beta1_power`` or ``beta2_power``.
        beta: that beta.

    Returns:
        t, exact until ``beta_power`` underflows; ``global_step`` from there on.

    Example:
        >>> iterations(1000, 0.9 ** 11, 0.9), iterations(500_000, 0.0, 0.9)
        (10, 500000)
    """
    if beta_power < np.finfo(np.float32).tiny or not 0.0 < beta < 1.0:
        return global_step
    counted = round(math.log(beta_power) / math.log(beta)) - 1
    drift = abs(counted - global_step) * -math.log(beta)  # relative error of beta_power that would explain the difference
    return global_step if drift < 1e-3 else counted
