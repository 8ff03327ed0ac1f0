"""Fits one model on one replica and on two, and compares them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from estimator_bridge import modern  # noqa: E402 -- the devices come first
from estimator_bridge.errors import BridgeError  # noqa: E402
from tests.modern.jobs import WORDS, X, estimator, linear, minimizing, regression_input, spec, v1  # noqa: E402

folder = Path(sys.argv[1])
model_fn = minimizing(lambda: v1.train.AdamOptimizer(0.05))
strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
with strategy.scope():
    both = modern.from_estimator(estimator(model_fn, folder / "both"), regression_input)
one = modern.from_estimator(estimator(model_fn, folder / "one"), regression_input)
for model in (one, both):
    model.fit(regression_input(), steps_per_epoch=6, verbose=0)
for wanted, variable in zip(one.weights, both.weights, strict=True):
    np.testing.assert_allclose(variable, wanted, rtol=1e-5, atol=1e-6, err_msg=wanted.name)


def normalized(features: Any, labels: Any, mode: Any) -> Any:
    average = v1.get_variable("average", initializer=0.0, trainable=False)
    logits = linear(features["x"]) + average
    if mode == "infer":
        return v1.estimator.EstimatorSpec(mode, predictions={"average": logits})
    loss = tf.reduce_mean(tf.square(logits - labels))
    with tf.control_dependencies([v1.assign(average, tf.reduce_mean(features["x"]))]):
        return spec(mode, loss, v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step()))


with strategy.scope():
    averaging = modern.from_estimator(estimator(normalized, folder / "averages"), regression_input)
averaging.fit(regression_input(), steps_per_epoch=2, verbose=0)
weights = {variable.name.partition(":")[0]: variable.numpy() for variable in averaging.weights}
expected = X @ weights["dense/kernel"] + weights["dense/bias"] + X[8:16].mean()  # of both halves of the second batch
np.testing.assert_allclose(averaging.predict({"x": X, "words": WORDS}, verbose=0)["average"], expected, rtol=1e-5, atol=1e-6)
with pytest.raises(BridgeError, match="means over 2 replicas"):
    averaging.save(str(folder / "saved"))
with pytest.raises(BridgeError, match="one device"):
    both.fit(regression_input(), steps_per_epoch=1, validation_data=regression_input(8, 1))
assert both.weights[-1] == 6, "refused after training had begun"
