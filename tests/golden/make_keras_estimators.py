"""Makes tests/golden/keras_estimators/keras_estimators.json with TensorFlow 2.15.1 and its own model_to_estimator.

python make_keras_estimators.py
"""

import json
import os
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras_estimators")
sys.path.insert(0, FOLDER)

import cases  # noqa: E402 -- beside this file, which is run as a script
import tensorflow as tf  # noqa: E402

results = {name: cases.run(tf.keras.estimator.model_to_estimator, name, tempfile.mkdtemp()) for name in cases.CASES}
with open(os.path.join(FOLDER, "keras_estimators.json"), "w") as file:
    json.dump(results, file, indent=1, sort_keys=True)
    file.write("\n")
