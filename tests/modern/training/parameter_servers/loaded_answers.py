"""Loads a SavedModel of the large table by TensorFlow alone, and prints its answers and data files: loaded_answers.py FOLDER IDS."""

import json
import sys
from pathlib import Path

import tensorflow as tf

folder, ids = sys.argv[1:]
signature = tf.saved_model.load(folder).signatures["serving_default"]
(answers,) = signature(ids=tf.constant(json.loads(ids), tf.int64)).values()
files = sorted(path.name for path in Path(folder, "variables").iterdir())
sys.stdout.write(json.dumps([answers.numpy().tolist(), files]) + "\n")
