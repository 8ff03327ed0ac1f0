"""Heads and canned models of contrib.estimator, and what extends Estimators."""

import tensorflow as tf
from job import STEPS, VARIANT, config, inputs, normal, run, whole
from tensorflow.contrib import estimator as contrib

X, IDS = normal(0, 12, 3), whole(1, 9, 12, 2)
MANY, CLASS, TARGET = (normal(2, 12, 3) > 0).astype("int64"), whole(3, 3, 12, 1), normal(4, 12, 2)
COLUMNS = [tf.feature_column.numeric_column("x", 3)]
IDENTITY = tf.feature_column.categorical_column_with_identity("ids", 9)
WIDE = [IDENTITY]
DEEP = [*COLUMNS, tf.feature_column.embedding_column(IDENTITY, 2)]


def adagrad():
    """An optimizer of the script's own."""
    return tf.train.AdagradOptimizer(0.1)


def multi_label():
    """Several labels at once."""
    head = contrib.multi_label_head(3, weight_column="weight", thresholds=[0.3, 0.6], name="many")
    found = tf.estimator.DNNEstimator(head, [4], DEEP, optimizer=adagrad(), config=config())
    run(found, inputs({"x": X, "ids": IDS, "weight": abs(X[:, :1])}, MANY))


def multi():
    """Two heads over one network."""
    head = contrib.multi_head(
        [contrib.regression_head(label_dimension=2, name="r"), contrib.multi_class_head(3, name="c")], [0.3, 1.0]
    )
    found = tf.estimator.DNNLinearCombinedEstimator(
        head, None, WIDE, tf.train.FtrlOptimizer(0.1), DEEP, adagrad(), [4, 3], config=config()
    )
    run(found, inputs({"x": X, "ids": IDS}, {"r": TARGET, "c": CLASS}))


def own():
    """A model_fn that asks heads for its specification."""

    def model_fn(features, labels, mode):
        hidden = tf.layers.dense(features["x"], 4, tf.tanh)
        one = contrib.binary_classification_head(name="b", loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)
        other = contrib.poisson_regression_head(name="p")
        head = contrib.multi_head([one, other])
        logits = {"b": tf.layers.dense(hidden, 1), "p": tf.layers.dense(hidden, 1)}
        return head.create_estimator_spec(features, mode, logits, labels, adagrad())

    found = tf.estimator.Estimator(model_fn, config=config())
    run(found, inputs({"x": X}, {"b": (CLASS > 1).astype("int64"), "p": CLASS.astype("float32")}))


def extended():
    """An Estimator with further metrics, gradients clipped, and keys passed on to its predictions."""
    found = tf.estimator.DNNClassifier(
        [4], COLUMNS, n_classes=3, optimizer=contrib.clip_gradients_by_norm(adagrad(), 0.5), config=config()
    )

    def further(labels, predictions, features):
        return {
            "per_class": tf.metrics.mean_per_class_accuracy(labels, predictions["class_ids"], 3),
            "x": tf.metrics.mean(features["x"]),
        }

    found = contrib.forward_features(contrib.add_metrics(found, further), "id")
    run(found, inputs({"x": X, "id": IDS[:, :1]}, CLASS))


def recurrent():
    """A recurrent classifier over sequences."""
    words = tf.contrib.feature_column.sequence_categorical_column_with_identity("words", 9)
    columns = [tf.feature_column.embedding_column(words, 3)]
    found = contrib.RNNClassifier(
        columns, COLUMNS, num_units=[3, 2], cell_type="lstm", n_classes=3, optimizer=adagrad(), config=config()
    )
    run(found, inputs({"x": X, "words": whole(5, 9, 12, 4)}, CLASS))


def functions():
    """A model_fn of logit functions, whose training stops early."""

    def model_fn(features, labels, mode, config):
        deep = contrib.dnn_logit_fn_builder(1, [4, 3], DEEP, tf.nn.relu, None, None, False)
        wide = contrib.linear_logit_fn_builder(1, WIDE)
        logits = contrib.call_logit_fn(deep, features, mode, {}, config) + wide(features)
        head = contrib.logistic_regression_head()
        return head.create_estimator_spec(features, mode, logits, labels, adagrad())

    found = tf.estimator.Estimator(model_fn, config=config())
    stop = tf.estimator.experimental.make_early_stopping_hook(found, lambda: False, run_every_secs=None, run_every_steps=2)
    given = inputs({"x": X, "ids": IDS}, 1 / (1 + abs(TARGET[:, :1])))
    found.train(given, hooks=[stop, tf.estimator.experimental.make_stop_at_checkpoint_step_hook(found, STEPS)], max_steps=STEPS)
    run(found, given)


{
    "multi_label": multi_label,
    "multi": multi,
    "own": own,
    "extended": extended,
    "recurrent": recurrent,
    "functions": functions,
}[VARIANT]()
