"""Networks and train_op of contrib.slim."""

import tensorflow as tf
from job import EVAL, PREDICT, TRAIN, VARIANT, config, inputs, normal, run, whole

slim = tf.contrib.slim
CLASSES = 3


def scope(is_training):
    """Settings of all layers, as most scripts with slim have."""
    normalizer = {"is_training": is_training, "decay": 0.9, "epsilon": 1e-3, "scale": True}
    with (
        slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_regularizer=slim.l2_regularizer(0.002),
            weights_initializer=slim.variance_scaling_initializer(),
            normalizer_fn=slim.batch_norm,
            normalizer_params=normalizer,
        ),
        slim.arg_scope([slim.batch_norm], **normalizer) as found,
    ):
        return found


def network(image, is_training):
    """A residual network of slim.nets, or layers with end points."""
    from tensorflow.contrib.slim.nets import resnet_v2

    if VARIANT == "resnet":
        with slim.arg_scope(resnet_v2.resnet_arg_scope(batch_norm_decay=0.9)):
            blocks = [resnet_v2.resnet_v2_block("block%d" % one, base_depth=2, num_units=2, stride=2) for one in (1, 2)]
            logits, points = resnet_v2.resnet_v2(image, blocks, CLASSES, is_training, scope="resnet", output_stride=8)
        return tf.squeeze(logits, [1, 2]), points
    with slim.arg_scope(scope(is_training)):
        x = slim.conv2d(image, 4, [3, 3], scope="conv1", outputs_collections="points")
        x = slim.repeat(x, 2, slim.conv2d, 4, [3, 3], scope="conv2", outputs_collections="points")
        x = slim.max_pool2d(x, [2, 2], scope="pool")
        x = slim.dropout(slim.flatten(x), 0.8, is_training=is_training, seed=41)
        x = slim.stack(x, slim.fully_connected, [6, 5], scope="fc")
        logits = slim.fully_connected(x, CLASSES, activation_fn=None, normalizer_fn=None, scope="logits")
    return logits, slim.utils.convert_collection_to_dict("points")


def model_fn(features, labels, mode):
    """A classifier."""
    logits, points = network(features["image"], mode == TRAIN)
    if mode == PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"logits": logits, "points": tf.fill([4], len(points))})
    slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(labels, CLASSES), label_smoothing=0.1)
    loss = slim.losses.get_total_loss()
    if mode == EVAL:
        values, updates = slim.metrics.aggregate_metric_map(
            {"accuracy": slim.metrics.streaming_accuracy(tf.argmax(logits, 1), labels)}
        )
        pairs = {name: (values[name], updates[name]) for name in values}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=pairs)
    step = tf.train.get_global_step()
    rate = tf.train.polynomial_decay(0.05, step, 10, power=1.0)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9) if VARIANT == "resnet" else tf.train.RMSPropOptimizer(rate, momentum=0.5)
    train_op = slim.learning.create_train_op(loss, optimizer, step, clip_gradient_norm=2.0, summarize_gradients=True)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


FEATURES = {"image": normal(0, 12, 16, 16, 3)}
run(tf.estimator.Estimator(model_fn, config=config()), inputs(FEATURES, whole(1, CLASSES, 12)))
