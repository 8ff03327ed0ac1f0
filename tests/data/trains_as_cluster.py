"""A TensorFlow 1 script for a cluster, which the comparison of paths tests: ``trains_as_cluster.py MODEL_DIR MAX_STEPS [OPTION ...]``.

A linear model of noisy rows. Without an option its workers train asynchronously on parameter servers, each on batches of its own shuffle.
Options: ``in-step``: SyncReplicasOptimizer; ``mirrored``: MultiWorkerMirroredStrategy; ``drops``: dropout;
``fails``: workers raise an error in their input_fn;
``hangs``: it does not return; ``faster-on-the-modern-path``: a fault that a comparison has to find.
"""

import sys
import time
import traceback

import numpy as np
import tensorflow as tf

MODEL_DIR, MAX_STEPS, *OPTIONS = sys.argv[1:]
STRATEGY = tf.distribute.experimental.MultiWorkerMirroredStrategy() if "mirrored" in OPTIONS else None
CONFIG = tf.estimator.RunConfig(
    model_dir=MODEL_DIR, save_checkpoints_steps=1000, save_summary_steps=1000, train_distribute=STRATEGY
)
RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=[512, 4]).astype(np.float32)
Y = (X.dot([[1.0], [-2.0], [0.5], [3.0]]) + RANDOM.normal(size=[512, 1])).astype(np.float32)


def train_input_fn():
    if CONFIG.task_type == "worker" and "fails" in OPTIONS:
        raise ValueError("no such file: part-00000")
    if CONFIG.task_type == "worker" and "hangs" in OPTIONS:
        time.sleep(10000)
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).shuffle(512).repeat().batch(16)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(64)


def model_fn(features, labels, mode):
    kept = tf.layers.dropout(features["x"], 0.5, training="drops" in OPTIONS and mode == tf.estimator.ModeKeys.TRAIN)
    predictions = tf.layers.dense(kept, 1)
    loss = tf.losses.mean_squared_error(labels, predictions)
    if mode == tf.estimator.ModeKeys.EVAL:
        error = tf.metrics.mean_absolute_error(labels, predictions)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"error": error})
    step = tf.train.get_or_create_global_step()
    is_modern = any("estimator_bridge/modern/" in frame.filename for frame in traceback.extract_stack())
    is_faulty = "faster-on-the-modern-path" in OPTIONS and is_modern
    rate = tf.train.polynomial_decay(0.101 if is_faulty else 0.1, step, int(MAX_STEPS), 0.001)
    optimizer, hooks = tf.train.GradientDescentOptimizer(rate), []
    if "in-step" in OPTIONS:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, CONFIG.num_worker_replicas, CONFIG.num_worker_replicas)
        hooks.append(optimizer.make_session_run_hook(CONFIG.is_chief))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step), training_hooks=hooks)


tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=CONFIG),
    tf.estimator.TrainSpec(train_input_fn, max_steps=int(MAX_STEPS)),
    tf.estimator.EvalSpec(eval_input_fn, steps=None, start_delay_secs=0, throttle_secs=600),
)
