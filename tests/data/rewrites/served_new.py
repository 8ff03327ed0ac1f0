"""The rewrite of served_old.py; ``--export`` says what is wrong with its export, if anything."""

import argparse
import tempfile

import numpy as np
import tensorflow as tf
import tf_keras as keras

parser = argparse.ArgumentParser()
parser.add_argument("--export", default="right", choices=["right", "two", "logits", "renamed", "one signature", "none"])
export = parser.parse_args().export

random = np.random.RandomState(0)
x = random.randn(96, 4).astype(np.float32)
batches = tf.data.Dataset.from_tensor_slices((x, np.float32(x.sum(1, keepdims=True) > 0))).batch(8)
model = keras.Sequential([keras.Input([4]), keras.layers.Dense(1, name="logits")])
model.compile(keras.optimizers.legacy.Adam(0.01, epsilon=1e-8), keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(batches, verbose=0)


@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
def serve(x):
    logits = model(x)
    name = "scores" if export == "renamed" else "probabilities"
    return {name: logits if export == "logits" else tf.sigmoid(logits), **({"more": logits} if export == "renamed" else {})}


@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
def serve_logits(x):
    return {"logits": model(x)}


signatures = {"serving_default": serve, "logits": serve_logits}
if export == "one signature":
    del signatures["logits"]
if export != "none":
    with tempfile.TemporaryDirectory() as folder:  # gone before the comparison reads it
        if export == "two":
            model.save(f"{folder}/keras", save_format="tf")  # with another signature of the same name
        tf.saved_model.save(model, folder, signatures)
