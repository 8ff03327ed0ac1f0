"""Optimizers and learning rate schedules of TensorFlow 1 as Keras ones that compute the same updates."""

from __future__ import annotations

import dataclasses

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.script import Script, arguments, code

_TRAIN = "tensorflow.train."


@dataclasses.dataclass(frozen=True)
class Counterpart:
    """A class of Keras, and what its arguments are called in TensorFlow 1.

    Attributes:
        keras: Class below ``tf_keras.optimizers``; empty if the new script contains a class that calls TensorFlow 1's operation.
        parameters: Parameters of TensorFlow 1 in their order, each with the Keras one; an empty one is left out.
        always: Arguments that Keras needs to compute the same.
        kind: Name of the operation, if ``keras`` is empty.
    """

    keras: str
    parameters: dict[str, str]
    always: dict[str, str] = dataclasses.field(default_factory=dict)
    kind: str = ""


KERNELS = "KernelOptimizer"
"""Class of the new script that calls TensorFlow 1's operations."""
_UNNAMED = {"use_locking": "", "name": ""}
OPTIMIZERS = {
    "GradientDescentOptimizer": Counterpart("legacy.SGD", {"learning_rate": "learning_rate", **_UNNAMED}),
    "MomentumOptimizer": Counterpart(
        "legacy.SGD",
        {"learning_rate": "learning_rate", "momentum": "momentum", **_UNNAMED, "use_nesterov": "nesterov"},
    ),
    "AdamOptimizer": Counterpart(
        "legacy.Adam",
        {"learning_rate": "learning_rate", "beta1": "beta_1", "beta2": "beta_2", "epsilon": "epsilon", **_UNNAMED},
        {"learning_rate": "0.001", "epsilon": "1e-8"},
    ),
    "AdagradOptimizer": Counterpart(
        "legacy.Adagrad",
        {"learning_rate": "learning_rate", "initial_accumulator_value": "initial_accumulator_value", **_UNNAMED},
        {"epsilon": "0.0"},
    ),
    "FtrlOptimizer": Counterpart(
        "legacy.Ftrl",
        {
            "learning_rate": "learning_rate",
            "learning_rate_power": "learning_rate_power",
            "initial_accumulator_value": "initial_accumulator_value",
            "l1_regularization_strength": "l1_regularization_strength",
            "l2_regularization_strength": "l2_regularization_strength",
            **_UNNAMED,
        },
    ),
    "RMSPropOptimizer": Counterpart(
        "",
        {"learning_rate": "learning_rate", "decay": "rho", "momentum": "momentum", "epsilon": "epsilon", **_UNNAMED},
        {"rho": "0.9", "momentum": "0.0", "epsilon": "1e-10", "slots": '{"ms": ("RMSProp", 1.0), "mom": ("RMSProp_1", 0.0)}'},
        "RMSProp",
    ),
    "AdadeltaOptimizer": Counterpart(
        "",
        {"learning_rate": "learning_rate", "rho": "rho", "epsilon": "epsilon", **_UNNAMED},
        {
            "learning_rate": "0.001",
            "rho": "0.95",
            "epsilon": "1e-8",
            "slots": '{"accum": ("Adadelta", 0.0), "accum_update": ("Adadelta_1", 0.0)}',
        },
        "Adadelta",
    ),
    "ProximalAdagradOptimizer": Counterpart(
        "",
        {"learning_rate": "learning_rate", "l1_regularization_strength": "l1", "l2_regularization_strength": "l2", **_UNNAMED},
        {"l1": "0.0", "l2": "0.0", "slots": '{"accum": ("ProximalAdagrad", 0.1)}'},
        "ProximalAdagrad",
    ),
}
"""Classes below ``tf.train``; TensorFlow 1's defaults that differ from Keras' are in ``always``."""
MOMENTUM = Counterpart(
    "",
    {**OPTIMIZERS["MomentumOptimizer"].parameters, "use_nesterov": "use_nesterov"},
    {"use_nesterov": "False", "slots": '{"accum": ("Momentum", 0.0)}'},
    "Momentum",
)
"""Momentum whose learning rate changes: Keras multiplies the old updates by their own learning rates, TensorFlow 1 by the last one."""

SCHEDULES = {
    "exponential_decay": Counterpart(
        "schedules.ExponentialDecay",
        {
            "learning_rate": "initial_learning_rate",
            "global_step": "",
            "decay_steps": "decay_steps",
            "decay_rate": "decay_rate",
            "staircase": "staircase",
            "name": "",
        },
    ),
    "polynomial_decay": Counterpart(
        "schedules.PolynomialDecay",
        {
            "learning_rate": "initial_learning_rate",
            "global_step": "",
            "decay_steps": "decay_steps",
            "end_learning_rate": "end_learning_rate",
            "power": "power",
            "cycle": "cycle",
            "name": "",
        },
    ),
    "piecewise_constant": Counterpart(
        "schedules.PiecewiseConstantDecay", {"x": "", "boundaries": "boundaries", "values": "values", "name": ""}
    ),
    "cosine_decay": Counterpart(
        "schedules.CosineDecay",
        {
            "learning_rate": "initial_learning_rate",
            "global_step": "",
            "decay_steps": "decay_steps",
            "alpha": "alpha",
            "name": "",
        },
    ),
}
"""Functions below ``tf.train``. Keras passes the step for which TensorFlow 1 reads the global step."""


def optimizer(script: Script, call: cst.Call, scheduled: bool = False) -> str:
    """Returns the Keras optimizer for a call of one of ``tf.train``.

    Args:
        script: Script around the call.
        call: Call of the class.
        scheduled: Its learning rate changes.

    Raises:
        UnconvertibleError: Keras has none that computes the same updates, or the call has unknown arguments.
    """
    table = OPTIMIZERS | {"MomentumOptimizer": MOMENTUM} if scheduled else OPTIMIZERS
    return _converted(script, call, table, "compute its updates in train_step, and prove the result with compare")


def by_name(name: str, rate: str, scheduled: bool = False) -> str:
    """Returns the Keras optimizer for a name that TensorFlow 1 knows; empty if there is none.

    Args:
        name: E.g. ``Adam``.
        rate: Learning rate, or a schedule.
        scheduled: The rate changes.

    Example:
        >>> by_name("SGD", "0.05"), by_name("Nadam", "0.05")
        ('tf_keras.optimizers.legacy.SGD(learning_rate=0.05)', '')
    """
    row = OPTIMIZERS.get({"SGD": "GradientDescent"}.get(name, name) + "Optimizer")
    momentum = {"momentum": "0.9"} if name == "Momentum" else {}
    row = MOMENTUM if momentum and scheduled else row
    return _written(row, {**row.always, "learning_rate": rate, **momentum}) if row is not None and rate else ""


def is_optimizer(name: str) -> bool:
    """Returns True for the name of an optimizer's class, e.g. ``tensorflow.train.AdamOptimizer``."""
    return name.startswith(_TRAIN) and name.endswith("Optimizer")


def schedule(script: Script, node: cst.BaseExpression) -> str | None:
    """Returns the Keras schedule for a call of one of ``tf.train``; None for any other expression."""
    name = script.called(node).removeprefix(_TRAIN)
    if name.removesuffix("_v2") not in SCHEDULES or not isinstance(node, cst.Call):
        return None
    return _converted(script, node, SCHEDULES, "write it as a LearningRateSchedule")


def _converted(script: Script, call: cst.Call, table: dict[str, Counterpart], advice: str) -> str:
    name = script.called(call).removeprefix(_TRAIN)
    row = table.get(name)
    given = arguments(call, tuple(row.parameters)) if row else None
    if row is None or given is None or not given.keys() <= row.parameters.keys():
        raise UnconvertibleError(call, f"tf.train.{name}", f"no Keras counterpart of this call computes the same; {advice}")
    kept = {row.parameters[name]: code(value) for name, value in given.items() if row.parameters[name]}
    return _written(row, {**row.always, **kept})


def _written(row: Counterpart, given: dict[str, str]) -> str:
    written = ", ".join(f"{name}={value}" for name, value in given.items())
    return f"tf_keras.optimizers.{row.keras}({written})" if row.keras else f'{KERNELS}("{row.kind}", {written})'
