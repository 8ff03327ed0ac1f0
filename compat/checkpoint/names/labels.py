"""Variables of one side, grouped by shape, dtype and a label: a part of their names that says their layer and role in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.format.bundle import Shape

Label = Callable[[str], str | None]  # a variable's name -> its label, None for a variable to leave out
ShapeAndDtype = tuple[Shape, int]
# Names in tf.contrib, slim and canned Estimators -> names in tf.layers and Keras.
_SAME = {
    "weights": "kernel",
    "biases": "bias",
    "bias_weights": "bias",
    "embedding_weights": "embeddings",
    "depthwise_weights": "depthwise_kernel",
    "pointwise_weights": "pointwise_kernel",
}
_NUMBER = re.compile(r"_?\d+")


class Named(NamedTuple):
    """A variable of either side.

    Attributes:
        key: Name in its checkpoint.
        name: Name to compare.
        shape: Shape of the variable.
        dtype: Number of its DataType.
    """

    key: str
    name: str
    shape: Shape
    dtype: int

    @property
    def shape_and_dtype(self) -> ShapeAndDtype:
        """The properties that are equal in every pair."""
        return self.shape, self.dtype


def role(name: str) -> str:
    """Returns the last part of a name in Keras' words.

    Example:
        >>> role("dnn/input_layer/age_embedding/embedding_weights"), role("fc1/biases"), role("dense/kernel")
        ('embeddings', 'bias', 'kernel')
    """
    last = name.rpartition("/")[2]
    return _SAME.get(last, last)


def scope(name: str, level: int = 1) -> str:
    """Returns a name without its last parts: its layer or, with a higher level, a scope around it; "" if there is none.

    Example:
        >>> scope("net/dense_1/kernel"), scope("net/dense_1/kernel", 2), scope("kernel")
        ('net/dense_1', 'net', '')
    """
    return "/".join(name.split("/")[:-level])


def ending(name: str, length: int) -> str | None:
    """Returns the last parts of a name in Keras' words; None if it has fewer.

    Example:
        >>> ending("net/fc1/weights", 2), ending("weights", 2)
        ('fc1/kernel', None)
    """
    parts = name.split("/")
    return "/".join([*parts[-length:-1], role(name)]) if len(parts) >= length else None


def unnumbered(name: str) -> str:
    """Returns a name without the numbers that count layers.

    Example:
        >>> unnumbered("net/dense_12/kernel"), unnumbered("net/dense/weights")
        ('net/dense/kernel', 'net/dense/kernel')
    """
    return _NUMBER.sub("", f"{scope(name)}/{role(name)}")


def in_scope(level: int, translate: Label, name: str) -> str | None:
    """Returns a variable's translated scope and its role; None without a translation."""
    translated = translate(scope(name, level))
    return None if translated is None else f"{translated}/{role(name)}"


def group(variables: Iterable[Named], label: Label) -> dict[tuple[ShapeAndDtype, str], list[Named]]:
    """Groups variables by shape, dtype and label."""
    found: dict[tuple[ShapeAndDtype, str], list[Named]] = {}
    for variable in variables:
        text = label(variable.name)
        if text is not None:
            found.setdefault((variable.shape_and_dtype, text), []).append(variable)
    return found


def find_one_to_one(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the pairs whose members are in no other pair."""
    known = set(pairs)
    here, there = (Counter(pair[side] for pair in known) for side in (0, 1))
    return {source: target for source, target in known if here[source] == there[target] == 1}


def natural_order(variable: Named) -> list[object]:
    """Returns a key that sorts ``dense`` before ``dense_2`` before ``dense_10``."""
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", variable.name)]
