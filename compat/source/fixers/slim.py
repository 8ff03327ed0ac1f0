"""Names of ``tf.contrib`` that the package tf_slim has, for model functions that stay graphs of TensorFlow 1."""

from __future__ import annotations

import functools
from pathlib import Path

_TABLE = Path(__file__).with_name("tf_slim_names.txt")
SLIM = "tf_slim_of_today"
"""Function of the new script that returns the package with the names of TensorFlow that it asks for."""


def in_slim(name: str) -> str:
    """Returns what the package tf_slim calls a function of contrib; empty if it has none that computes the same in a graph.

    Example:
        >>> in_slim("tensorflow.contrib.layers.separable_conv2d"), in_slim("tensorflow.contrib.slim.arg_scope")
        ('tf_slim.separable_conv2d', 'tf_slim.arg_scope')
        >>> in_slim("tensorflow.contrib.metrics.streaming_mean"), in_slim("tensorflow.contrib.seq2seq.tile_batch")
        ('tf_slim.metrics.streaming_mean', '')
    """
    return _names().get(name.removeprefix("tensorflow.contrib."), "")


@functools.cache
def _names() -> dict[str, str]:
    rows = (line.partition(": ") for line in _TABLE.read_text().splitlines())
    names = {module: names.split() for module, _, names in rows}
    shared = {"layers", "framework"}  # contrib.slim has their names, too
    found = {f"{module}.{name}": f"tf_slim.{name}" for module in shared for name in names[module]}
    found |= {f"slim.{name}": f"tf_slim.{name}" for module in shared for name in names[module]}
    for module in names.keys() - shared:
        found |= {f"{module}.{name}": f"tf_slim.{module.removeprefix('slim.')}.{name}" for name in names[module]}
        found |= {f"slim.{module}.{name}": f"tf_slim.{module}.{name}" for name in names[module] if "." not in module}
    return found
