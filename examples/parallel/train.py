"""Trains a small transformer on made-up sentences, with the optimizer of BERT: decay of the weights, clipping by the global norm.

A TensorFlow 1 program as such programs were written in 2018 and 2019. It needs tensorflow 1.15 alone:

    python train.py --train_steps=100

Each sentence has between 12 and 24 words of a vocabulary of 500. Its label says whether more words come from the second half of the
vocabulary than from the first. A hundred steps take about ten seconds on a CPU.
"""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import tempfile

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Where checkpoints and summaries go. Default: a new temporary folder.")
flags.DEFINE_integer("train_steps", 100, "Number of training steps in total.")
flags.DEFINE_integer("batch_size", 64, "Sentences per training step.")
flags.DEFINE_integer("num_layers", 2, "Layers of the transformer.")
flags.DEFINE_integer("hidden_size", 64, "Units of each layer.")
flags.DEFINE_float("learning_rate", 1e-3, "Learning rate at the first step; it falls to zero by the last.")
flags.DEFINE_float("dropout", 0.0, "Part of the units that a layer drops.")
flags.DEFINE_integer("log_steps", 10, "Log the loss every so many steps.")
flags.DEFINE_integer("seed", 7, "Seed of the sentences and of the initial weights.")

VOCABULARY = 500
LENGTH = 24
HEADS = 4
NUM_SENTENCES = 4096


def make_sentences(seed):
    """Returns ({"words": ids, "mask": 1 where there is a word}, labels)."""
    random = np.random.RandomState(seed)
    lengths = random.randint(LENGTH // 2, LENGTH + 1, size=[NUM_SENTENCES, 1])
    mask = (np.arange(LENGTH)[np.newaxis] < lengths).astype(np.int32)
    words = random.randint(1, VOCABULARY, size=[NUM_SENTENCES, LENGTH]).astype(np.int32) * mask
    second_half = np.sum(words >= VOCABULARY // 2, axis=1)
    return {"words": words, "mask": mask}, (2 * second_half > lengths[:, 0]).astype(np.int32)


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam without correction of the bias, and with a decay of the weights that does not pass through its moments."""

    def __init__(self, learning_rate, weight_decay_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
        super(AdamWeightDecayOptimizer, self).__init__(False, "AdamWeightDecayOptimizer")
        self.learning_rate = learning_rate
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None:
                continue
            name = param.op.name
            zeros = tf.zeros_initializer()
            m = tf.get_variable(name + "/adam_m", shape=param.shape.as_list(), trainable=False, initializer=zeros)
            v = tf.get_variable(name + "/adam_v", shape=param.shape.as_list(), trainable=False, initializer=zeros)
            next_m = tf.multiply(self.beta_1, m) + tf.multiply(1.0 - self.beta_1, grad)
            next_v = tf.multiply(self.beta_2, v) + tf.multiply(1.0 - self.beta_2, tf.square(grad))
            update = next_m / (tf.sqrt(next_v) + self.epsilon)
            if "norm" not in name and "bias" not in name:
                update += self.weight_decay_rate * param
            next_param = param - self.learning_rate * update
            assignments.extend([param.assign(next_param), m.assign(next_m), v.assign(next_v)])
        return tf.group(*assignments, name=name)


def make_train_op(loss, learning_rate, num_steps):
    """Counts the step after the update, as BERT does."""
    global_step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(learning_rate, global_step, num_steps, end_learning_rate=0.0)
    optimizer = AdamWeightDecayOptimizer(rate)
    weights = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, weights), clip_norm=1.0)
    tf.summary.scalar("global_norm", norm)
    train_op = optimizer.apply_gradients(zip(gradients, weights))
    with tf.control_dependencies([train_op]):
        return global_step.assign(global_step + 1)


def normalized(net, name):
    with tf.variable_scope(name):
        size = net.shape[-1]
        scale = tf.get_variable("scale", [size], initializer=tf.ones_initializer())
        offset = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(net, [-1], keep_dims=True)
        return (net - mean) * tf.rsqrt(variance + 1e-6) * scale + offset


def model_fn(features, labels, mode, params):
    hidden, seed = params["hidden_size"], params["seed"]
    count = [seed]

    def initializer():
        count[0] += 1
        return tf.truncated_normal_initializer(stddev=0.05, seed=count[0])

    def dense(net, units, name, activation=None):
        return tf.layers.dense(net, units, activation=activation, kernel_initializer=initializer(), name=name)

    def dropped(net):
        rate = params["dropout"] if mode == tf.estimator.ModeKeys.TRAIN else 0.0
        return tf.nn.dropout(net, rate=rate) if rate else net

    with tf.variable_scope("embeddings"):
        table = tf.get_variable("words", [VOCABULARY, hidden], initializer=initializer())
        places = tf.get_variable("places", [LENGTH, hidden], initializer=initializer())
        net = dropped(normalized(tf.nn.embedding_lookup(table, features["words"]) + places, "norm"))

    unseen = (1.0 - tf.cast(features["mask"][:, tf.newaxis, tf.newaxis, :], tf.float32)) * -10000.0
    for layer in range(params["num_layers"]):
        with tf.variable_scope("layer_%d" % layer):
            def heads(name, net=net):
                split = tf.reshape(dense(net, hidden, name), [-1, LENGTH, HEADS, hidden // HEADS])
                return tf.transpose(split, [0, 2, 1, 3])

            query, key, value = heads("query"), heads("key"), heads("value")
            scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(hidden // HEADS).astype(np.float32)
            attended = tf.matmul(dropped(tf.nn.softmax(scores + unseen)), value)
            attended = tf.reshape(tf.transpose(attended, [0, 2, 1, 3]), [-1, LENGTH, hidden])
            net = normalized(net + dropped(dense(attended, hidden, "output")), "attention_norm")
            inner = dense(net, 4 * hidden, "inner", tf.nn.relu)
            net = normalized(net + dropped(dense(inner, hidden, "outer")), "norm")

    logits = dense(dense(net[:, 0], hidden, "pooler", tf.tanh), 2, "logits")
    log_probabilities = tf.nn.log_softmax(logits)
    losses = -tf.reduce_sum(tf.one_hot(labels, 2) * log_probabilities, axis=-1)
    loss = tf.reduce_mean(losses)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    train_op = make_train_op(loss, params["learning_rate"], params["num_steps"])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    train, test = make_sentences(FLAGS.seed), make_sentences(FLAGS.seed + 1)

    def train_input_fn():
        dataset = tf.data.Dataset.from_tensor_slices(train).repeat()
        return dataset.batch(FLAGS.batch_size, drop_remainder=True).prefetch(2)

    def eval_input_fn():
        return tf.data.Dataset.from_tensor_slices(test).batch(256)

    config = tf.estimator.RunConfig(
        model_dir=FLAGS.model_dir or tempfile.mkdtemp(prefix="sentences-"),
        tf_random_seed=FLAGS.seed,
        save_summary_steps=20,
        log_step_count_steps=FLAGS.log_steps)
    params = {
        "num_layers": FLAGS.num_layers,
        "hidden_size": FLAGS.hidden_size,
        "learning_rate": FLAGS.learning_rate,
        "dropout": FLAGS.dropout,
        "num_steps": FLAGS.train_steps,
        "seed": FLAGS.seed,
    }
    estimator = tf.estimator.Estimator(model_fn, params=params, config=config)
    estimator.train(train_input_fn, max_steps=FLAGS.train_steps)
    metrics = estimator.evaluate(eval_input_fn)
    print("Test accuracy after {} steps: {:.4f}".format(metrics["global_step"], metrics["accuracy"]))


if __name__ == "__main__":
    tf.app.run(main)
