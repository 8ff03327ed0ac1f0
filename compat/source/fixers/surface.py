"""Names of TensorFlow 1: those that TensorFlow 2 has too stay, the others are spelled below ``tf.compat.v1``."""

from __future__ import annotations

import functools
from pathlib import Path

import libcst as cst

from estimator_bridge.compat.source.fixers.script import Script
from estimator_bridge.compat.source.removed_names.numpy import REMOVED

_KEPT = Path(__file__).with_name("kept_names.txt")
_ALWAYS_KEPT = (
    "data.",
    "keras.losses.Reduction",
    "newaxis",
    "compat",
    "__version__",
    "distribute.",
    "TensorShape",
    "config.",
    "random.",
    "function",
)
"""Names whose object is another one in TensorFlow 2, and of which scripts use what both have."""
_KEPT_MODULES = ("keras", "keras.layers")
_STAY = ("contrib.", "estimator.")
_CSV = ("column_names", "column_defaults", "label_name", "select_columns", "field_delim", "use_quote_delim", "na_value", "header", "num_epochs",
        "shuffle", "shuffle_buffer_size", "shuffle_seed", "prefetch_buffer_size", "num_parallel_reads", "sloppy", "num_rows_for_inference")  # fmt: skip
_MAP_AND_BATCH = ("num_parallel_batches", "drop_remainder", "num_parallel_calls")
_BUCKETS = ("element_length_func", "bucket_boundaries", "bucket_batch_sizes", "padded_shapes", "padding_values", "pad_to_bucket_boundary",
            "no_padding")  # fmt: skip
_INTERLEAVE = ("block_length", "sloppy", "buffer_output_elements", "prefetch_input_elements")
SAME_CALLS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "abs": ("abs", 1, ("x", "name")),
    "argmax": ("argmax", 2, ("input", "axis", "output_type", "name")),
    "argmin": ("argmin", 2, ("input", "axis", "output_type", "name")),
    "boolean_mask": ("boolean_mask", 2, ("tensor", "name")),
    "contrib.data.Counter": ("data.experimental.Counter", 2, ("start", "step", "dtype")),
    "contrib.data.bucket_by_sequence_length": ("data.experimental.bucket_by_sequence_length", 3, _BUCKETS),
    "contrib.data.group_by_window": (
        "data.experimental.group_by_window",
        4,
        ("key_func", "reduce_func", "window_size", "window_size_func"),
    ),
    "contrib.data.ignore_errors": ("data.experimental.ignore_errors", 0, ()),
    "contrib.data.make_csv_dataset": ("data.experimental.make_csv_dataset", 2, ("file_pattern", "batch_size", *_CSV)),
    "contrib.data.map_and_batch": ("data.experimental.map_and_batch", 2, ("map_func", "batch_size", *_MAP_AND_BATCH)),
    "contrib.data.parallel_interleave": (
        "data.experimental.parallel_interleave",
        2,
        ("map_func", "cycle_length", *_INTERLEAVE),
    ),
    "contrib.data.sample_from_datasets": ("data.experimental.sample_from_datasets", 3, ("datasets", "weights", "seed")),
    "contrib.data.shuffle_and_repeat": ("data.experimental.shuffle_and_repeat", 3, ("buffer_size", "count", "seed")),
    "contrib.data.unbatch": ("data.experimental.unbatch", 0, ()),
    "contrib.distribute.has_distribution_strategy": ("distribute.has_strategy", 0, ()),
    "contrib.layers.l1_regularizer": ("keras.regularizers.L1", 1, ("scale",)),
    "contrib.layers.l2_regularizer": ("keras.regularizers.L2", 1, ("scale",)),
    "contrib.lookup.HashTable": ("lookup.StaticHashTable", 2, ("initializer", "default_value", "name")),
    "ceil": ("math.ceil", 1, ("x", "name")),
    "expand_dims": ("expand_dims", 2, ("input", "axis", "name")),
    "gather": ("gather", 2, ("params", "name")),
    "log": ("math.log", 1, ("x", "name")),
    "log_sigmoid": ("math.log_sigmoid", 1, ("x", "name")),
    "nn.leaky_relu": ("nn.leaky_relu", 2, ("features", "alpha", "name")),
    "nn.log_softmax": ("nn.log_softmax", 1, ("logits", "axis", "name")),
    "nn.softmax": ("nn.softmax", 1, ("logits", "axis", "name")),
    "ones_like": ("ones_like", 1, ("dtype", "name")),
    "pad": ("pad", 3, ("tensor", "mode", "name", "constant_values")),
    "py_func": ("numpy_function", 5, ("func", "inp", "Tout", "stateful", "name")),
    "random_normal": ("random.normal", 1, ("shape", "mean", "stddev", "dtype", "seed", "name")),
    "random_uniform": ("random.uniform", 1, ("shape", "minval", "maxval", "dtype", "seed", "name")),
    "reduce_all": ("reduce_all", 2, ("input_tensor", "axis", "name")),
    "reduce_any": ("reduce_any", 2, ("input_tensor", "axis", "name")),
    "reduce_logsumexp": ("reduce_logsumexp", 2, ("input_tensor", "axis", "name")),
    "reduce_max": ("reduce_max", 2, ("input_tensor", "axis", "name")),
    "reduce_mean": ("reduce_mean", 2, ("input_tensor", "axis", "name")),
    "reduce_min": ("reduce_min", 2, ("input_tensor", "axis", "name")),
    "reduce_prod": ("reduce_prod", 2, ("input_tensor", "axis", "name")),
    "reduce_sum": ("reduce_sum", 2, ("input_tensor", "axis", "name")),
    "set_random_seed": ("random.set_seed", 1, ("seed",)),
    "shape": ("shape", 1, ("input", "name")),
    "size": ("size", 1, ("input", "name")),
    "sparse_tensor_to_dense": ("sparse.to_dense", 1, ("sp_input", "default_value", "name")),
    "squeeze": ("squeeze", 2, ("input", "axis", "name")),
    "string_to_number": ("strings.to_number", 2, ("out_type", "name")),
    "tpu.bfloat16_scope": ("compat.v1.tpu.bfloat16_scope", 1, ("name",)),
    "tpu.cross_replica_sum": ("compat.v1.tpu.cross_replica_sum", 1, ("group_assignment", "name")),
    "transpose": ("transpose", 2, ("a", "perm", "name")),
    "zeros_like": ("zeros_like", 1, ("dtype", "name")),
}
"""Function of TensorFlow 1: its name in TensorFlow 2, and the positional arguments and keywords with which both compute the same."""


SAME_VALUES = {"contrib.data.AUTOTUNE": "data.AUTOTUNE"}
"""Value of TensorFlow 1: its name in TensorFlow 2."""


@functools.cache
def kept_names() -> frozenset[str]:
    """Returns the names below ``tf`` that mean the same object in both versions."""
    return frozenset(_KEPT.read_text().split())


def numpy_spelled(name: str) -> str | None:
    """Returns today's spelling of a name that NumPy removed.

    Args:
        name: Dotted name, e.g. ``numpy.int``.

    Returns:
        The name, below ``numpy.`` if it is one of NumPy's; empty if there is none; None if NumPy has the name.

    Example:
        >>> numpy_spelled("numpy.int"), numpy_spelled("numpy.float_"), numpy_spelled("numpy.npv"), numpy_spelled("numpy.sum")
        ('int', 'numpy.float64', '', None)
    """
    removed = REMOVED.get(name.removeprefix("numpy.")) if name.startswith("numpy.") else None
    if removed is None:
        return None
    target = removed.target
    return target.removeprefix("builtins.") if target.startswith(("builtins.", "numpy.")) else ""


def is_respelled(name: str, call: cst.Call | None) -> bool:
    """Returns True for a value, or a call with all its arguments, that TensorFlow 2 has under another name.

    Args:
        name: Name of the function, e.g. ``tensorflow.abs``.
        call: The call; None if the function is not called.
    """
    below = name.removeprefix("tensorflow.")
    row = SAME_CALLS.get(below)
    if row is None or call is None:
        return below in SAME_VALUES
    positional = [argument for argument in call.args if argument.keyword is None]
    keywords = {argument.keyword.value for argument in call.args if argument.keyword is not None}
    return len(positional) <= row[1] and not any(argument.star for argument in call.args) and keywords <= {*row[2]}


def spelled(script: Script, node: cst.Attribute, call: cst.Call | None) -> str | None:
    """Returns the spelling of a name of TensorFlow 1 in the new script.

    Args:
        script: Script around the node.
        node: The whole dotted name.
        call: Call of the name, if it is called.

    Returns:
        The dotted name below ``tf``, e.g. ``compat.v1.layers.dense``; None if it is no name of TensorFlow, or stays as it is.
    """
    name = script.name(node)
    if not name.startswith("tensorflow.") or name.startswith("tensorflow.python."):
        return None
    if is_respelled(name, call):
        below = name.removeprefix("tensorflow.")
        return SAME_VALUES.get(below) or SAME_CALLS[below][0]
    text, module = _spelling(name), script.module_behind(node)
    return None if module and text is not None and text.startswith(f"{_spelling(module)}.") else text


def _spelling(name: str) -> str | None:
    below = name.removeprefix("tensorflow.")
    if below.startswith(_STAY):
        return None
    kept = {below, below.rpartition(".")[0]} & kept_names()
    return below if kept or below.startswith(_ALWAYS_KEPT) or below in _KEPT_MODULES else f"compat.v1.{below}"
