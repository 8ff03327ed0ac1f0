"""The restored Estimator at work on CPU; a function a program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from estimator_bridge import legacy

legacy.install()
import tensorflow as tf

tf1: Any = tf.compat.v1
model_dir = sys.argv[2]
x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
y = (x > 0).astype(np.int64)


def input_fn(repeat: Any = None) -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat(repeat).batch(16)


def a_canned_classifier_trains_evaluates_predicts_and_exports() -> None:
    columns = [tf.feature_column.numeric_column("x")]
    optimizer = tf.keras.optimizers.legacy.Adagrad(0.5)
    config = tf.estimator.RunConfig(tf_random_seed=1)
    classifier = tf.estimator.DNNClassifier([8], columns, optimizer=optimizer, model_dir=model_dir, config=config)
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=200)
    serving = tf.estimator.export.build_parsing_serving_input_receiver_fn(tf1.feature_column.make_parse_example_spec(columns))
    eval_spec = tf.estimator.EvalSpec(lambda: input_fn(1), exporters=tf.estimator.FinalExporter("final", serving))
    metrics, exports = tf.estimator.train_and_evaluate(classifier, train_spec, eval_spec)
    assert metrics["global_step"] == 200 and metrics["accuracy"] > 0.9, metrics
    predictions = list(classifier.predict(lambda: input_fn(1)))
    assert len(predictions) == 64 and predictions[0]["probabilities"].shape == (2,)
    assert np.mean([p["class_ids"][0] for p in predictions] == y[:, 0]) == metrics["accuracy"]
    example = tf.train.Example(
        features=tf.train.Features(feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))})
    )
    served = tf.saved_model.load(exports[0].decode()).signatures["predict"](examples=tf.constant([example.SerializeToString()]))
    np.testing.assert_allclose(served["probabilities"][0], predictions[-1]["probabilities"], rtol=1e-6)


def a_custom_model_fn_without_v2_behavior() -> None:
    tf1.disable_v2_behavior()
    a_custom_model_fn()


def a_custom_model_fn() -> None:
    def model_fn(features: Any, labels: Any, mode: Any, params: Any) -> Any:
        hidden = tf1.layers.dense(features["x"], 4, activation=tf.nn.tanh, name="hidden")
        logits = tf1.layers.dense(hidden, 2, name="logits")
        classes = tf.argmax(logits, 1)
        if mode == tf1.estimator.ModeKeys.PREDICT:
            outputs = {"serving_default": tf1.estimator.export.PredictOutput({"classes": classes})}
            return tf1.estimator.EstimatorSpec(mode, predictions={"classes": classes}, export_outputs=outputs)
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        metrics = {"accuracy": tf1.metrics.accuracy(labels[:, 0], classes)}
        train_op = tf1.train.AdamOptimizer(params["rate"]).minimize(loss, tf1.train.get_or_create_global_step())
        return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)

    class Count(tf.compat.v1.train.SessionRunHook):
        steps = 0

        def after_run(self, context: Any, values: Any) -> None:
            self.steps += 1

    numpy_input = tf1.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=16, num_epochs=None, shuffle=True)
    estimator = tf1.estimator.Estimator(model_fn, model_dir, params={"rate": 0.05})
    hook = Count()
    estimator.train(numpy_input, steps=100, hooks=[hook])
    estimator.train(input_fn, max_steps=150)
    assert hook.steps == 100 and estimator.get_variable_value("global_step") == 150
    assert {"hidden/kernel", "hidden/kernel/Adam", "beta1_power"} <= set(estimator.get_variable_names())
    metrics = estimator.evaluate(lambda: input_fn(1))
    assert metrics["accuracy"] > 0.9, metrics
    assert len(list(estimator.predict(lambda: input_fn(1)))) == 64
    receiver = (
        tf1.estimator.export.build_raw_serving_input_receiver_fn({"x": tf1.placeholder(tf.float32, [None, 1])})
        if not tf1.executing_eagerly()
        else None
    )
    if receiver:
        path = estimator.export_saved_model(f"{model_dir}/export", receiver)
        assert (Path(path.decode()) / "saved_model.pb").exists()


def mirrored_strategy_trains_on_two_replicas() -> None:
    replicas = []

    def model_fn(features: Any, labels: Any, mode: Any) -> Any:
        replicas.append(tf.distribute.get_replica_context().replica_id_in_sync_group)
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(weight * features)
        if mode == "eval":
            return tf1.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean": tf1.metrics.mean(features)})
        train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(loss, tf1.train.get_or_create_global_step())
        return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def numbers() -> Any:
        return tf.data.Dataset.from_tensor_slices([1.0, 10.0, 100.0, 1000.0]).batch(1)

    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    config = tf1.estimator.RunConfig(
        train_distribute=strategy, eval_distribute=strategy, session_config=tf1.ConfigProto(device_count={"CPU": 2})
    )
    estimator = tf1.estimator.Estimator(model_fn, model_dir, config)
    estimator.train(numbers, steps=2)
    assert len(replicas) == 2, replicas
    # Two steps of two batches each, gradients averaged over both replicas: one device would have gone on to 11 only.
    np.testing.assert_allclose(estimator.get_variable_value("weight"), -(1 + 10) / 2 - (100 + 1000) / 2)
    assert estimator.get_variable_value("global_step") == 2
    np.testing.assert_allclose(estimator.evaluate(numbers)["mean"], 1111 / 4)
    metrics, _ = tf1.estimator.train_and_evaluate(
        estimator, tf1.estimator.TrainSpec(numbers, max_steps=3), tf1.estimator.EvalSpec(numbers)
    )
    assert metrics["global_step"] == 3


if __name__ == "__main__":
    globals()[sys.argv[1]]()
