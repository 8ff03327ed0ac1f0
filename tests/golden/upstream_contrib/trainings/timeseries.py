"""Regressors of contrib.timeseries, which predict what follows."""

import numpy as np
import tensorflow as tf
from job import STEPS, VARIANT, config, normal, report
from tensorflow.contrib import timeseries

TIMES = list(range(40))
VALUES = normal(0, 40) * 0.1 + np.array(TIMES, np.float32) % 5


def estimator():
    """The regressor of a variant."""
    if VARIANT == "autoregressive":
        return timeseries.ARRegressor(
            periodicities=5, input_window_size=6, output_window_size=3, num_features=1, hidden_layer_sizes=[4],
            loss=timeseries.ARModel.NORMAL_LIKELIHOOD_LOSS, optimizer=tf.train.AdamOptimizer(0.05), config=config(),
        )  # fmt: skip
    return timeseries.StructuralEnsembleRegressor(
        periodicities=5, num_features=1, cycle_num_latent_values=3, optimizer=tf.train.AdamOptimizer(0.05), config=config()
    )


def windows():
    """Batches of four windows."""
    size = 9 if VARIANT == "autoregressive" else 12
    starts = [(7 * start) % (len(TIMES) - size) for start in range(12)]
    times = np.array([TIMES[start : start + size] for start in starts])
    return tf.data.Dataset.from_tensor_slices(series(times)).batch(4, drop_remainder=True).repeat()


def series(times):
    """Features of some times."""
    names = timeseries.TrainEvalFeatures
    return {names.TIMES: times.astype(np.int64), names.VALUES: VALUES[times][..., np.newaxis]}


found = estimator()
found.train(windows, max_steps=STEPS)
evaluation = found.evaluate(lambda: tf.data.Dataset.from_tensors(series(np.array([TIMES]))), steps=1)
(predictions,) = found.predict(timeseries.predict_continuation_input_fn(evaluation, steps=6))
report(
    loss=evaluation["loss"],
    mean=evaluation["mean"][0, -5:],
    predicted=predictions["mean"],
    covariance=predictions["covariance"],
)
