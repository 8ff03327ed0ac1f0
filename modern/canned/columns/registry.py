"""Builders of feature columns, registered by class name where each stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.columns.inputs import Column, Inputs, Tensor
from estimator_bridge.modern.canned.columns.representation import Representation

Builder = TypeVar("Builder", bound=Callable[..., Any])


class Ids(NamedTuple):
    """The ids of a batch.

    Attributes:
        ids: sparse int64, ``[batch, n]``; of a sequence ``[batch, time, n]``.
        size: how many ids there are.
        weights: sparse float32 of the same shape and places; None for 1 everywhere.
        complete: each id is in [0, size); otherwise -1 stands for what is out of the vocabulary.
        lengths: of the sequences, int64 ``[batch]``; None for what is no sequence.
    """

    ids: Tensor
    size: int
    weights: Tensor | None = None
    complete: bool = True
    lengths: Tensor | None = None


# By class name: the first generation's are the same with a leading underscore, but for its shared embeddings.
CATEGORICAL: dict[str, Callable[[Column, Inputs], Ids]] = {}
DENSE: dict[str, Callable[[Column, Inputs, str], Representation]] = {}


def builds(table: dict[str, Builder], *classes: str) -> Callable[[Builder], Builder]:
    """Registers a function as the builder of columns of these classes.

    Args:
        table: ``CATEGORICAL`` or ``DENSE``.
        classes: Class names.
    """

    def register(function: Builder) -> Builder:
        table.update(dict.fromkeys(classes, function))
        return function

    return register


def builder(table: Mapping[str, Builder], column: Any) -> Builder:
    """The row of a column's class.

    Raises:
        NotSupportedError: a class that is not in the table.
    """
    name = type(column).__name__
    for known in (name, name.removeprefix("_")):
        if known in table:
            return table[known]
    raise NotSupportedError(
        f"A column of the class {name} cannot stand here.",
        expected=f"one of {', '.join(table)}",
        received=repr(column),
        fix="Wrap a categorical column in an indicator or embedding column; run columns of your own with --path modern.",
    )


def ids_of(column: Column, inputs: Inputs) -> Ids:
    """The ids of any categorical column, made once for each ``inputs``."""
    return inputs.once(column, lambda: builder(CATEGORICAL, column)(column, inputs))
