"""Names of ``tensorflow.python`` that moved from one module to another.

What was removed: the first home of the names below, by TensorFlow 2.13 to 2.15 (2023), which split the large modules. The names
themselves are all still there.

Who needs it: tf-slim, last released in 2020 and the kept half of tf.contrib, and scripts that import TensorFlow's own modules.
"""

from __future__ import annotations

import importlib
from typing import Any

# The first module: each name and the module where it is now, below tensorflow.python.
_MOVED = {
    "framework.ops": {"IndexedSlices": "framework.indexed_slices", "Tensor": "framework.tensor"},
    "ops.array_ops": {"stack": "ops.array_ops_stack", "unstack": "ops.array_ops_stack"},
    "ops.control_flow_ops": {
        "Assert": "ops.control_flow_assert",
        "case": "ops.control_flow_case",
        "cond": "ops.cond",
        "while_loop": "ops.while_loop",
    },
    "pywrap_tensorflow": {"NewCheckpointReader": "training.py_checkpoint_reader"},
}


def restore() -> None:
    """Answer to the names in the modules where TensorFlow 1 had them.

    Returns:
        Nothing; the modules have the names, unless they have them still.

    Example:
        >>> restore()
        >>> import tensorflow as tf
        >>> from tensorflow.python.framework import ops
        >>> ops.Tensor is tf.Tensor
        True
    """
    for module, names in _MOVED.items():
        old = importlib.import_module(f"tensorflow.python.{module}")
        for name, home in names.items():
            if not hasattr(old, name):
                setattr(old, name, getattr(importlib.import_module(f"tensorflow.python.{home}"), name))
    variable_scope: Any = importlib.import_module("tensorflow.python.ops.variable_scope")
    if not hasattr(variable_scope, "variable"):  # a function of TensorFlow 1 that became the class
        variable_scope.variable = importlib.import_module("tensorflow.python.ops.variable_v1").VariableV1
