"""What a variable is to its layer, by the last part of its name, whoever named it; and which layer, by the parts before."""

from __future__ import annotations

import re

# What tf.contrib, slim and canned Estimators call what tf.layers and Keras call otherwise.
_SAME = {
    "weights": "kernel",
    "biases": "bias",
    "bias_weights": "bias",
    "embedding_weights": "embeddings",
    "depthwise_weights": "depthwise_kernel",
    "pointwise_weights": "pointwise_kernel",
}
_NUMBER = re.compile(r"_?\d+")


def role(name: str) -> str:
    """The last part of a name, as Keras calls it.

    Example:
        >>> role("dnn/input_layer/age_embedding/embedding_weights"), role("fc1/biases"), role("dense/kernel")
        ('embeddings', 'bias', 'kernel')
    """
    last = name.rpartition("/")[2]
    return _SAME.get(last, last)


def scope(name: str, level: int = 1) -> str:
    """The layer's name with what it stands in, or what that stands in; "" where there is none.

    Example:
        >>> scope("net/dense_1/kernel"), scope("net/dense_1/kernel", 2), scope("kernel")
        ('net/dense_1', 'net', '')
    """
    return "/".join(name.split("/")[:-level])


def ending(name: str, length: int) -> str | None:
    """The last parts of a name, as Keras calls them; None where there are not so many.

    Example:
        >>> ending("net/fc1/weights", 2), ending("weights", 2)
        ('fc1/kernel', None)
    """
    parts = name.split("/")
    return "/".join([*parts[-length:-1], role(name)]) if len(parts) >= length else None


def unnumbered(name: str) -> str:
    """A name without the numbers that count layers.

    Example:
        >>> unnumbered("net/dense_12/kernel"), unnumbered("net/dense/weights")
        ('net/dense/kernel', 'net/dense/kernel')
    """
    return _NUMBER.sub("", f"{scope(name)}/{role(name)}")
