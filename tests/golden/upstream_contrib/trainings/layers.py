"""Layers, feature columns, regularizers and ``optimize_loss`` of contrib.layers, and contrib.framework's scopes."""

import tensorflow as tf
from job import TRAIN, VARIANT, config, inputs, normal, run, whole
from tensorflow.contrib import layers
from tensorflow.contrib.framework import add_arg_scope, arg_scope
from tensorflow.contrib.layers.python.layers import optimizers


@add_arg_scope
def block(x, units, scale=1.0, is_training=False):
    """A layer of the script's own that takes part in scopes."""
    with tf.variable_scope(None, "block"):
        x = layers.fully_connected(x, units) * scale
        return layers.dropout(x, 0.8, is_training=is_training, seed=31)


def images(x, is_training):
    """Convolutions and normalizations."""
    normalizer = {"is_training": is_training, "decay": 0.9, "scale": True, "updates_collections": None}
    with arg_scope([layers.conv2d, layers.separable_conv2d], normalizer_fn=layers.batch_norm, normalizer_params=normalizer):
        x = layers.conv2d(x, 4, 3, weights_regularizer=layers.l2_regularizer(0.01), scope="first")
        x = layers.separable_conv2d(x, 4, 3, depth_multiplier=2, stride=2, scope="second")
    x = layers.conv2d_transpose(x, 4, 2, stride=2, activation_fn=tf.nn.elu, scope="third")
    x = layers.group_norm(x, groups=2) + layers.instance_norm(x) + layers.layer_norm(x)
    x = layers.conv2d_in_plane(x, [2, 2]) + layers.maxout(layers.conv2d(x, 8, 1), 4)
    x = layers.batch_norm(x, is_training=is_training, fused=True, decay=0.8)
    x = layers.gdn(x) + layers.repeat(x, 2, layers.conv2d, 4, 3, scope="repeated")
    return tf.concat([layers.spatial_softmax(x), layers.flatten(layers.avg_pool2d(layers.max_pool2d(x, 2), 2))], 1)


def columns(features):
    """contrib's own feature columns."""
    word = layers.sparse_column_with_hash_bucket("word", 20)
    number = layers.real_valued_column("number")
    bucket = layers.bucketized_column(number, [-0.5, 0.0, 0.5])
    known = layers.sparse_column_with_keys("word", ["a", "b", "c"])
    given = {"word": features["word"], "number": features["number"]}
    deep = layers.input_from_feature_columns(
        dict(given), [number, bucket, layers.one_hot_column(known), layers.embedding_column(word, 3, combiner="sqrtn")]
    )
    wide, _, _ = layers.weighted_sum_from_feature_columns(
        dict(given), [bucket, word, layers.crossed_column([word, bucket], 30)], num_outputs=1
    )
    return deep, wide


def words(ids):
    """Embeddings of words."""
    bag = layers.bow_encoder(ids, 9, 3, scope="bag")
    return tf.concat([bag, tf.reduce_max(layers.embed_sequence(ids, 9, 3, scope="sequence"), 1)], 1)


def model_fn(features, labels, mode):
    """A sum of all of it."""
    is_training = mode == TRAIN
    deep, wide = columns(features)
    x = tf.concat([images(features["image"], is_training), deep, words(features["ids"])], 1)
    with (
        arg_scope([layers.fully_connected], activation_fn=tf.nn.tanh, weights_regularizer=layers.l1_l2_regularizer(0.01, 0.02)),
        arg_scope([block], is_training=is_training, scale=0.7),
    ):
        x = layers.stack(block(x, 6), layers.fully_connected, [5, 4], scope="stack")
    logits = layers.linear(layers.unit_norm(x, 1), 1, scope="out") + wide
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"logits": logits})
    loss = tf.losses.mean_squared_error(labels, logits) + tf.losses.get_regularization_loss()
    train_op = layers.optimize_loss(
        loss,
        tf.train.get_global_step(),
        0.05,
        VARIANT,
        gradient_noise_scale=None,
        gradient_multipliers={"out/weights": 2.0},
        clip_gradients=optimizers.adaptive_clipping_fn(decay=0.9) if VARIANT == "Adagrad" else 1.0,
        learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 3, 0.9, staircase=True),
        summaries=layers.OPTIMIZER_SUMMARIES,
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op if is_training else None)


FEATURES = {
    "image": normal(0, 12, 8, 8, 2),
    "word": [[one] for one in "abcabdeafbca"],
    "number": normal(1, 12, 1),
    "ids": whole(2, 9, 12, 4),
}
run(tf.estimator.Estimator(model_fn, config=config()), inputs(FEATURES, normal(3, 12, 1)))
