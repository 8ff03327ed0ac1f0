"""A TensorFlow 1 script whose tasks note the rows of each step: ``elastic.py MODEL_DIR MAX_STEPS [SECONDS]``, the duration of a batch.

``MODEL_DIR-rows`` gets a file for each process, named after its time and its cluster's addresses, with a line for each batch: the global step
before it, and its rows. ``MODEL_DIR-pids`` gets a file for each task, with the number of its latest process.
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

MODEL_DIR, MAX_STEPS = sys.argv[1:3]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
CONFIG = json.loads(os.environ.get("TF_CONFIG", "{}"))
TASK = CONFIG.get("task", {"type": "alone", "index": 0})
CLUSTER = CONFIG.get("cluster", {"chief": ["alone"]})
TASKS = ",".join(CLUSTER["chief"] + CLUSTER.get("worker", []))
for kind in ("rows", "pids"):
    os.makedirs(MODEL_DIR + "-" + kind, exist_ok=True)
with open(os.path.join(MODEL_DIR + "-pids", "{type}-{index}".format(**TASK)), "w") as file:
    file.write(str(os.getpid()))
ROWS = open(os.path.join(MODEL_DIR + "-rows", "{} {}".format(time.time(), TASKS)), "w")


def note(step, rows):
    time.sleep(SECONDS)
    ROWS.write("{} {}\n".format(step, " ".join(map(str, rows))))
    ROWS.flush()
    return np.float32(0)


def input_fn():
    rows = tf.data.Dataset.range(1000).shuffle(100).repeat()
    return rows.map(lambda row: ({"row": row, "x": tf.stack([row % 7, row % 11])}, row % 5)).batch(4)


def model_fn(features, labels, mode):
    step = tf.train.get_global_step()
    hidden = tf.layers.dense(tf.cast(features["x"], tf.float32), 8, tf.nn.relu)
    predicted = tf.squeeze(tf.layers.dense(hidden, 1), -1)
    loss = tf.losses.mean_squared_error(tf.cast(labels, tf.float32), predicted)
    if mode == tf.estimator.ModeKeys.TRAIN:
        noted = tf.py_func(note, [step, features["row"]], tf.float32)
        noted.set_shape([])
        loss += noted
    optimizer = tf.train.MomentumOptimizer(0.001, 0.9)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 0.5)
    train_op = optimizer.apply_gradients(zip(clipped, variables), step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.estimator.RunConfig(MODEL_DIR, tf_random_seed=1, save_checkpoints_steps=5)
tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config),
    tf.estimator.TrainSpec(input_fn, max_steps=int(MAX_STEPS)),
    tf.estimator.EvalSpec(input_fn, steps=1),
)
