"""Tables of the functions that build feature columns, by the column's class name, and their results."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor

Builder = TypeVar("Builder", bound=Callable[..., Any])


class Ids(NamedTuple):
    """The ids of a batch.

    Attributes:
        ids: Sparse int64 tensor ``[batch, n]``, or ``[batch, time, n]`` for a sequence.
        size: Number of ids.
        weights: Sparse float32 tensor with the same indices; None for a weight of 1 everywhere.
        complete: True if each id is in [0, size); False if -1 stands for values out of the vocabulary.
        lengths: Lengths of the sequences, int64 ``[batch]``; None without sequences.
    """

    ids: Tensor
    size: int
    weights: Tensor | None = None
    complete: bool = True
    lengths: Tensor | None = None


class Weight(NamedTuple):
    """A variable of the Keras model and its name in a checkpoint.

    Attributes:
        variable: Variable of the Keras model.
        name: Name in the scope of the layer (``dnn/input_from_feature_columns/input_layer``, ``linear/linear_model``,
            ``sequence_features``, ...), such as ``x_embedding/embedding_weights``, ``price/weights``, ``bias_weights``.
        shared: True for ``tf.feature_column.shared_embeddings``, whose variable is not in that scope. Estimators from
            ``tf.compat.v1.estimator`` keep it beside the layer's scope, in the first part of the model that reads it
            (``dnn/input_from_feature_columns/NAME``, ``linear/NAME``); those from ``tf.estimator`` at the root (``NAME``).
    """

    variable: Any
    name: str
    shared: bool = False


class Representation(NamedTuple):
    """A column's output.

    Attributes:
        values: float32 tensor ``[batch, width]``, or ``[batch, time, width]`` for a sequence.
        weights: Variables of the column.
        lengths: Lengths of the sequences, int64 ``[batch]``; None without sequences.
    """

    values: Tensor
    weights: tuple[Weight, ...] = ()
    lengths: Tensor | None = None


# Class names; TensorFlow 1's first generation has the same with a leading underscore, except for shared embeddings.
CATEGORICAL: dict[str, Callable[[Column, Inputs], Ids]] = {}
DENSE: dict[str, Callable[[Column, Inputs, str], Representation]] = {}


def builds(table: dict[str, Builder], name: str) -> Callable[[Builder], Builder]:
    """Registers a function as the builder of columns of a class.

    Args:
        table: ``CATEGORICAL`` or ``DENSE``.
        name: Class name.
    """

    def register(function: Builder) -> Builder:
        table[name] = function
        return function

    return register


def find_builder(table: Mapping[str, Builder], column: Any) -> Builder:
    """Returns the builder of a column's class.

    Raises:
        NotSupportedError: if the class is not in the table.
    """
    name = type(column).__name__
    for known in (name, name.removeprefix("_")):
        if known in table:
            return table[known]
    raise NotSupportedError(
        f"A column of the class {name} is not supported here.",
        expected=f"one of {', '.join(table)}",
        received=repr(column),
        fix="Wrap a categorical column in an indicator or embedding column; for custom columns use `estimator-bridge run --path modern`.",
    )


def ids_of(column: Column, inputs: Inputs) -> Ids:
    """Returns the ids of any categorical column, built once for each ``inputs``."""
    return inputs.once(column, lambda: find_builder(CATEGORICAL, column)(column, inputs))
