"""``tf.contrib.estimator``: heads, towers, hooks and extenders around ``tf.estimator``.

The names that had moved to ``tf.estimator`` by TensorFlow 1.15 are offered under their earlier names, too.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator.canned.saved_model_estimator import SavedModelEstimator
from tensorflow_estimator.python.estimator.early_stopping import read_eval_metrics
from tensorflow_estimator.python.estimator.export.export import build_supervised_input_receiver_fn_from_input_fn

from estimator_bridge.legacy.contrib.estimator.exports import export_all_saved_models, export_saved_model_for_mode
from estimator_bridge.legacy.contrib.estimator.extenders import clip_gradients_by_norm, forward_features
from estimator_bridge.legacy.contrib.estimator.heads import (
    binary_classification_head,
    logistic_regression_head,
    multi_class_head,
    poisson_regression_head,
    regression_head,
)
from estimator_bridge.legacy.contrib.estimator.multi_head import multi_head
from estimator_bridge.legacy.contrib.estimator.multi_label import multi_label_head
from estimator_bridge.legacy.contrib.estimator.towers import TowerOptimizer, replicate_model_fn

__all__ = [
    "DNNEstimator",
    "DNNLinearCombinedEstimator",
    "InMemoryEvaluatorHook",
    "LinearEstimator",
    "SavedModelEstimator",
    "TowerOptimizer",
    "add_metrics",
    "binary_classification_head",
    "build_raw_supervised_input_receiver_fn",
    "build_supervised_input_receiver_fn_from_input_fn",
    "call_logit_fn",
    "clip_gradients_by_norm",
    "dnn_logit_fn_builder",
    "export_all_saved_models",
    "export_saved_model_for_mode",
    "forward_features",
    "linear_logit_fn_builder",
    "logistic_regression_head",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "multi_class_head",
    "multi_head",
    "multi_label_head",
    "poisson_regression_head",
    "read_eval_metrics",
    "regression_head",
    "replicate_model_fn",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]

DNNEstimator = tf.estimator.DNNEstimator
DNNLinearCombinedEstimator = tf.estimator.DNNLinearCombinedEstimator
InMemoryEvaluatorHook = tf.estimator.experimental.InMemoryEvaluatorHook
LinearEstimator = tf.estimator.LinearEstimator
add_metrics = tf.estimator.add_metrics
build_raw_supervised_input_receiver_fn = tf.estimator.experimental.build_raw_supervised_input_receiver_fn
call_logit_fn = tf.estimator.experimental.call_logit_fn
dnn_logit_fn_builder = tf.estimator.experimental.dnn_logit_fn_builder
linear_logit_fn_builder = tf.estimator.experimental.linear_logit_fn_builder
make_early_stopping_hook = tf.estimator.experimental.make_early_stopping_hook
make_stop_at_checkpoint_step_hook = tf.estimator.experimental.make_stop_at_checkpoint_step_hook
stop_if_higher_hook = tf.estimator.experimental.stop_if_higher_hook
stop_if_lower_hook = tf.estimator.experimental.stop_if_lower_hook
stop_if_no_decrease_hook = tf.estimator.experimental.stop_if_no_decrease_hook
stop_if_no_increase_hook = tf.estimator.experimental.stop_if_no_increase_hook
