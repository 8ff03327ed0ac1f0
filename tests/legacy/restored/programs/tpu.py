"""TPUEstimator(use_tpu=False), and what needs a TPU; a function a program."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from estimator_bridge import legacy

legacy.install()
import tensorflow.compat.v1 as tf

# Before 2.16, as in TensorFlow 1, the optimizer's op runs on a TPU only: scripts wrapped where use_tpu was set.
on_any_device = (lambda optimizer: optimizer) if tf.__version__.startswith("2.15.") else tf.tpu.CrossShardOptimizer


def tpu_estimator_trains_evaluates_and_predicts_on_cpu() -> None:
    seen = []

    def model_fn(features: Any, labels: Any, mode: Any, params: Any) -> Any:
        seen.append((mode, params["batch_size"]))
        logits = tf.layers.dense(features, 1)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
        loss = tf.losses.mean_squared_error(labels, logits)

        def metric_fn(labels: Any, logits: Any) -> Any:
            return {"rmse": tf.metrics.root_mean_squared_error(labels, logits)}

        if mode == tf.estimator.ModeKeys.EVAL:
            return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
        optimizer = on_any_device(tf.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())

        def host_call_fn(step: Any, loss: Any) -> Any:
            return [tf.print("host call", step, loss)]

        host_call = (host_call_fn, [tf.reshape(tf.train.get_global_step(), [1]), tf.reshape(loss, [1])])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)

    def input_fn(params: Any) -> Any:
        x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
        return tf.data.Dataset.from_tensor_slices((x, 3 * x)).repeat().batch(params["batch_size"], drop_remainder=True)

    config = tf.estimator.tpu.RunConfig(model_dir=sys.argv[2], tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=10))
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=config, use_tpu=False, train_batch_size=16, eval_batch_size=8, predict_batch_size=4
    )
    estimator.train(input_fn, max_steps=100)
    metrics = estimator.evaluate(input_fn, steps=8)
    assert metrics["rmse"] < 0.5 and metrics["global_step"] == 100, metrics
    assert next(iter(estimator.predict(input_fn)))["logits"].shape == (1,)
    assert seen == [("train", 16), ("eval", 8), ("infer", 4)], seen


def embedding_columns_are_ordinary_variables_on_cpu() -> None:
    column = tf.tpu.experimental.embedding_column(tf.feature_column.categorical_column_with_identity("word", 10), 4)

    def model_fn(features: Any, labels: Any, mode: Any, params: Any) -> Any:
        embedded = tf.feature_column.input_layer(features, [column])
        loss = tf.losses.mean_squared_error(labels, tf.layers.dense(embedded, 1))
        optimizer = on_any_device(tf.train.AdagradOptimizer(0.1))
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step())
        )

    def input_fn(params: Any) -> Any:
        data = ({"word": [[1], [2], [3], [4]]}, [[1.0], [2.0], [3.0], [4.0]])
        return tf.data.Dataset.from_tensor_slices(data).repeat().batch(params["batch_size"])

    spec = tf.estimator.tpu.experimental.EmbeddingConfigSpec(
        feature_columns=[column], optimization_parameters=tf.tpu.experimental.AdagradParameters(0.1)
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=tf.estimator.tpu.RunConfig(model_dir=sys.argv[2]),
        use_tpu=False,
        train_batch_size=4,
        eval_batch_size=4,
        embedding_config_spec=spec,
    )
    estimator.train(input_fn, max_steps=5)
    (table,) = (name for name in estimator.get_variable_names() if name.endswith("embedding_weights"))
    assert estimator.get_variable_value(table).shape == (10, 4)


def what_needs_a_tpu_refuses() -> None:
    from tensorflow.python.tpu import session_support, tpu_embedding, tpu_embedding_gradient

    from estimator_bridge.errors import BridgeError

    table = tpu_embedding.TableConfig(vocabulary_size=10, dimension=2)
    feature = tpu_embedding.FeatureConfig("t")
    calls: tuple[Any, ...] = (
        lambda: tpu_embedding.TPUEmbedding({"t": table}, {"f": feature}, 8, tpu_embedding.TRAINING, master=""),
        lambda: tpu_embedding_gradient.create_dummy_table_variables(None),
        lambda: session_support.GracefulShutdownHook("checkpoint"),
        lambda: session_support.start_worker_watchdog(None),
        lambda: session_support.WorkerHeartbeatManager.from_devices(None, []),
    )
    for call in calls:
        try:
            call()
        except NotImplementedError as error:
            assert isinstance(error, BridgeError) and "needs a TPU" in str(error) and "use_tpu=False" in str(error)
        else:
            raise AssertionError(call)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
