"""A TensorFlow 1 script with parameter servers: ``parameter_servers.py MODEL_DIR MAX_STEPS NOTES [OPTION ...]``.

Every task leaves in NOTES its process id and what its input_fn saw. Options: ``slow``: ten milliseconds a batch, from Python;
``chief-only``: workers have no batches; ``hook``: a session hook that sees each of the chief's steps; ``alone``: no cluster, and
MAX_STEPS may be several numbers, with commas between them.
"""

import os
import sys
import time

import numpy as np
import tensorflow as tf

MODEL_DIR, MAX_STEPS, NOTES, *OPTIONS = sys.argv[1:]
CONFIG = tf.estimator.RunConfig(model_dir=MODEL_DIR, tf_random_seed=1, save_checkpoints_steps=100, save_summary_steps=20)
TASK = "%s-%d" % (CONFIG.task_type, CONFIG.task_id)
RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=[48, 3]).astype(np.float32)
Y = X.sum(1, keepdims=True)
WORDS = np.array(["a", "b", "c", "d", "e", "f"], object)[RANDOM.randint(0, 6, size=[48, 4])]


def note(name, text):
    with open(os.path.join(NOTES, "%s-%s" % (TASK, name)), "a") as file:
        file.write("%s\n" % text)


class Seen(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs([tf.train.get_global_step(), tf.get_default_graph().get_tensor_by_name("mean_loss:0")])

    def after_run(self, run_context, run_values):
        note("steps", "%d %f" % tuple(run_values.results))


def input_fn():
    note("input", "%s of %s" % (CONFIG.global_id_in_cluster, CONFIG.num_worker_replicas))
    dataset = tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, Y)).repeat().batch(8)
    if "slow" in OPTIONS:
        dataset = dataset.map(lambda features, labels: (features, tf.py_func(wait, [labels], tf.float32)))
        dataset = dataset.map(lambda features, labels: (features, tf.reshape(labels, [-1, 1])))
    return dataset.take(0) if "chief-only" in OPTIONS and CONFIG.task_type == "worker" else dataset


def wait(labels):
    time.sleep(0.01)
    note("batches", "")
    return labels


def model_fn(features, labels, mode):
    table = tf.contrib.lookup.index_table_from_tensor(list("abcdef"))
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        embedding = tf.get_variable("embedding", [6, 5], initializer=tf.random_normal_initializer(seed=3))
        words = tf.nn.embedding_lookup(embedding, table.lookup(features["words"]), partition_strategy="div")
        both = tf.concat([features["x"], tf.reduce_mean(words, 1)], 1)
        hidden = tf.layers.dense(both, 6, tf.nn.tanh, kernel_initializer=tf.glorot_uniform_initializer(seed=5))
    predictions = tf.layers.dense(hidden, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=6))
    loss = tf.identity(tf.losses.mean_squared_error(labels, predictions), "mean_loss")
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean": tf.metrics.mean(predictions)})
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.02, step, 20, 0.9)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.AdamOptimizer(rate).minimize(loss, step))


def main():
    note("pid", os.getpid())
    estimator = tf.estimator.Estimator(model_fn, config=CONFIG)
    hooks = [Seen()] if "hook" in OPTIONS else []
    if "alone" in OPTIONS:
        for max_steps in MAX_STEPS.split(","):
            estimator.train(input_fn, max_steps=int(max_steps), hooks=hooks)
        return
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=int(MAX_STEPS), hooks=hooks)
    tf.estimator.train_and_evaluate(
        estimator, train_spec, tf.estimator.EvalSpec(input_fn, 2, start_delay_secs=0, throttle_secs=0)
    )


main()
