"""Recognizes slot variables by their names, which are ``VARIABLE/OPTIMIZER``, ``VARIABLE/OPTIMIZER_1`` and so on in TF1."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Iterable, Iterator

from estimator_bridge.compat.checkpoint.slots import SHADOW, TABLES

ATTRIBUTE = "/.ATTRIBUTES/VARIABLE_VALUE"
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
SAVE_COUNTER = f"save_counter{ATTRIBUTE}"
_OBJECT_SLOT = re.compile(r"^(?P<variable>.+)/\.OPTIMIZER_SLOT/(?P<optimizer>.+)/(?P<slot>[^/]+)$")
_KERAS_VARIABLES = re.compile(r"^(?P<optimizer>(?:.*/)?_?optimizer)/_variables/(?P<slot>\d+)$")

# Suffix of the variable's name -> optimizer and slot, for optimizers with their default names: first those with a table, then others.
SUFFIXES = {
    **{row.suffix: (name, row.legacy) for name, table in TABLES.items() if name != "centered RMSProp" for row in table.rows},
    "RMSProp_2": ("RMSProp", "momentum"),
    "MomentumW": ("MomentumW", "momentum"),
    "AdagradDA": ("AdagradDA", "gradient_accumulator"),
    "AdagradDA_1": ("AdagradDA", "gradient_squared_accumulator"),
    "ProximalAdagrad": ("ProximalAdagrad", "accumulator"),
    "RegAdagrad": ("RegAdagrad", "accumulator"),
    "AddSignOptimizer": ("AddSign", "m"),
    "PowerSignOptimizer": ("PowerSign", "m"),
    "Shampoo": ("Shampoo", "gbar"),
    **{f"Shampoo_{number}": ("Shampoo", "statistics") for number in range(1, 17)},  # one a dimension, one a root of it
    "LARSOptimizer": ("LARS", "momentum"),
    SHADOW: (SHADOW, "average"),
}

# tf_keras.optimizers.legacy name their slots ``Adam/VARIABLE/m``. TF2's canned Estimators put them into the scope "training",
# or "training_2" and so on for further heads. In other scopes, which a script may have opened, only Keras' own names are recognized.
_OF_ESTIMATOR = r"^training(?:_\d+)?/(?P<optimizer>[A-Za-z]+)(?:_\d+)?/"
_OF_SCRIPT = r"^(?:.+?/)?(?P<optimizer>Ada(?:delta|grad|m|max)|Ftrl|Nadam|RMSprop|SGD)(?:_\d+)?/"
_CANNED_SLOT = [re.compile(rf"{scope}(?P<variable>.+)/(?P<slot>[a-z_]+)$") for scope in (_OF_ESTIMATOR, _OF_SCRIPT)]
_CANNED_HYPERPARAMETER = [
    re.compile(rf"{_OF_ESTIMATOR}(?P<name>[^/]+)$"),
    re.compile(
        rf"{_OF_SCRIPT}(?P<name>beta(?:_[12])?|decay|iter|l[12]_regularization_strength|learning_rate(?:_power)?|momentum(?:_cache)?|rho)$"
    ),
]
_CANNED_OPTIMIZERS = {"SGD": "Momentum", "RMSprop": "RMSProp", "Adamax": "AdaMax"}  # the others are called as TF1's


@dataclasses.dataclass(frozen=True)
class Slot:
    """A slot variable, as its name describes it.

    Attributes:
        variable: Name of its variable; "" if only its place in the optimizer's list is known.
        optimizer: Name of the optimizer that keeps it.
        slot: Name of the slot in the optimizer.
        suffix: Suffix of the variable's name; "" if that name stands in the middle.
    """

    variable: str
    optimizer: str
    slot: str
    suffix: str


def is_object(name: str) -> bool:
    """Returns True if a name belongs to an object graph.

    Example:
        >>> is_object("model/w/.ATTRIBUTES/VARIABLE_VALUE"), is_object("dense/kernel")
        (True, False)
    """
    return ".ATTRIBUTES/" in name or name == OBJECT_GRAPH


def slot_of(name: str, names: Container[str]) -> Slot | None:
    """Reads the name of a slot variable, name-based or object-based.

    Args:
        name: Name of any variable.
        names: All names of the checkpoint, among which is a slot's variable.

    Returns:
        The slot; None if it is no slot of a known optimizer.

    Example:
        >>> slot_of("dense/kernel/Adam_1", {"dense/kernel"})
        Slot(variable='dense/kernel', optimizer='Adam', slot='v', suffix='Adam_1')
        >>> slot_of("OptimizeLoss/dense/kernel/Momentum", {"dense/kernel"})
        Slot(variable='dense/kernel', optimizer='Momentum', slot='momentum', suffix='Momentum')
        >>> slot_of("dense/kernel", {"dense/kernel"}) is None
        True
    """
    if name.endswith(ATTRIBUTE):
        return _object_slot(name[: -len(ATTRIBUTE)])
    canned = next((match for match in _matches(_CANNED_SLOT, name) if match["variable"] in names), None)
    if canned:
        optimizer = canned["optimizer"]
        return Slot(canned["variable"], _CANNED_OPTIMIZERS.get(optimizer, optimizer), canned["slot"], "")
    stem, _, last = name.rpartition("/")
    if last not in SUFFIXES:
        return None
    optimizer, slot = SUFFIXES[last]
    if last == "RMSProp_1" and f"{stem}/RMSProp_2" in names:
        slot = "mg"  # centered: the mean of the gradients comes before the momentum
    for variable in _candidates(stem):
        if variable in names:
            return Slot(variable, optimizer, slot, name.rpartition(f"{variable}/")[2])
    return None


def canned_hyperparameter(name: str) -> str | None:
    """Returns the hyperparameter that the Keras optimizer of a canned Estimator of TF2 keeps under a name, or None.

    Example:
        >>> canned_hyperparameter("training/Adam/beta_1"), canned_hyperparameter("training/Adam/dense/kernel/m")
        ('beta_1', None)
    """
    return next((match["name"] for match in _matches(_CANNED_HYPERPARAMETER, name)), None)


def _matches(patterns: Iterable[re.Pattern[str]], name: str) -> Iterator[re.Match[str]]:
    return filter(None, (pattern.match(name) for pattern in patterns))


def _candidates(stem: str) -> Iterator[str]:
    """Yields possible names of a slot's variable: canned Estimators add a part for a slice; an optimizer in a scope puts it in front."""
    while stem:
        yield stem
        shorter, _, last = stem.rpartition("/")
        if re.fullmatch(r"(part|t)_\d+", last):
            yield shorter
        stem = stem.partition("/")[2]


def _object_slot(path: str) -> Slot | None:
    match = _OBJECT_SLOT.match(path)
    if match:
        return Slot(match["variable"] + ATTRIBUTE, match["optimizer"], match["slot"], path[len(match["variable"]) + 1 :])
    match = _KERAS_VARIABLES.match(path)
    return Slot("", match["optimizer"], f"#{match['slot']}", "") if match else None
