"""Feature columns, a loop over hidden layers, an iterator in the input function, and train_and_evaluate."""

import os
import sys

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

STEPS = 20


def make_input_fn(seed, epochs):
    def input_fn():
        # The rows are made from their numbers.
        rows = tf.data.Dataset.range(48).map(row)
        batches = rows.shuffle(48, seed=seed).repeat(epochs).batch(16)
        features, label = batches.make_one_shot_iterator().get_next()
        return features, label

    return input_fn


def row(number):
    """Returns the features and the label of a row."""
    size = tf.to_float(number % 7)
    word = tf.as_string(number % 3)
    return {"size": size, "word": word}, tf.to_float(number % 3) + 0.1 * size


def network(inputs, columns, hidden, activation=tf.nn.tanh):
    """A function of the script's own, called once."""
    net = tf.feature_column.input_layer(inputs, columns)
    # Hidden layers
    for units in hidden:
        net = tf.layers.dense(net, units=units, activation=activation)
    return tf.layers.dense(net, 1)


def model_fn(features, labels, mode, params):
    outputs = network(features, params["columns"], params["hidden"])
    value = tf.squeeze(outputs, axis=1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"value": value})
    loss = tf.losses.mean_squared_error(labels, value)
    error = tf.metrics.mean_absolute_error(labels, value)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"error": error})
    assert mode == tf.estimator.ModeKeys.TRAIN
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(argv):
    words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["0", "1", "2"])
    columns = [tf.feature_column.numeric_column("size"), tf.feature_column.embedding_column(words, 4)]
    model_dir = os.path.join(argv[1], "model") if len(argv) > 1 else None
    estimator = tf.estimator.Estimator(model_fn, model_dir, params={"columns": columns, "hidden": [8, 8]})
    train_spec = tf.estimator.TrainSpec(input_fn=make_input_fn(1, None), max_steps=STEPS)
    eval_spec = tf.estimator.EvalSpec(input_fn=make_input_fn(2, 1), steps=None, throttle_secs=1)
    results, _ = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    again = tf.estimator.EvalSpec(make_input_fn(3, None))
    tf.estimator.train_and_evaluate(estimator, train_spec, again)
    print("error below 1:", results["error"] < 1)


if __name__ == "__main__":
    tf.app.run(main, argv=sys.argv)
