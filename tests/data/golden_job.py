"""Trains an example on the batches that TensorFlow 1.15.5 trained on, from its initial checkpoint; prints what came of it.

A TensorFlow 1 script, for either path: golden_job.py EXAMPLE GOLDEN_FOLDER MODEL_DIR
"""

import glob
import importlib
import json
import os
import shutil
import sys

import numpy as np
import tensorflow as tf

NAME, GOLDEN, MODEL_DIR = sys.argv[1:]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples", NAME))
example = importlib.import_module("train")
example.FLAGS([NAME, "--num_threads=1"])


def golden_batches():
    with open(os.path.join(GOLDEN, "metadata.json")) as file:
        dtypes = json.load(file)["dtypes"]
    with np.load(os.path.join(GOLDEN, "batches.npz")) as stored:
        whole = {key: stored[key].astype(dtypes[key] if dtypes[key] != "bytes" else "S") for key in stored.files}
    features = {key.split("/")[1]: values for key, values in whole.items() if key.startswith("features/")}
    return tf.data.Dataset.from_tensor_slices((features, whole["labels"]))


def make_estimator():
    if NAME == "digits":
        flags = example.FLAGS
        params = {"learning_rate": flags.learning_rate, "momentum": flags.momentum, "seed": flags.seed}
        made = tf.estimator.Estimator(example.model_fn, config=example.make_run_config(MODEL_DIR), params=params)
    else:
        made = example.make_estimator(MODEL_DIR)
    return tf.estimator.Estimator(made.model_fn, config=made.config.replace(save_summary_steps=1))


def eval_input_fn():
    data = example.load_data() if NAME == "digits" else example.load_data(example.FLAGS.num_examples)
    features, labels = data[1]
    return example.eval_input_fn(features, labels, 32 if NAME == "digits" else 1000)


def losses():
    found = {}
    for path in glob.glob(os.path.join(MODEL_DIR, "events.*")):
        for event in tf.train.summary_iterator(path):
            found.update({event.step: value.simple_value for value in event.summary.value if value.tag == "loss"})
    return [found[step] for step in sorted(found)]


def main():
    os.makedirs(MODEL_DIR)
    for path in glob.glob(os.path.join(GOLDEN, "initial", "*")):
        shutil.copy(path, MODEL_DIR)
    estimator = make_estimator()
    before = estimator.evaluate(eval_input_fn)
    estimator.train(golden_batches, steps=50)
    after = estimator.evaluate(eval_input_fn)
    with np.load(os.path.join(GOLDEN, "final.npz")) as final:
        differences = {name: float(np.max(np.abs(estimator.get_variable_value(name) - final[name]))) for name in final.files}
    outcome = {"losses": losses(), "initial": before, "final": after, "differences": differences}
    print(json.dumps(outcome, default=float))


main()
