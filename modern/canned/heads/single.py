"""Heads with one objective: two classes, one of several classes, any number of several classes, or numbers."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.heads.base import (
    AVERAGE_LOSS,
    LABEL_MEAN,
    Head,
    HeadBatch,
    HeadMetric,
    Predictions,
    Tensor,
    against,
    check_in_range,
    to_column,
)

_metrics = tf_keras.metrics
_SMOOTHING = 1e-6  # the value in tf.compat.v1.metrics.auc


class _Thresholded(Head):
    """A head with metrics at several thresholds of its probabilities."""

    thresholds: Sequence[float] = ()

    def curves(self, inputs_of: Callable[[HeadBatch], Sequence[Tensor]], ending: str = "") -> Iterator[HeadMetric]:
        make = TrapezoidalAUC if self.exact else _metrics.AUC
        yield HeadMetric(f"auc{ending}", make, inputs_of)
        yield HeadMetric(f"auc_precision_recall{ending}", functools.partial(make, curve="PR"), inputs_of)

    def at_thresholds(self, key: str) -> Iterator[HeadMetric]:
        for threshold in self.thresholds:
            yield self._accuracy_at(threshold, key)
            for name, make in (("precision", _metrics.Precision), ("recall", _metrics.Recall)):
                at = functools.partial(make, thresholds=threshold)
                yield HeadMetric(f"{name}/positive_threshold_{threshold:g}", at, against(key))

    def _accuracy_at(self, threshold: float, key: str) -> HeadMetric:
        """Returns the accuracy at a threshold; an equal probability is positive in TensorFlow 1, negative in Keras."""
        compare: Callable[..., Tensor] = tf.greater_equal if self.exact else tf.greater

        def inputs_of(batch: HeadBatch) -> Sequence[Tensor]:
            return batch.labels, tf.cast(compare(batch.predictions[key], threshold), tf.float32)

        return HeadMetric(f"accuracy/positive_threshold_{threshold:g}", _metrics.Accuracy, inputs_of)


def _predict_class(head: Head, logits: Tensor, scores: Tensor, count: int) -> Predictions:
    """Returns the predictions of a head that chooses the class with the highest of ``count`` scores."""
    ids = tf.argmax(scores, -1)[..., tf.newaxis]
    every = head.all_class_ids(logits, count)
    return {
        "logits": logits,
        "probabilities": tf.nn.softmax(scores),
        "class_ids": ids,
        "classes": head.classes(ids),
        "all_class_ids": every,
        "all_classes": head.classes(every),
    }


class BinaryHead(_Thresholded):
    """Two classes from one logit, with sigmoid cross entropy; labels are in [0, 1] or names of a vocabulary."""

    def call(self, logits: Tensor) -> Predictions:
        """Returns the predictions for logits [batch, units]."""
        both = tf.concat([tf.zeros_like(logits), logits], -1)
        return {**_predict_class(self, logits, both, 2), "logistic": tf.sigmoid(logits)}

    def process_labels(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the labels as numbers, checked to be in range."""
        labels = to_column(labels, logits)
        return check_in_range(tf.cast(self._label_ids(labels) if self.vocabulary else labels, tf.float32), 2)

    def losses_of(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the cross entropy of each example."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)

    def measures(self) -> Iterator[HeadMetric]:
        """Yields the metrics in the order of ``tf.estimator``."""
        yield AVERAGE_LOSS
        yield HeadMetric("accuracy", _metrics.Accuracy, against("class_ids"))
        yield HeadMetric("precision", _metrics.Precision, against("class_ids"))
        yield HeadMetric("recall", _metrics.Recall, against("class_ids"))
        yield HeadMetric("prediction/mean", _metrics.Mean, lambda batch: (batch.predictions["logistic"],))
        yield LABEL_MEAN
        yield HeadMetric("accuracy_baseline", AccuracyBaseline, LABEL_MEAN.inputs_of)
        yield from self.curves(against("logistic"))
        yield from self.at_thresholds("logistic")


class MultiClassHead(Head):
    """One of several classes, with softmax cross entropy; labels are class ids or names of a vocabulary."""

    def call(self, logits: Tensor) -> Predictions:
        """Returns the predictions for logits [batch, units]."""
        return _predict_class(self, logits, logits, self.units)

    label_width = 1

    def process_labels(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the labels as numbers, checked to be in range."""
        labels = to_column(labels, logits)
        return check_in_range(self._label_ids(labels) if self.vocabulary else labels, self.units)

    def losses_of(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the cross entropy of each example."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(tf.squeeze(labels, -1), logits)[..., tf.newaxis]

    def measures(self) -> Iterator[HeadMetric]:
        """Yields the metrics in the order of ``tf.estimator``."""
        yield AVERAGE_LOSS
        yield HeadMetric("accuracy", _metrics.Accuracy, against("class_ids"))


class MultiLabelHead(_Thresholded):
    """Any number of several classes, with sigmoid cross entropy averaged over classes.

    Labels are 0 and 1 of shape [batch, units], or a SparseTensor of the matching ids or names. ``judged`` has the ids of the
    classes with separate metrics.
    """

    judged: Sequence[int] = ()

    def call(self, logits: Tensor) -> Predictions:
        """Returns the predictions; tf.contrib's head does not name classes."""
        named = {} if self.exact else {"classes": self.classes(self.all_class_ids(logits, self.units))}
        return {"logits": logits, "probabilities": tf.sigmoid(logits), **named}

    def process_labels(self, labels: Any, logits: Tensor) -> Tensor:
        """Returns the labels as numbers, checked to be in range."""
        if isinstance(labels, tf.SparseTensor):
            ids = self._label_ids(labels) if labels.dtype == tf.string else labels
            labels = tf.sparse.to_indicator(ids.with_values(check_in_range(ids.values, self.units)), self.units)
        return check_in_range(tf.cast(labels, tf.float32), 2)

    def losses_of(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the cross entropy of each example."""
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits), -1, keepdims=True)

    def measures(self) -> Iterator[HeadMetric]:
        """Yields the metrics in the order of ``tf.estimator``."""
        yield AVERAGE_LOSS
        yield from self.curves(against("probabilities"))
        yield from self.at_thresholds("probabilities")
        for index in self.judged:
            yield from self._of_class(index)

    def _of_class(self, index: int) -> Iterator[HeadMetric]:
        def pair(batch: HeadBatch) -> Sequence[Tensor]:
            return batch.labels[..., index : index + 1], batch.predictions["probabilities"][..., index : index + 1]

        name = self.vocabulary[index] if self.vocabulary else f"class{index}"
        yield HeadMetric(f"probability_mean/{name}", _metrics.Mean, lambda batch: pair(batch)[1:])
        yield from self.curves(pair, f"/{name}")


class RegressionHead(Head):
    """Predicts ``inverse_link(logits)`` or the logits themselves; the default loss is the squared error."""

    inverse_link: Callable[[Tensor], Tensor] | None = None

    def call(self, logits: Tensor) -> Predictions:
        """Returns the predictions for logits [batch, units]."""
        if self.inverse_link is None:
            return {"predictions": tf.identity(logits)}
        return {"predictions": self.inverse_link(logits), "logits": logits}

    def logits_in(self, predictions: Predictions) -> Tensor:
        """Returns the logits, which are the predictions themselves without a link function."""
        return predictions["predictions" if self.inverse_link is None else "logits"]

    @property
    def loss_width(self) -> int:
        """The number of losses of an example: each number has its own loss and, optionally, its own weight."""
        return self.units

    def process_labels(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the labels as float32."""
        return tf.cast(to_column(labels, logits), tf.float32)

    def losses_of(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the squared error of each number."""
        return tf.math.squared_difference(logits, labels)

    def measures(self) -> Iterator[HeadMetric]:
        """Yields the metrics in the order of ``tf.estimator``."""
        yield AVERAGE_LOSS
        yield HeadMetric("prediction/mean", _metrics.Mean, lambda batch: (batch.predictions["predictions"],))
        yield LABEL_MEAN


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class AccuracyBaseline(tf_keras.metrics.Mean):
    """The accuracy of always predicting the more frequent of two classes: max(mean, 1 - mean) of labels in [0, 1].

    Example:
        >>> metric = AccuracyBaseline()
        >>> _ = metric.update_state([0.0, 1.0, 0.0, 0.0])
        >>> float(metric.result())
        0.75
    """

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
