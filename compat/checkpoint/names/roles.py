"""The role of a variable in its layer, from the last part of its name, and its layer, from the parts before."""

from __future__ import annotations

import re

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
