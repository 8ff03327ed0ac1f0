"""Names of ``tensorflow.python`` that moved or changed, and names of TensorFlow 1's ``tf`` that ``tf.compat.v1`` dropped.

What was removed: the first home of the names below, by TensorFlow 2.13 to 2.15 (2023), which split the large modules. The names
themselves are all still there. ``tf.pywrap_tensorflow`` and ``tf.config.experimental_list_devices``, with TensorFlow 2.0 (2019); TensorFlow still
has their implementation.

Needed by: tf-slim, the part of tf.contrib that was released until 2020, and scripts that import TensorFlow's own modules, read checkpoints by
``tf.pywrap_tensorflow.NewCheckpointReader`` or count the devices by name.
"""

import functools
import importlib
import pkgutil
from typing import Any

from tensorflow.python import pywrap_tensorflow
from tensorflow.python.eager import context
from tensorflow.python.framework import tensor_shape
from tensorflow.python.ops import resource_variable_ops, variable_v1
from tensorflow.python.util import tf_export

from estimator_bridge.legacy.restored.tensorflow_modules import api_version, load_public_modules

# Old module and module of today, both below tensorflow.python -> names that moved.
_MOVED = {
    ("data.ops.dataset_ops", "data.ops.options"): "AutotuneAlgorithm Options",
    ("distribute.distribute_lib", "distribute.distribute_utils"): "create_mirrored_variable",
    ("distribute.input_lib", "distribute.v1.input_lib"): "DatasetIterator DistributedDatasetV1 DistributedIteratorV1",
    ("distribute.values", "distribute.distribute_utils"): "is_distributed_variable regroup select_replica value_container",
    ("distribute.values", "distribute.ps_values"): "AggregatingVariable",
    ("distribute.values", "distribute.tpu_values"): "TPUMirroredVariable TPUSyncOnReadVariable TPUVariableMixin",
    ("eager.tape", "eager.record"): "could_possibly_record record_operation stop_recording",
    ("feature_column.feature_column_v2", "feature_column.feature_column_v2_types"): "FeatureColumn",
    ("framework.graph_util", "framework.convert_to_constants"): "convert_variables_to_constants",
    ("framework.graph_util_impl", "framework.convert_to_constants"): "convert_variables_to_constants",
    ("framework.ops", "framework.indexed_slices"): (
        "IndexedSlices IndexedSlicesValue convert_n_to_tensor_or_indexed_slices convert_to_tensor_or_indexed_slices "
        "internal_convert_n_to_tensor_or_indexed_slices internal_convert_to_tensor_or_indexed_slices"
    ),
    ("framework.ops", "framework.tensor"): "Tensor",
    ("framework.ops", "framework.tensor_conversion"): "convert_to_tensor_v2",
    ("framework.ops", "framework.tensor_conversion_registry"): "register_tensor_conversion_function",
    ("framework.tensor_util", "ops.shape_util"): "maybe_set_static_shape shape_tensor",
    ("ops.array_ops", "ops.array_ops_stack"): "stack unstack",
    ("ops.array_ops", "ops.math_ops"): "reduce_prod",
    ("ops.control_flow_ops", "ops.cond"): "cond cond_for_tf_v2",
    ("ops.control_flow_ops", "ops.control_flow_assert"): "Assert",
    ("ops.control_flow_ops", "ops.control_flow_case"): "case case_v2",
    ("ops.control_flow_ops", "ops.control_flow_switch_case"): "switch_case",
    ("ops.control_flow_ops", "ops.while_loop"): "while_loop while_loop_v2",
    ("ops.gradients_util", "eager.backprop_util"): "IsTrainable",
    ("ops.math_ops", "ops.clip_ops"): "clip_by_value",
    ("ops.nn_impl", "ops.nn_impl_distribute"): "compute_average_loss scale_regularization_loss",
    ("ops.random_ops", "ops.random_crop_ops"): "random_crop",
    ("ops.variable_scope", "ops.ref_variable"): "default_variable_creator",
    ("ops.variable_scope", "ops.resource_variables_toggle"): (
        "disable_resource_variables enable_resource_variables resource_variables_enabled"
    ),
    ("ops.variables", "ops.ref_variable"): "RefVariable default_variable_creator",
    ("ops.variables", "ops.variable_v1"): "VariableV1 is_variable_initialized",
    ("pywrap_tensorflow", "training.py_checkpoint_reader"): "NewCheckpointReader",
    ("saved_model.utils_impl", "saved_model.path_helpers"): (
        "get_assets_dir get_or_create_assets_dir get_or_create_variables_dir get_variables_dir get_variables_path"
    ),
    ("summary", "summary.summary"): "audio histogram image merge merge_all scalar tensor_summary text",
    (
        "trackable.autotrackable",
        "trackable.resource",
    ): "CapturableResource ResourceTracker TrackableResource resource_tracker_scope",
    ("trackable.base", "checkpoint.restore"): "CheckpointPosition",
}

# Old name -> module and name today, both below tensorflow.python, for what also has another name now.
_RENAMED = {
    "data.ops.iterator_ops.IteratorV2": "data.ops.iterator_ops:OwnedIterator",
    "data.util.nest.is_sequence": "data.util.nest:is_nested",
    "distribute.parameter_server_strategy.ParameterServerStrategy": "distribute.parameter_server_strategy:ParameterServerStrategyV1",
    "distribute.parameter_server_strategy.ParameterServerStrategyExtended": (
        "distribute.parameter_server_strategy:ParameterServerStrategyExtendedV1"
    ),
    "eager.context.VirtualDeviceConfiguration": "eager.context:LogicalDeviceConfiguration",
    "eager.function.defun": "eager.polymorphic_function.polymorphic_function:function",
    "ops.variable_scope.variable": "ops.variable_v1:VariableV1",  # a function of TensorFlow 1 that became the class
    "trackable.autotrackable.TrackableAsset": "trackable.asset:Asset",
    "util.nest.is_sequence": "util.nest:is_nested",
}

# Functions for a shape of so many dimensions.
_SHAPES = {"matrix": 2, "scalar": 0, "vector": 1}


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
    for old, new in moved_names().items():
        path, _, name = old.rpartition(".")
        module = importlib.import_module(f"tensorflow.python.{path}")
        if not hasattr(module, name):
            setattr(module, name, pkgutil.resolve_name(f"tensorflow.python.{new}"))
    if not hasattr(tf_export, "estimator_export"):
        tf_export.estimator_export = functools.partial(tf_export.api_export, api_name="estimator")
    for name, rank in _SHAPES.items():
        if not hasattr(tensor_shape, name):
            setattr(tensor_shape, name, functools.partial(_shape, name, rank))
    for api, module in load_public_modules().items():
        if api_version(api) == 1:
            setattr(module, "pywrap_tensorflow", pywrap_tensorflow)  # noqa: B010 -- mypy does not know the name
            setattr(module.config, "experimental_list_devices", experimental_list_devices)  # noqa: B010


def moved_names() -> dict[str, str]:
    """Returns each old name with the module and the name of today, both below ``tensorflow.python``.

    Example:
        >>> moved_names()["ops.array_ops.stack"]
        'ops.array_ops_stack:stack'
    """
    return _RENAMED | {f"{old}.{name}": f"{new}:{name}" for (old, new), names in _MOVED.items() for name in names.split()}


def _shape(name: str, rank: int, *dimensions: Any) -> Any:
    """Returns the shape that ``tensor_shape.scalar()``, ``vector(length)`` or ``matrix(rows, columns)`` returned."""
    if len(dimensions) != rank:
        raise TypeError(f"{name}() takes {rank} dimensions, received {len(dimensions)}")
    return tensor_shape.TensorShape(dimensions)


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
