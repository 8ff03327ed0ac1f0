"""TF1 optimizers and the Keras optimizers that take their place: one row an optimizer.

``tf_keras.optimizers.legacy`` and its subclasses in ``exact_optimizers`` are the target because only they treat sparse gradients
as TF1 did. Epsilons are always given: Keras' defaults differ from TF1's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

Optimizer = Any  # tf.compat.v1.train.Optimizer or tf_keras.optimizers.legacy.Optimizer


@dataclasses.dataclass(frozen=True)
class Rule:
    """How one TF1 optimizer becomes a Keras one.

    Attributes:
        keras: name of a class in ``exact_optimizers``, else under ``tf_keras.optimizers.legacy``.
        hyperparameters: Keras argument -> attribute of the TF1 optimizer that holds it.
        slots: TF1 slot name -> Keras slot name.
    """

    keras: str
    hyperparameters: Mapping[str, str]
    slots: Mapping[str, str]


RULES: Mapping[str, Rule] = {
    "GradientDescentOptimizer": Rule("SGD", {"learning_rate": "_learning_rate"}, {}),
    "MomentumOptimizer": Rule(
        "Momentum",
        {"learning_rate": "_learning_rate", "momentum": "_momentum", "nesterov": "_use_nesterov"},
        {"momentum": "momentum"},
    ),
    "AdagradOptimizer": Rule(
        "Adagrad",
        {"learning_rate": "_learning_rate", "initial_accumulator_value": "_initial_accumulator_value"},
        {"accumulator": "accumulator"},
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
        None where Keras has no counterpart: own subclasses, and hyperparameters that change while training (other than a
        learning rate that is a tensor).

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
        A ``tf_keras.optimizers.legacy`` optimizer, or a subclass of one, with every hyperparameter given.
    """
    import tf_keras

    from estimator_bridge.modern.graph.optimizers import exact

    rule = RULES[type(optimizer).__name__]
    values = {name: 0.0 if tf.is_tensor(value) else value for name, value in given.items()}
    cls = getattr(exact, rule.keras, None) or getattr(tf_keras.optimizers.legacy, rule.keras)
    return cls(**values)
