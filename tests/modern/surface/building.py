"""Layers, variables and their scopes, collections, summaries, tables, inputs of every kind."""

from __future__ import annotations

import functools
import operator
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tests.modern.jobs import IDS, ModelFn, embedded, linear, spec, v1

Features = Any
Part = Callable[[Features, Any], Any]  # (features, labels) -> loss


def step() -> Any:
    return v1.train.get_global_step()


def squared(predicted: Any, wanted: Any) -> Any:
    return tf.reduce_mean(tf.square(predicted - wanted))


def finish(mode: str, loss: Any, **kwargs: Any) -> Any:
    return spec(mode, loss, v1.train.AdamOptimizer(0.05).minimize(loss, step()), **kwargs)


def layers(features: Features, labels: Any) -> Any:
    image = tf.reshape(tf.tile(features["x"], [1, 12]), [-1, 6, 6, 1])
    net = v1.layers.conv2d(image, 2, 3, padding="same", activation=tf.nn.relu)
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = v1.layers.separable_conv2d(net, 2, 2)
    net = v1.layers.dropout(v1.layers.flatten(net), rate=0.2, seed=3, training=True)
    return squared(v1.layers.dense(net, 1), labels)


def reused_automatically(features: Features, labels: Any) -> Any:
    def tower(values: Any) -> Any:
        with v1.variable_scope("tower", reuse=v1.AUTO_REUSE), v1.variable_scope("inner"):
            kernel = v1.get_variable("kernel", [3, 1], initializer=v1.truncated_normal_initializer(stddev=0.3))
            return tf.matmul(values, kernel)

    return squared(tower(features["x"]) - tower(features["x"] * 0.5), labels)


def through_a_getter(features: Features, labels: Any) -> Any:
    """Variables in float32 that are used in float16, as in scripts with mixed precision."""

    def kept_in_float32(getter: Any, name: str, *args: Any, dtype: Any = tf.float32, **kwargs: Any) -> Any:
        return tf.cast(getter(name, *args, dtype=tf.float32, **kwargs), dtype)

    with v1.variable_scope("half", custom_getter=kept_in_float32):
        predicted = v1.layers.dense(tf.cast(features["x"], tf.float16), 1)
    return squared(tf.cast(predicted, tf.float32), labels)


def with_losses_in_collections(features: Features, labels: Any) -> Any:
    hidden = v1.layers.dense(features["x"], 4, kernel_regularizer=tf.keras.regularizers.l2(0.01))
    v1.losses.absolute_difference(labels, v1.layers.dense(hidden, 1), weights=0.5)
    v1.losses.huber_loss(labels, linear(features["x"], "auxiliary"), weights=tf.abs(labels))
    v1.losses.add_loss(0.1 * tf.reduce_mean(tf.abs(hidden)))
    return v1.losses.get_total_loss(add_regularization_losses=True)


def summarised(features: Features, labels: Any) -> Any:
    predicted = linear(features["x"])
    v1.summary.histogram("predicted", predicted)
    v1.summary.image("x", tf.reshape(features["x"], [-1, 1, 3, 1]), max_outputs=1)
    loss = squared(predicted, labels)
    with v1.name_scope("tower"):
        v1.summary.scalar("loss_again", loss)
    return loss


def vocabulary_in_a_file(features: Features, labels: Any) -> Any:
    file = _file("\n".join(str(number) for number in range(IDS - 2)))
    initializer = tf.lookup.TextFileInitializer(
        file, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    table = tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=2, lookup_key_dtype=tf.string)
    words = table.lookup(tf.strings.as_string(features["words"]))
    return squared(linear(features["x"]) + embedded(words), labels)


@functools.cache
def _file(text: str) -> str:
    path = Path(tempfile.mkdtemp()) / "vocabulary.txt"
    path.write_text(text)
    return str(path)


def two_tables(features: Features, labels: Any) -> Any:
    keys = tf.range(IDS, dtype=tf.int64)
    there = v1.lookup.StaticHashTable(v1.lookup.KeyValueTensorInitializer(keys, (keys + 1) % IDS), -1)
    back = v1.lookup.StaticHashTable(v1.lookup.KeyValueTensorInitializer(keys, tf.strings.as_string(keys)), "none")
    words = tf.strings.to_number(back.lookup(there.lookup(features["words"])), tf.int64)
    return squared(linear(features["x"]) + embedded(words), labels)


def sparse_weights(features: Features, labels: Any) -> Any:
    words = tf.sparse.from_dense(features["words"])
    table = v1.get_variable("table", [IDS, 1], initializer=v1.constant_initializer(np.linspace(0, 1, IDS)))
    summed = v1.nn.embedding_lookup_sparse(table, words, None, combiner="sqrtn")
    return squared(linear(features["x"]) + summed, labels)


def feature_columns(features: Features, labels: Any) -> Any:
    columns = tf.feature_column
    words = columns.categorical_column_with_identity("words", IDS)
    deep = [columns.numeric_column("x", 3), columns.embedding_column(words, 2, initializer=v1.constant_initializer(0.1))]
    net = v1.feature_column.input_layer(features, deep)
    return squared(linear(net) + v1.feature_column.linear_model(features, [words]), labels)


def checked_and_printed(features: Features, labels: Any) -> Any:
    with tf.control_dependencies([v1.assert_rank(labels, 2), v1.assert_less(tf.abs(features["x"]), 100.0)]):
        x = tf.identity(features["x"])
    loss = squared(linear(x), labels)
    return v1.debugging.check_numerics(loss, "loss")


def initialised_by_ops(features: Features, labels: Any, mode: str) -> Any:
    made = finish(mode, squared(linear(features["x"]), labels))
    kernel = next(variable for variable in v1.trainable_variables() if "kernel" in variable.name)
    with tf.control_dependencies([v1.global_variables_initializer()]):
        init_op = kernel.assign(np.full([3, 1], 0.25, np.float32)).op
    return made._replace(scaffold=v1.train.Scaffold(init_op=init_op))


def with_exports(features: Features, labels: Any, mode: str) -> Any:
    predicted = linear(features["x"])
    export = v1.estimator.export.PredictOutput({"predicted": predicted})
    return finish(mode, squared(predicted, labels), predictions=predicted, export_outputs={"serving_default": export})


def counting_locally(features: Features, labels: Any) -> Any:
    """Streaming metrics in training, whose local variables change at every step."""
    _, seen = v1.metrics.mean(labels)
    return squared(linear(features["x"]), labels) + 0.01 * tf.stop_gradient(seen)


def of_many_types(features: Features, labels: Any) -> Any:
    flags = v1.get_variable("flags", initializer=np.array([True, False, True]), trainable=False)
    text = v1.get_variable("text", initializer="said", trainable=False)
    counts = v1.get_variable("counts", initializer=np.zeros(3, np.int64), trainable=False)
    with tf.control_dependencies([v1.assign_add(counts, tf.cast(flags, tf.int64)), v1.assign(text, "heard")]):
        return squared(linear(features["x"]), labels)


def together(*parts: Part) -> ModelFn:
    """Returns a model_fn with several parts, each in a variable scope of its name, because graphs cost more time than steps."""

    def model_fn(features: Features, labels: Any, mode: str) -> Any:
        losses = []
        for part in parts:
            with v1.variable_scope(part.__name__):
                losses.append(part(features, labels))
        return finish(mode, functools.reduce(operator.add, losses))

    return model_fn


TOGETHER: dict[str, ModelFn] = {
    "layers and scopes": together(layers, reused_automatically, through_a_getter),
    "losses, summaries, assertions": together(with_losses_in_collections, summarised, checked_and_printed),
    "tables and columns": together(vocabulary_in_a_file, two_tables, sparse_weights, feature_columns),
    "metrics in training, types": together(counting_locally, of_many_types),
}

MODELS: dict[str, ModelFn] = {
    **TOGETHER,
    "Scaffold(init_op)": initialised_by_ops,
    "export_outputs": with_exports,
}
