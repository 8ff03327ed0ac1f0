"""The names of causes, and a cause."""

from __future__ import annotations

import dataclasses
import enum


class CauseName(str, enum.Enum):
    """The kinds of causes; the values are those of report.json."""

    MISSING_VARIABLES = "missing variables"
    EXTRA_VARIABLES = "extra variables"
    SHAPES = "other shapes"
    FROZEN_VARIABLES = "frozen variables"
    TRAINED_VARIABLES = "variables that the old script does not train"
    BATCH_SIZE = "batch size"
    BATCH_VALUES = "batch values"
    BATCH_ORDER = "batch order"
    DROPOUT = "dropout"
    BROADCAST = "label shape"
    FLATTEN_ORDER = "flatten order"
    BATCH_NORM_EPSILON = "batch norm epsilon"
    BATCH_NORM_UPDATES = "batch norm updates"
    BATCH_NORM_MOMENTUM = "batch norm momentum"
    LOSS_WEIGHTS = "loss weights"
    LOSS_SCALE = "loss scale"
    REGULARIZER = "regularizer"
    REPORTED_LOSS = "reported loss"
    LABEL_SMOOTHING = "label smoothing"
    ELEMENT_ORDER = "order of elements"
    ACTIVATION = "activation"
    LOGITS = "outputs that the loss gets"
    RECURRENT = "recurrent cell"
    FORWARD_PASS = "forward pass"
    GRADIENT_SCALE = "gradient scale"
    GRADIENTS = "gradients"
    CLIPPING = "gradient clipping"
    OPTIMIZER_PARTS = "one optimizer for several parts"
    OPTIMIZER = "optimizer"
    CANNED_DEFAULTS = "defaults of a canned Estimator"
    LEARNING_RATE = "learning rate"
    SCHEDULE = "learning rate schedule"
    MOMENTUM = "momentum"
    NESTEROV = "nesterov"
    MOMENTUM_SCALING = "momentum scaling"
    BETAS = "beta"
    STRENGTHS = "strengths of Ftrl"
    HYPERPARAMETER = "hyperparameter"
    EPSILON = "epsilon"
    ACCUMULATORS = "initial accumulators"
    INITIAL_VALUES = "initial values"
    LOST_VALUES = "values of a training that goes on"
    UPDATE = "update"
    ITERATIONS = "iterations"
    STEPS = "number of steps"
    LATER = "later steps"
    EVALUATION_DROPOUT = "dropout in evaluation"
    EVALUATION_DATA = "evaluation data"
    KEPT_METRICS = "metrics without a reset"
    EVALUATION_LOSS = "evaluation loss"
    METRIC_DEFINITION = "metric definition"
    EVALUATION_MODE = "forward pass of evaluation"
    PREDICTIONS = "predictions"


@dataclasses.dataclass(frozen=True)
class Cause:
    """A cause of a difference.

    Attributes:
        name: Kind of cause.
        seen: Sentence about what was seen, with numbers of both sides.
        change: Sentence about what to change in the new script.
        step: Global step at which it shows first; None if it does not belong to a step.
        variables: Variables that it concerns; empty for all.
    """

    name: CauseName
    seen: str
    change: str
    step: int | None = None
    variables: tuple[str, ...] = ()


def shown_name(name: str) -> str:
    """Returns the name of a variable without the end that all keys of an object-based checkpoint have.

    Example:
        >>> shown_name("model/layer-1/kernel/.ATTRIBUTES/VARIABLE_VALUE")
        'model/layer-1/kernel'
    """
    return name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")


def some(names: tuple[str, ...] | list[str], most: int = 3) -> str:
    """Spells the first names of several.

    Example:
        >>> some(["a", "b", "c", "d"])
        'a, b, c and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
