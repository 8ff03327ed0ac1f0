"""Runs a script whose model function stays whole, and prints as JSON what two evaluations, a served model and checkpoints have."""

import json
import runpy
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

script, *arguments = sys.argv[1:]
names = runpy.run_path(script)
folder = Path(tempfile.mkdtemp())
model, input_fn = names["Model"](model_dir=str(folder), params={"rate": 0.05}), names["input_fn"]
names["train"](model, input_fn=input_fn, steps=6)
first, second = (names["evaluate"](model, input_fn=input_fn) for _ in range(2))
names["train"](model, input_fn=input_fn, steps=2)

features = next(iter(input_fn()))[0]
spec = {"x": tf.TensorSpec([None, 5], tf.float32), "kind": tf.TensorSpec([None, 1], tf.string)}
served = tf.saved_model.load(
    names["export_saved_model"](model, str(folder / "served"), names["raw_serving_input"](spec)).decode()
)
answers = served.signatures["serving_default"](**features)

again = names["Model"](model_dir=str(folder), params={"rate": 0.05})
restored = [row["probabilities"] for row in names["predict"](again, input_fn=input_fn)]
own = [row["probabilities"] for row in names["predict"](model, input_fn=input_fn)]
fresh = names["Model"](params={"rate": 0.05})
next(names["predict"](fresh, input_fn=input_fn))
found = {
    "copies": float(np.abs(fresh.made["net/weights"] - fresh.made["net/target"]).max()),
    "evaluations": [first, second],
    "signature": {name: np.asarray(value).tolist() for name, value in answers.items()},
    "classes": np.argmax(own[:16], 1).tolist(),
    "restored": float(np.abs(np.subtract(own, restored)).max()),
    "unused": float(model.made["net/unused"]),
    "step": int(model.optimizer.iterations),
}
sys.stdout.write(json.dumps(found, default=float) + "\n")
