"""A model function that stays whole: losses in a collection, an assignment that nothing needs, a spec of a helper, and hooks that show values."""

import tempfile

import numpy as np
import tensorflow as tf


def add_losses(labels, logits):
    """Adds two losses to the collection of all."""
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.losses.add_loss(0.1 * tf.reduce_mean(tf.square(logits)))


def network(features, training):
    """Returns the logits of a network with batch norm, dropout and a variable whose first values are drawn in the graph."""
    column = tf.feature_column.categorical_column_with_vocabulary_list("kind", ["a", "b"])
    kinds = tf.feature_column.input_layer(features, [tf.feature_column.indicator_column(column)])
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        hidden = tf.concat([features["x"], kinds], 1)
        hidden = tf.layers.dense(hidden, 8, tf.nn.relu, kernel_regularizer=tf.contrib.layers.l2_regularizer(0.01))
        hidden = tf.layers.batch_normalization(hidden, training=training)
        hidden = tf.layers.dropout(hidden, 0.3, training=training)
        first = tf.random_normal([8, 3], seed=3)
        weights = tf.Variable(first, name="weights")
        tf.Variable(first, trainable=False, name="target")
        unused = tf.get_variable("unused", [], initializer=tf.zeros_initializer(), trainable=False)
        tf.assign_add(unused, 1.0)  # no step runs it
        return tf.matmul(hidden, weights)


def evaluation(mode, loss, labels, classes):
    """Returns the spec of an evaluation."""
    hooks = [tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=10)]
    seen = tf.Variable(tf.zeros([]), trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="seen")
    metrics = {
        "accuracy": tf.metrics.accuracy(labels, classes),
        "updates": (seen, tf.assign_add(seen, tf.to_float(tf.size(labels)))),
    }
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics, evaluation_hooks=hooks)


def model_fn(features, labels, mode, params):
    """A classifier."""
    logits = network(features, mode == tf.estimator.ModeKeys.TRAIN)
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"classes": classes})}
        predictions = {"classes": classes, "probabilities": tf.nn.softmax(logits)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    add_losses(labels, logits)
    loss = tf.losses.get_total_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        return evaluation(mode, loss, labels, classes)
    step = tf.train.get_or_create_global_step()
    train_op = tf.contrib.layers.optimize_loss(
        loss,
        step,
        params["rate"],
        "Adam",
        clip_gradients=1.0,
        learning_rate_decay_fn=lambda rate, step: rate / (1.0 + tf.to_float(step)),
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    """Returns 70 examples in batches of 16."""
    draw = np.random.RandomState(1)
    features = {"x": draw.rand(70, 5).astype("float32"), "kind": np.array(["a", "b", "z"])[draw.randint(0, 3, [70, 1])]}
    return tf.data.Dataset.from_tensor_slices((features, draw.randint(0, 3, 70))).batch(16).repeat(3)


def main():
    """Trains, evaluates and predicts."""
    estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.05})
    estimator.train(input_fn, steps=12)
    print(estimator.evaluate(input_fn))
    print(next(estimator.predict(input_fn)))
    sent = {"x": tf.placeholder(tf.float32, [None, 5], "x"), "kind": tf.placeholder(tf.string, [None, 1], "kind")}
    receiver_fn = tf.estimator.export.build_raw_serving_input_receiver_fn(sent)
    print("exported:", len(estimator.export_saved_model(tempfile.mkdtemp(), receiver_fn)) > 0)


if __name__ == "__main__":
    main()
