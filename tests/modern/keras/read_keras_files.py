"""Loads models of Keras and writes their logits: ``read_keras_files.py ANSWERS.npz MODEL...``."""

import sys

import numpy as np
import tf_keras

from estimator_bridge.modern.keras import graph_layer  # noqa: F401 -- .h5 files do not say where a layer's class is
from tests.modern.jobs import WORDS, X

models = [tf_keras.models.load_model(path) for path in sys.argv[2:]]
np.savez(sys.argv[1], *[model.predict({"x": X, "words": WORDS}, verbose=0)["logits"] for model in models])
