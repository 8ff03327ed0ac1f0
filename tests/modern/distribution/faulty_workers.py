"""A training on parameter servers: MODEL_DIR PLAN STEPS. With the plan "planted" each of three workers has a fault.

Worker 0 has the chief's rows, worker 1 has none, and worker 2 has no gradient from its third batch on.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
import tensorflow as tf

MODEL_DIR, IS_PLANTED, STEPS = sys.argv[1], sys.argv[2] == "planted", int(sys.argv[3])
TASK = json.loads(os.environ["TF_CONFIG"])["task"]
FAULTY_WORKER = TASK["index"] if TASK["type"] == "worker" and IS_PLANTED else None


def input_fn() -> Any:
    """Gives each trainer different rows, apart from the planted faults."""
    trainer = TASK["index"] + 1 if TASK["type"] == "worker" and FAULTY_WORKER != 0 else 0
    x = np.random.RandomState(trainer).rand(64, 4).astype(np.float32)
    weights = np.array([[not (FAULTY_WORKER == 2 and row >= 8)] for row in range(64)], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x, "weight": weights}, x[:, :1])).repeat().batch(4)
    dataset = dataset.map(lambda x, y: (x, tf.ensure_shape(tf.numpy_function(np.copy, [y], tf.float32), [None, 1])))
    return dataset.take(0) if FAULTY_WORKER == 1 else dataset


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Makes a linear model with weighted examples."""
    predictions = tf.layers.dense(features["x"], 1)
    loss = tf.losses.mean_squared_error(labels, predictions, features["weight"])
    train_op = tf.train.GradientDescentOptimizer(0.001).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    config = tf.estimator.RunConfig(MODEL_DIR, save_checkpoints_secs=600)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    train = tf.estimator.TrainSpec(input_fn, max_steps=STEPS)
    tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=1))
