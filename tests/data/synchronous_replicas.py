"""A TensorFlow 1 script with SyncReplicasOptimizer: ``synchronous_replicas.py MODEL_DIR NOTES MAX_STEPS``.

Each task trains on the batches of its own number; dense and sparse gradients, a rate that decays. The chief leaves its losses in NOTES.
"""

import os
import sys

import numpy as np
import tensorflow as tf

MODEL_DIR, NOTES, MAX_STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3])
CONFIG = tf.estimator.RunConfig(model_dir=MODEL_DIR, tf_random_seed=1, save_checkpoints_steps=1000, save_summary_steps=5)
RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=[96, 3]).astype(np.float32)
IDS = np.stack([RANDOM.permutation(6)[:1] for _ in range(96)])
Y = X.sum(1, keepdims=True)
KERNEL = RANDOM.normal(size=[3, 2]).astype(np.float32)
TABLE = RANDOM.normal(size=[6, 2]).astype(np.float32)


class Losses(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_default_graph().get_tensor_by_name("the_loss:0"))

    def after_run(self, run_context, run_values):
        with open(os.path.join(NOTES, CONFIG.task_type + str(CONFIG.task_id)), "a") as file:
            file.write("%.9g\n" % run_values.results)


def input_fn():
    dataset = tf.data.Dataset.from_tensor_slices(({"x": X, "ids": IDS}, Y)).repeat().batch(4)
    return dataset.shard(CONFIG.num_worker_replicas, CONFIG.global_id_in_cluster)


def model_fn(features, labels, mode):
    dense = tf.layers.dense(features["x"], 2, tf.tanh, kernel_initializer=tf.constant_initializer(KERNEL), name="dense")
    table = tf.get_variable("table", initializer=TABLE)
    used = tf.sort(tf.unique(tf.reshape(features["ids"], [-1]))[0])  # accumulators take unsorted rows for several
    rows = tf.nn.embedding_lookup(table, used)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(dense, 1, keepdims=True) + tf.reduce_sum(tf.square(rows)) * 0.1 - labels))
    loss = tf.identity(loss, "the_loss")
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    step = tf.train.get_or_create_global_step()
    replicas = CONFIG.num_worker_replicas
    optimizer = tf.train.MomentumOptimizer(tf.train.exponential_decay(0.1, step, 2, 0.9), 0.9)
    optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=replicas, total_num_replicas=replicas)
    train_op = optimizer.minimize(loss, step)
    hooks = [optimizer.make_session_run_hook(CONFIG.is_chief), Losses()]
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)


tf.logging.set_verbosity("INFO")
estimator = tf.estimator.Estimator(model_fn, config=CONFIG)
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=MAX_STEPS)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(input_fn, 2, start_delay_secs=0, throttle_secs=0))
