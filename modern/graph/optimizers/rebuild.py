"""Table of TF1 optimizers and the Keras optimizers that take their place.

The targets are ``tf_keras.optimizers.legacy`` and its subclasses in ``exact``, since only they treat sparse gradients as TF1 did.
Epsilons are always given, since Keras' defaults differ from TF1's.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

Optimizer = Any  # tf.compat.v1.train.Optimizer or tf_keras.optimizers.legacy.Optimizer


@dataclasses.dataclass(frozen=True)
class OptimizerRule:
    """Mapping of one TF1 optimizer to a Keras one.

    Attributes:
        keras: Name of a class in ``exact``, else under ``tf_keras.optimizers.legacy``.
        hyperparameters: Keras argument -> attribute of the TF1 optimizer that holds it.
        slots: TF1 slot name -> Keras slot name.
    """

    keras: str
    hyperparameters: Mapping[str, str]
    slots: Mapping[str, str]


RULES: Mapping[str, OptimizerRule] = {
    "GradientDescentOptimizer": OptimizerRule("SGD", {"learning_rate": "_learning_rate"}, {}),
    "MomentumOptimizer": OptimizerRule(
        "Momentum",
        {"learning_rate": "_learning_rate", "momentum": "_momentum", "nesterov": "_use_nesterov"},
        {"momentum": "momentum"},
    ),
    "AdagradOptimizer": OptimizerRule(
        "Adagrad",
        {"learning_rate": "_learning_rate", "initial_accumulator_value": "_initial_accumulator_value"},
        {"accumulator": "accumulator"},
    ),
    "AdamOptimizer": OptimizerRule(
        "Adam",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {"m": "m", "v": "v"},
    ),
    "RMSPropOptimizer": OptimizerRule(
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
    "FtrlOptimizer": OptimizerRule(
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
    "AdadeltaOptimizer": OptimizerRule(
        "Adadelta",
        {"learning_rate": "_lr", "rho": "_rho", "epsilon": "_epsilon"},
        {"accum": "accum_grad", "accum_update": "accum_var"},
    ),
}


def rule_for(optimizer: Optimizer) -> OptimizerRule | None:
    """Finds the row of a TF1 optimizer.

    Returns:
        The row, or None if Keras has no counterpart: for subclasses of a script, and for hyperparameters that change while training
        (other than a learning rate that is a tensor).

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
    """Returns the values of a TF1 optimizer under Keras' names: Python numbers, or the tensor or callable of a schedule."""
    rule = RULES[type(optimizer).__name__]
    return {name: _value(getattr(optimizer, attribute)) for name, attribute in rule.hyperparameters.items()}


def _value(value: Any) -> Any:
    given = value() if callable(value) and not isinstance(value, tf.Variable) else value
    constant = tf.get_static_value(given) if isinstance(given, tf.Tensor) else given
    if constant is None:  # a schedule; a callable stays as it is, since each call makes new operations
        return value
    return constant.item() if isinstance(constant, (np.generic, np.ndarray)) else constant


def _reads_itself(learning_rate: Any) -> bool:
    """Returns True for variables and callables, which the optimizer reads when it applies gradients."""
    return not isinstance(learning_rate, (bool, int, float, tf.Tensor))


def build(optimizer: Optimizer, given: Mapping[str, Any]) -> Optimizer:
    """Makes the Keras optimizer that continues a TF1 one; a learning-rate schedule starts at 0 and is set at every step.

    Args:
        optimizer: TF1 optimizer that ``rule_for`` knows.
        given: Hyperparameters of the optimizer, as ``hyperparameters`` returns them.

    Returns:
        A ``tf_keras.optimizers.legacy`` optimizer, or a subclass of one, with every hyperparameter given.
    """
    import tf_keras

    from estimator_bridge.modern.graph.optimizers import exact

    rule = RULES[type(optimizer).__name__]
    values = {name: 0.0 if tf.is_tensor(value) else value for name, value in given.items()}
    cls = getattr(exact, rule.keras, None) or getattr(tf_keras.optimizers.legacy, rule.keras)
    return cls(**values)
