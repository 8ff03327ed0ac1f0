"""A model function that stays whole, with functions of contrib that tf_slim alone has."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import slim
from tensorflow.contrib.layers import fully_connected


@slim.add_arg_scope
def block(inputs, depth, rate=1):
    """A block whose arguments scopes give."""
    with tf.variable_scope(None, "block", [inputs]):
        net = slim.separable_conv2d(inputs, depth, [3, 3], depth_multiplier=1, stride=1)
        return slim.conv2d(net, depth, [1, 1], rate=rate)


def scope(training):
    """Arguments of all layers."""
    norm = {"is_training": training, "decay": 0.9, "scale": True}
    with slim.arg_scope([slim.conv2d, slim.separable_conv2d], normalizer_fn=slim.batch_norm, normalizer_params=norm):
        with slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(1e-3)) as found:
            return found


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    images = tf.reshape(features["x"], [-1, 6, 6, 1])
    with slim.arg_scope(scope(training)):
        net = block(images, 4)
        with slim.arg_scope([block], rate=2):
            net = block(net, 4)
    tf.add_to_collection("kept", net)
    net = slim.flatten(net)
    net = slim.dropout(net, 0.7, is_training=training)
    net = tf.contrib.layers.bias_add(fully_connected(net, 5))
    logits = slim.fully_connected(net, 3, activation_fn=None, scope="logits")
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"classes": classes})
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    loss = tf.losses.get_total_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        pearson = tf.contrib.metrics.streaming_pearson_correlation(tf.to_float(classes), tf.to_float(labels))
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops={"pearson": pearson, "mean": tf.contrib.metrics.streaming_mean(logits)}
        )
    train_op = tf.contrib.training.create_train_op(
        loss, tf.train.AdamOptimizer(params["rate"]), transform_grads_fn=tf.contrib.training.clip_gradient_norms_fn(1.0)
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draw = np.random.RandomState(1)
    return (
        tf.data.Dataset.from_tensor_slices(({"x": draw.rand(70, 36).astype("float32")}, draw.randint(0, 3, 70)))
        .batch(16)
        .repeat(3)
    )


def main():
    estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.05})
    estimator.train(input_fn, steps=12)
    print(next(estimator.predict(input_fn)))
    print("metrics:", sorted(estimator.evaluate(input_fn)))


if __name__ == "__main__":
    main()
