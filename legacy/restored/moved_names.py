"""Names of ``tensorflow.python`` that moved or changed, and names of TensorFlow 1's ``tf`` that ``tf.compat.v1`` dropped.

What was removed: the first home of the names below, by TensorFlow 2.13 to 2.15 (2023), which split the large modules. The names
themselves are all still there. ``tf.pywrap_tensorflow`` and ``tf.config.experimental_list_devices``, with TensorFlow 2.0 (2019); TensorFlow still
has their implementation.

Needed by: tf-slim, the part of tf.contrib that was released until 2020, and scripts that import TensorFlow's own modules, read checkpoints by
``tf.pywrap_tensorflow.NewCheckpointReader`` or count the devices by name.
"""

import importlib
import pkgutil

from tensorflow.python import pywrap_tensorflow
from tensorflow.python.eager import context
from tensorflow.python.ops import resource_variable_ops, variable_v1

from estimator_bridge.legacy.restored.tensorflow_modules import api_version, load_public_modules

# Old name: module and name today, below tensorflow.python.
_MOVED = {
    "framework.ops.IndexedSlices": "framework.indexed_slices:IndexedSlices",
    "framework.ops.Tensor": "framework.tensor:Tensor",
    "ops.array_ops.stack": "ops.array_ops_stack:stack",
    "ops.array_ops.unstack": "ops.array_ops_stack:unstack",
    "ops.control_flow_ops.Assert": "ops.control_flow_assert:Assert",
    "ops.control_flow_ops.case": "ops.control_flow_case:case",
    "ops.control_flow_ops.cond": "ops.cond:cond",
    "ops.control_flow_ops.while_loop": "ops.while_loop:while_loop",
    "ops.variable_scope.disable_resource_variables": "ops.resource_variables_toggle:disable_resource_variables",
    "ops.variable_scope.enable_resource_variables": "ops.resource_variables_toggle:enable_resource_variables",
    "ops.variable_scope.resource_variables_enabled": "ops.resource_variables_toggle:resource_variables_enabled",
    "ops.variable_scope.variable": "ops.variable_v1:VariableV1",  # a function of TensorFlow 1 that became the class
    "pywrap_tensorflow.NewCheckpointReader": "training.py_checkpoint_reader:NewCheckpointReader",
    "util.nest.is_sequence": "util.nest:is_nested",
}


def restore() -> None:
    """Adds the names to the modules where TensorFlow 1 had them, and to TensorFlow 1's API.

    Example:
        >>> restore()
        >>> import tensorflow as tf
        >>> from tensorflow.python.framework import ops
        >>> ops.Tensor is tf.Tensor
        True
        >>> tf.compat.v1.config.experimental_list_devices()
        ['/job:localhost/replica:0/task:0/device:CPU:0'...]
        >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        ...     weight = tf.compat.v1.Variable(2.0, use_resource=True)
        ...     float(session.run(weight.initialized_value()))
        2.0
    """
    resource_variable_ops.BaseResourceVariable.initialized_value = variable_v1.VariableV1.initialized_value
    for old, new in _MOVED.items():
        path, _, name = old.rpartition(".")
        module = importlib.import_module(f"tensorflow.python.{path}")
        if not hasattr(module, name):
            setattr(module, name, pkgutil.resolve_name(f"tensorflow.python.{new}"))
    for api, module in load_public_modules().items():
        if api_version(api) == 1:
            setattr(module, "pywrap_tensorflow", pywrap_tensorflow)  # noqa: B010 -- mypy does not know the name
            setattr(module.config, "experimental_list_devices", experimental_list_devices)  # noqa: B010


def experimental_list_devices() -> list[str]:
    """Returns the full names of the devices of this process.

    Returns:
        One name a device.

    Example:
        >>> experimental_list_devices()[0]
        '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    context.ensure_initialized()
    return list(context.context().devices())
