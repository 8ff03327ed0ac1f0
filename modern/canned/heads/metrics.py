"""Metrics of tf.estimator's heads that Keras lacks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

_SMOOTHING = 1e-6  # the value in tf.compat.v1.metrics.auc


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class AccuracyBaseline(tf_keras.metrics.Mean):
    """The accuracy of always predicting the more frequent of two classes: max(mean, 1 - mean) of labels in [0, 1].

    Example:
        >>> metric = AccuracyBaseline()
        >>> metric.update_state([0.0, 1.0, 0.0, 0.0])
        >>> float(metric.result())
        0.75
    """

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Adds labels of any shape."""
        super().update_state(*args, **kwargs)

    def result(self) -> Any:
        """Returns a scalar."""
        mean = super().result()
        return tf.maximum(mean, 1 - mean)


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class TrapezoidalAUC(tf_keras.metrics.AUC):
    """The area under a curve as TensorFlow 1's heads report it, by trapezoids even for a precision-recall curve.

    Keras interpolates precision between points instead, so that ``auc_precision_recall`` of one model differs between
    ``tf.compat.v1.estimator`` and ``tf.estimator``. The formula, including its smoothing, is that of ``tf.compat.v1.metrics.auc``.
    """

    def result(self) -> Any:
        """Returns a scalar."""
        recall = (self.true_positives + _SMOOTHING) / (self.true_positives + self.false_negatives + _SMOOTHING)
        if self.curve.value == "ROC":
            x, y = self.false_positives / (self.false_positives + self.true_negatives + _SMOOTHING), recall
        else:
            x, y = recall, (self.true_positives + _SMOOTHING) / (self.true_positives + self.false_positives + _SMOOTHING)
        return tf.reduce_sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2)
