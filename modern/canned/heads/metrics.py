"""Metrics of tf.estimator's heads that Keras has not."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

_SMOOTHING = 1e-6  # that of tf.compat.v1.metrics.auc


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class AccuracyBaseline(tf_keras.metrics.Mean):
    """The accuracy of always answering the more frequent of two classes: max(mean, 1 - mean) of labels in [0, 1].

    Example:
        >>> metric = AccuracyBaseline()
        >>> metric.update_state([0.0, 1.0, 0.0, 0.0])
        >>> float(metric.result())
        0.75
    """

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Takes in labels of any shape."""
        super().update_state(*args, **kwargs)

    def result(self) -> Any:
        """A scalar."""
        mean = super().result()
        return tf.maximum(mean, 1 - mean)


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class TrapezoidalAUC(tf_keras.metrics.AUC):
    """The area under a curve as TensorFlow 1's heads report it: trapezoids, also under a precision-recall curve.

    Keras interpolates precision between its points instead, so that for one model ``auc_precision_recall`` differs between
    ``tf.compat.v1.estimator`` and ``tf.estimator``. The formula, smoothing included, is that of ``tf.compat.v1.metrics.auc``.
    """

    def result(self) -> Any:
        """A scalar."""
        recall = (self.true_positives + _SMOOTHING) / (self.true_positives + self.false_negatives + _SMOOTHING)
        if self.curve.value == "ROC":
            x, y = self.false_positives / (self.false_positives + self.true_negatives + _SMOOTHING), recall
        else:
            x, y = recall, (self.true_positives + _SMOOTHING) / (self.true_positives + self.false_positives + _SMOOTHING)
        return tf.reduce_sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2)
