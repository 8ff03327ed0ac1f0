"""Keras models behind an Estimator's methods: what native TensorFlow 2.15.1 and the package are both asked to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

v1, keras = tf.compat.v1, tf.keras
random = np.random.RandomState(0)
X = random.normal(size=[24, 3]).astype(np.float32)
Y = X.sum(1, keepdims=True)
POSITIVE = (Y > 0).astype(np.float32)


@keras.utils.register_keras_serializable("cases")
class Twice(keras.layers.Layer):
    """A layer of one's own."""

    def call(self, inputs: Any) -> Any:
        """Doubles."""
        return 2 * inputs


def spread(labels: Any, predictions: Any) -> Any:
    """A metric of one's own."""
    return tf.reduce_mean(tf.abs(labels - predictions))


def dense(units: int, name: str, activation: str | None = None) -> Any:
    """A layer that begins with the same values everywhere."""
    return keras.layers.Dense(units, activation, kernel_initializer=keras.initializers.Constant(0.1), name=name)


def two_outputs() -> Any:
    """Losses, weights and metrics of several kinds by output."""
    x = keras.Input([3], name="x")
    net = Twice(name="twice")(dense(4, "hidden", "tanh")(x))
    model = keras.Model(x, [dense(1, "a")(net), dense(1, "b", "sigmoid")(net)], name="two")
    losses, weights = {"a": "mse", "b": "binary_crossentropy"}, {"a": 1.0, "b": 0.5}
    metrics = {"a": ["mae", spread], "b": ["accuracy", keras.metrics.AUC(name="auc")]}
    model.compile(keras.optimizers.legacy.Adam(0.05), losses, metrics, loss_weights=weights)
    return model


def line(optimizer: Any) -> Any:
    """One layer."""
    x = keras.Input([3], name="x")
    model = keras.Model(x, dense(1, "a")(x))
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def fitted() -> Any:
    """With an optimizer that has slots already."""
    model = line(keras.optimizers.legacy.Adam(0.05))
    model.fit(X, Y, epochs=2, batch_size=8, verbose=0, shuffle=False)
    return model


OWN = {"custom_objects": {"Twice": Twice, "spread": spread}}
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "two outputs": (two_outputs, {**OWN, "checkpoint_format": "saver"}),
    "names and outputs": (
        lambda: line(keras.optimizers.legacy.SGD(0.05, momentum=0.9)),
        {"checkpoint_format": "saver", "metric_names_map": {"mae": "gap"}, "export_outputs": {"a": "RegressionOutput"}},
    ),
    "objects in checkpoints": (two_outputs, {**OWN, "checkpoint_format": "checkpoint"}),
    "fitted before": (fitted, {"checkpoint_format": "saver"}),
    "optimizer of TensorFlow 1": (lambda: line(v1.train.AdamOptimizer(0.05)), {"checkpoint_format": "saver"}),
    "optimizer of Keras' newer kind": (lambda: line(keras.optimizers.Adam(0.05)), {"checkpoint_format": "saver"}),
}


def input_fn(name: str) -> Any:
    """Six batches of eight."""
    labels = {"a": Y, "b": POSITIVE} if CASES[name][0] is two_outputs else Y
    return tf.data.Dataset.from_tensor_slices(({"x": X}, labels)).repeat(2).batch(8)


def run(model_to_estimator: Any, name: str, folder: str) -> Any:
    """Three steps, an evaluation, predictions and an export: numbers, names, signatures, the checkpoint's variables."""
    make, given = CASES[name]
    if "export_outputs" in given:
        given = {
            **given,
            "export_outputs": {key: getattr(tf.estimator.export, output) for key, output in given["export_outputs"].items()},
        }
    one = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config = tf.estimator.RunConfig(session_config=one, save_summary_steps=None, log_step_count_steps=None)
    estimator = model_to_estimator(make(), model_dir=f"{folder}/model", config=config, **given)
    estimator.train(lambda: input_fn(name), steps=3)
    predicted = next(iter(estimator.predict(lambda: input_fn(name))))
    receiver_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": tf.io.FixedLenFeature([3], tf.float32)})
    return {
        "evaluation": {key: _number(value) for key, value in estimator.evaluate(lambda: input_fn(name)).items()},
        "predictions": {key: [_number(number) for number in value] for key, value in predicted.items()},
        "signatures": _signatures(estimator.export_saved_model(f"{folder}/export", receiver_fn).decode()),
        "variables": _variables(f"{folder}/model"),
    }


def _number(value: Any) -> float:
    return float(f"{float(value):.5g}")


def _signatures(path: str) -> Any:
    def described(tensors: Any) -> Any:
        return {key: [one.name, one.dtype, [size.size for size in one.tensor_shape.dim]] for key, one in tensors.items()}

    with tf.Graph().as_default(), v1.Session() as session:
        found = v1.saved_model.load(session, ["serve"], path).signature_def
    return {key: [one.method_name, described(one.inputs), described(one.outputs)] for key, one in found.items()}


def _variables(folder: str) -> dict[str, list[int]]:
    shapes: dict[str, list[int]] = tf.train.load_checkpoint(folder).get_variable_to_shape_map()
    return shapes
