"""What the scripts of this folder have in common: an Estimator that trains, evaluates and predicts, and a line about it."""

import json
import sys

import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
VARIANT = sys.argv[2] if len(sys.argv) > 2 else None
STEPS = 8
TRAIN, EVAL, PREDICT = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT
ONE_THREAD = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
tf.logging.set_verbosity("ERROR")


def config(**options):
    """Settings of a run that can be repeated."""
    return tf.estimator.RunConfig(model_dir=FOLDER, tf_random_seed=3, session_config=ONE_THREAD, **options)


def normal(seed, *shape):
    """Random float32 values."""
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def whole(seed, high, *shape):
    """Random int32 values from 0 to below ``high``."""
    return np.random.RandomState(seed).randint(0, high, size=shape).astype(np.int32)


def inputs(features, labels=None, batch=4):
    """An input_fn over arrays, in their order."""

    def input_fn(mode):
        arrays = features if mode == PREDICT or labels is None else (features, labels)
        data = tf.data.Dataset.from_tensor_slices(arrays).batch(batch, drop_remainder=True)
        return data.repeat() if mode == TRAIN else data

    return input_fn


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {"/".join(key) if isinstance(key, tuple) else key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    return plain(value.tolist()) if isinstance(value, (np.ndarray, np.generic)) else value


def report(**found):
    """Prints the last line of a script."""
    print(json.dumps(plain(found), sort_keys=True))


def run(estimator, input_fn, steps=STEPS, predicts=True):
    """Trains, evaluates, predicts, and reports."""
    estimator.train(input_fn, max_steps=steps)
    metrics = estimator.evaluate(input_fn)
    report(metrics=metrics, predictions=list(estimator.predict(input_fn)) if predicts else [])
