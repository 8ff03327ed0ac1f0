"""A model that is exported for images, and by train_and_evaluate for parsed examples."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["x"], 3, name="logits")
    classes = tf.argmax(logits, 1)
    predictions = {"classes": classes, "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {
            "serving_default": tf.estimator.export.PredictOutput(predictions),
            "classify": tf.estimator.export.PredictOutput(outputs=classes),
        }
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    values = draws.rand(64, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": values}, draws.randint(0, 3, 64))).batch(16)


def image_input_fn():
    image = tf.placeholder(tf.float32, [None, 3], name="image")
    return tf.estimator.export.ServingInputReceiver({"x": image * 2.0}, {"image": image})


estimator = tf.estimator.Estimator(model_fn, "trained")
examples = tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": tf.FixedLenFeature([3], tf.float32)})
exporter = tf.estimator.LatestExporter("latest", examples, as_text=False)
best = tf.estimator.BestExporter(serving_input_receiver_fn=examples, exports_to_keep=2)
eval_spec = tf.estimator.EvalSpec(input_fn, steps=None, exporters=[exporter, best])
tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=4), eval_spec)
estimator.export_savedmodel("exported", image_input_fn, strip_default_attrs=True)
print("exported")
