"""``tf.contrib.estimator``: two heads, and what had moved to ``tf.estimator`` by TensorFlow 1.15 under its earlier names."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator.early_stopping import read_eval_metrics

from estimator_bridge.legacy.contrib.estimator.clipping import clip_gradients_by_norm
from estimator_bridge.legacy.contrib.estimator.heads import binary_classification_head, multi_class_head

__all__ = [
    "DNNEstimator",
    "DNNLinearCombinedEstimator",
    "InMemoryEvaluatorHook",
    "LinearEstimator",
    "add_metrics",
    "binary_classification_head",
    "build_raw_supervised_input_receiver_fn",
    "call_logit_fn",
    "clip_gradients_by_norm",
    "dnn_logit_fn_builder",
    "linear_logit_fn_builder",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "multi_class_head",
    "read_eval_metrics",
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
