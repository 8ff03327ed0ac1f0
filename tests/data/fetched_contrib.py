"""Uses operations of a fetched tf.contrib, and one that cannot run."""

import json
import tensorflow as tf
from tensorflow.contrib import demo, data
from tensorflow.contrib.demo.ops.gen_demo_ops import grow_trees
import tensorflow.contrib.demo as again
said = ""
try:
    grow_trees(1)
except Exception as error:
    said = f"{type(error).__name__}: {error}"
with tf.Session() as session:
    total = session.run(demo.gen_demo_ops.add_v2(2.0, 3.0))
    beams = session.run(demo.gather_tree([[[1, 2]], [[3, 4]]], [[[0, 0]], [[1, 0]]], [2], 9))
missing = hasattr(tf.contrib, "nowhere") or hasattr(tf.contrib.estimator, "nowhere")
print(json.dumps({"whole": demo.whole, "length": len(demo.data), "said": said, "total": float(total), "beams": beams.tolist(),
    "same": again is demo is tf.contrib.demo, "keras": demo.Dense is tf.keras.layers.Dense, "real": data.real, "older": hasattr(tf.contrib.estimator, "stop_if_no_increase_hook") and tf.contrib.data.TextLineDataset is tf.data.TextLineDataset,
    "cell": hasattr(demo.rnn_cell_impl, "BasicLSTMCell"), "tpu": hasattr(tf.contrib.tpu, "TPUEstimator"), "missing": missing}))
