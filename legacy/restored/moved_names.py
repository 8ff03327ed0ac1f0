"""Names of ``tensorflow.python`` that moved from one module to another, or changed.

What was removed: the first home of the names below, by TensorFlow 2.13 to 2.15 (2023), which split the large modules. The names
themselves are all still there.

Needed by: tf-slim, the part of tf.contrib that was released until 2020, and scripts that import TensorFlow's own modules.
"""

from __future__ import annotations

import importlib

# Old module: names and the modules where they are now, below tensorflow.python.
_MOVED = {
    "framework.ops": {"IndexedSlices": "framework.indexed_slices", "Tensor": "framework.tensor"},
    "ops.array_ops": {"stack": "ops.array_ops_stack", "unstack": "ops.array_ops_stack"},
    "ops.control_flow_ops": {
        "Assert": "ops.control_flow_assert",
        "case": "ops.control_flow_case",
        "cond": "ops.cond",
        "while_loop": "ops.while_loop",
    },
    "ops.variable_scope": {
        "disable_resource_variables": "ops.resource_variables_toggle",
        "enable_resource_variables": "ops.resource_variables_toggle",
        "resource_variables_enabled": "ops.resource_variables_toggle",
    },
    "pywrap_tensorflow": {"NewCheckpointReader": "training.py_checkpoint_reader"},
}

# Names that have changed, too.
_RENAMED = {
    ("ops.variable_scope", "variable"): ("ops.variable_v1", "VariableV1"),  # a function of TensorFlow 1 that became the class
    ("util.nest", "is_sequence"): ("util.nest", "is_nested"),
}


def restore() -> None:
    """Adds the names to the modules where TensorFlow 1 had them, unless they are there.

    Example:
        >>> restore()
        >>> import tensorflow as tf
        >>> from tensorflow.python.framework import ops
        >>> ops.Tensor is tf.Tensor
        True
    """
    moved = {(old, name): (new, name) for old, names in _MOVED.items() for name, new in names.items()}
    for (old, old_name), (new, new_name) in (moved | _RENAMED).items():
        module = importlib.import_module(f"tensorflow.python.{old}")
        if not hasattr(module, old_name):
            setattr(module, old_name, getattr(importlib.import_module(f"tensorflow.python.{new}"), new_name))
