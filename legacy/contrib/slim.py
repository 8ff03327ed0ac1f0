"""``tf.contrib.slim``: tf-slim under its first name, with all of contrib.layers and what contrib.framework says of variables."""

# ruff: noqa: F405 -- names of the packages that are imported whole

from __future__ import annotations

import tf_slim
from tf_slim import *  # noqa: F403 -- __all__ says which
from tf_slim.nets import alexnet, inception, overfeat, resnet_utils, resnet_v1, resnet_v2, vgg

from estimator_bridge.legacy.contrib import layers, losses, metrics
from estimator_bridge.legacy.contrib.layers import *  # noqa: F403 -- contrib.slim has all of contrib.layers

__all__ = [
    "VariableDeviceChooser",
    "adaptive_clipping_fn",
    "add_arg_scope",
    "add_model_variable",
    "arg_scope",
    "arg_scope_func_key",
    "arg_scoped_arguments",
    "assert_global_step",
    "assert_or_get_global_step",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "bucketize",
    "create_global_step",
    "current_arg_scope",
    "data_decoder",
    "data_provider",
    "dataset",
    "dataset_data_provider",
    "evaluation",
    "filter_variables",
    "get_global_step",
    "get_local_variables",
    "get_model_variables",
    "get_or_create_global_step",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variable_full_name",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "global_variable",
    "has_arg_scope",
    "initializers",
    "learning",
    "local_variable",
    "losses",
    "metrics",
    "model_analyzer",
    "model_variable",
    "normalization",
    "optimizers",
    "parallel_reader",
    "pool",
    "prefetch_queue",
    "queues",
    "regularizers",
    "summarize_biases",
    "summarize_variables",
    "summarize_weights",
    "tfexample_decoder",
    "utils",
    "variable",
]
__all__ += layers.__all__

IN_FILES = {
    "alexnet": alexnet,
    "inception": inception,
    "overfeat": overfeat,
    "resnet_utils": resnet_utils,
    "resnet_v1": resnet_v1,
    "resnet_v2": resnet_v2,
    "vgg": vgg,
}

summaries = tf_slim.summaries  # not contrib.layers.summaries, which came with the rest
