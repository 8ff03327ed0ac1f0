"""A convolutional network in the style of 2017, on images that are made here."""

from __future__ import print_function

import argparse

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)


# The network, as in every tutorial of that time.
def cnn_model_fn(features, labels, mode, params):
    """Two convolutions, batch norm and dropout."""
    training = mode == tf.estimator.ModeKeys.TRAIN
    images = tf.reshape(features["x"], [-1, 8, 8, 1])
    # First block
    net = tf.layers.conv2d(images, params["filters"], [3, 3], padding="same", activation=tf.nn.relu)
    net = tf.layers.max_pooling2d(inputs=net, pool_size=[2, 2], strides=2)
    # Second block
    with tf.variable_scope("second"):
        net = tf.layers.conv2d(net, filters=8, kernel_size=3, padding="same", use_bias=False)
        net = tf.layers.batch_normalization(net, momentum=0.9, training=training)
        net = tf.nn.relu(net)
    if params["wide"]:
        net = tf.layers.dense(tf.layers.flatten(net), 32, tf.nn.relu, name="wide")
    else:
        net = tf.contrib.layers.flatten(net)
    net = tf.layers.dropout(net, rate=0.25, training=training)
    logits = tf.layers.dense(net, units=3)  # one for each class

    predictions = {"classes": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"class": tf.estimator.export.ClassificationOutput(scores=predictions["probabilities"])}
        return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions, export_outputs=outputs)

    # Loss
    onehot = tf.one_hot(tf.cast(labels, tf.int32), depth=3)
    loss = tf.losses.softmax_cross_entropy(onehot_labels=onehot, logits=logits)
    loss += 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
    tf.summary.scalar("the_loss", loss)

    if mode == tf.estimator.ModeKeys.TRAIN:
        # The rate falls by steps.
        rate = tf.train.exponential_decay(params["rate"], tf.train.get_global_step(), 10, 0.9, staircase=True)
        optimizer = tf.train.AdamOptimizer(learning_rate=rate)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        logging_hook = tf.train.LoggingTensorHook({"rate": rate}, every_n_iter=10)
        return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op, training_hooks=[logging_hook])

    eval_metric_ops = {
        "accuracy": tf.metrics.accuracy(labels=labels, predictions=predictions["classes"]),
        "distance": tf.metrics.mean_squared_error(onehot, predictions["probabilities"]),
    }
    return tf.estimator.EstimatorSpec(mode=mode, loss=loss, eval_metric_ops=eval_metric_ops)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-dir")
    parser.add_argument("--steps", type=int, default=25)
    options = parser.parse_args()

    random = np.random.RandomState(0)
    labels = random.randint(0, 3, 200).astype(np.int32)
    images = (random.rand(200, 64) + labels[:, None] * np.linspace(0, 0.5, 64)).astype(np.float32)

    session_config = tf.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=2)
    config = tf.estimator.RunConfig(save_checkpoints_steps=10, save_summary_steps=5, session_config=session_config)
    params = {"filters": 6, "wide": True, "rate": 0.01}
    classifier = tf.estimator.Estimator(cnn_model_fn, model_dir=options.model_dir, config=config, params=params)

    # Log the values in the "Softmax" tensor
    logging_hook = tf.train.LoggingTensorHook(tensors={}, every_n_iter=50)
    train_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": images[:160]}, y=labels[:160], batch_size=32, num_epochs=None, shuffle=True
    )
    classifier.train(input_fn=train_input_fn, steps=options.steps, hooks=[logging_hook])
    eval_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": images[160:]}, y=labels[160:], batch_size=32, num_epochs=1, shuffle=False
    )
    results = classifier.evaluate(input_fn=eval_input_fn)
    print("step", results["global_step"], "accuracy", results["accuracy"])
    print(sum(1 for _ in classifier.predict(input_fn=eval_input_fn)), "predictions")


if __name__ == "__main__":
    main()
