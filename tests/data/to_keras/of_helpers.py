"""An object that a helper of the model function makes, whose constructor has the whole network: get_variable, loops in scopes, a copied config."""

import copy
import sys

import numpy as np
import tensorflow as tf

CHECKPOINT = sys.argv[1] if len(sys.argv) > 1 else None


class Config(object):
    def __init__(self):
        self.words, self.units, self.heads, self.blocks = 20, 8, 2, 2
        self.rate = 0.1
        self.spread = 0.1


def drawn(spread):
    return tf.truncated_normal_initializer(stddev=spread)


def sizes(tensor, name=None):
    if name is None:
        name = tf.get_variable_scope().name
    if tensor.shape.ndims < 2:
        raise ValueError("%s has too few dimensions" % name)
    return [static if static is not None else tf.shape(tensor)[place] for place, static in enumerate(tensor.shape.as_list())]


def normalized(net, name=None):
    return tf.contrib.layers.layer_norm(inputs=net, begin_norm_axis=-1, begin_params_axis=-1, scope=name)


def dropped(net, rate):
    return net if rate is None or rate == 0.0 else tf.nn.dropout(net, 1.0 - rate)


def attended(net, heads, size, spread):
    query = tf.layers.dense(net, heads * size, name="query", kernel_initializer=drawn(spread))
    key = tf.layers.dense(net, heads * size, name="key", kernel_initializer=drawn(spread))
    scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / np.sqrt(size))
    return tf.matmul(scores, net)


class Encoder(object):
    """Two blocks over words; only one of the methods is called."""

    def __init__(self, config, is_training, words, scope=None):
        super(Encoder, self).__init__()
        config = copy.deepcopy(config)
        if not is_training:
            config.rate = 0.0
        length = sizes(words)[1]
        with tf.variable_scope(scope, default_name="encoder"):
            with tf.variable_scope("words"):
                table = tf.get_variable("table", [config.words, config.units], initializer=drawn(config.spread))
                net = tf.nn.embedding_lookup(table, words)
                check = tf.assert_less_equal(length, 10)
                with tf.control_dependencies([check]):
                    places = tf.get_variable("places", [10, config.units], initializer=drawn(config.spread))
                    net += tf.slice(places, [0, 0], [length, -1])
                net = dropped(normalized(net), config.rate)
            if config.units % config.heads != 0:
                raise ValueError("The units are no multiple of the heads")
            for block in range(config.blocks):
                with tf.variable_scope("block_%d" % block):
                    with tf.variable_scope("self"):
                        answer = attended(net, heads=config.heads, size=int(config.units / config.heads), spread=config.spread)
                    with tf.variable_scope("output"):
                        answer = tf.layers.dense(answer, config.units, kernel_initializer=drawn(config.spread))
                        net = normalized(dropped(answer, config.rate) + net)
            self.sequence = net
            with tf.variable_scope("first"):
                self.first = tf.layers.dense(tf.squeeze(net[:, 0:1, :], axis=1), config.units, activation=tf.tanh)

    def get_first(self):
        return self.first

    def get_sequence(self):
        return self.sequence


def created(config, is_training, words, labels, classes):
    """Returns the loss and the logits."""
    model = Encoder(config, is_training, words)
    answer = model.get_first()
    weights = tf.get_variable("weights", [classes, answer.shape[-1].value], initializer=drawn(0.1))
    logits = tf.matmul(answer, weights, transpose_b=True)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return loss, logits


def model_fn(features, labels, mode, params):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    loss, logits = created(params["config"], is_training, features["words"], features["class"], 3)
    if params["checkpoint"]:
        tf.train.init_from_checkpoint(params["checkpoint"], {"old/": "encoder/block_1/output/"})
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(features["class"], tf.argmax(logits, axis=-1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    optimizer = tf.train.AdamOptimizer(0.001)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train_op = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    words = np.random.RandomState(5).randint(0, 20, size=(64, 6)).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices({"words": words, "class": words[:, 0] % 3}).repeat(4).batch(16)


estimator = tf.estimator.Estimator(model_fn, "model", params={"config": Config(), "checkpoint": CHECKPOINT})
estimator.train(input_fn, steps=15)
print("metrics:", sorted(estimator.evaluate(input_fn, steps=4)))
print(len(list(estimator.predict(input_fn))), "predictions")
