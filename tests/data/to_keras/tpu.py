"""A model function for TPUs, whose input functions get the batch size of the mode, on other devices."""

import numpy as np
import tensorflow as tf


def model_fn_builder(units, use_tpu):
    def model_fn(features, labels, mode, params):
        def network(net):
            def widened(net, factor):
                return tf.layers.dense(net, factor * units, tf.nn.relu, trainable=mode == tf.estimator.ModeKeys.TRAIN)

            net = widened(net, 4)
            net = widened(net, 2)
            return tf.layers.dense(net, units, kernel_regularizer=tf.contrib.layers.l2_regularizer(0.01))

        logits = network(features["x"])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        loss = tf.add_n([loss] + tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
        output_spec = None
        if mode == tf.estimator.ModeKeys.TRAIN:
            optimizer = tf.train.AdamOptimizer(0.01)
            if use_tpu:
                # gradients of all cores
                optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
            train_op = optimizer.minimize(loss, tf.train.get_global_step())
            output_spec = tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op, scaffold_fn=None)
        elif mode == tf.estimator.ModeKeys.EVAL:

            def metric_fn(labels, logits):
                predictions = tf.argmax(logits, axis=-1)
                found = {"accuracy": tf.metrics.accuracy(labels, predictions)}
                found["hits"] = tf.metrics.true_positives(labels, predictions)
                return found

            eval_metrics = (metric_fn,
                            [labels, logits])  # fmt: skip
            output_spec = tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=eval_metrics)
        else:
            predictions = {"p": tf.nn.softmax(logits)}
            if use_tpu:  # the same
                output_spec = tf.contrib.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)
            else:
                # as plain one
                output_spec = tf.estimator.EstimatorSpec(mode=mode, predictions=predictions)
        return output_spec

    return model_fn


def input_fn_builder(seed):
    def input_fn(params):
        draws = np.random.RandomState(seed)
        labels = draws.randint(0, 3, 48)
        values = (labels[:, None] + draws.rand(48, 4)).astype(np.float32)
        data = tf.data.Dataset.from_tensor_slices(({"x": values}, labels.astype(np.int64)))
        return data.repeat().batch(params["batch_size"], drop_remainder=True).prefetch(tf.contrib.data.AUTOTUNE)

    return input_fn


is_per_host = tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2
config = tf.contrib.tpu.RunConfig(
    master=None,
    tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=5, num_shards=1, per_host_input_for_training=is_per_host),
)
estimator = tf.contrib.tpu.TPUEstimator(
    use_tpu=False,
    model_fn=model_fn_builder(3, False),
    config=config,
    train_batch_size=8,
    eval_batch_size=6,
    params={"times": 2},
)
estimator.train(input_fn=input_fn_builder(0), max_steps=15)
print("step", estimator.evaluate(input_fn=input_fn_builder(1), steps=4)["global_step"])
