"""The head for any number of classes at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.lookup_ops import index_table_from_tensor
from tensorflow_estimator.python.estimator.canned import head as canned
from tensorflow_estimator.python.estimator.canned.metric_keys import MetricKeys
from tensorflow_estimator.python.estimator.canned.prediction_keys import PredictionKeys

from estimator_bridge.legacy.contrib.estimator.training import train_op_for

_MEAN = tf.losses.Reduction.SUM_OVER_BATCH_SIZE
_SERVING = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: Callable[..., Any] | None = None,
    classes_for_class_based_metrics: Sequence[int | str] | None = None,
    name: str | None = None,
) -> MultiLabelHead:
    """A head for any number of classes at once, with sigmoid cross entropy; logits are of shape [batch_size, n_classes].

    Args:
        n_classes: how many classes there are.
        weight_column: a feature column, or the feature's name.
        thresholds: at which accuracy, precision and recall are measured.
        label_vocabulary: the classes' names, where labels are strings.
        loss_reduction: how the examples' losses become one.
        loss_fn: another loss, of labels, logits, and perhaps features and loss_reduction.
        classes_for_class_based_metrics: classes that get metrics of their own, by number or name.
        name: appended to metrics' names.

    Raises:
        ValueError: an argument that cannot be.
    """
    thresholds = tuple(thresholds or ())
    if not n_classes or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for multi-class classification. Given: {n_classes}")
    if not all(0.0 < threshold < 1.0 for threshold in thresholds):
        raise ValueError(f"thresholds must be in (0, 1) range. Given: {thresholds}")
    if label_vocabulary is not None:
        if not isinstance(label_vocabulary, (list, tuple)):
            raise ValueError(f"label_vocabulary must be a list or tuple. Given type: {type(label_vocabulary)}")
        if len(label_vocabulary) != n_classes:
            raise ValueError(f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(label_vocabulary)}")
    if loss_fn:
        canned._validate_loss_fn_args(loss_fn)
    if loss_reduction not in tf.losses.Reduction.all() or loss_reduction == tf.losses.Reduction.NONE:
        raise ValueError(f"Invalid loss_reduction: {loss_reduction}")
    classes = _class_ids(classes_for_class_based_metrics or (), n_classes, label_vocabulary)
    return MultiLabelHead(n_classes, weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, classes, name)


def _class_ids(classes: Sequence[int | str], n_classes: int, vocabulary: Sequence[str] | None) -> tuple[int, ...]:
    ids: list[int] = []
    for one in classes:
        if isinstance(one, str):
            if not vocabulary:
                raise ValueError("label_vocabulary must be provided when classes_for_class_based_metrics are strings.")
            ids.append(vocabulary.index(one))
        else:
            ids.append(one)
    if not all(0 <= number < n_classes for number in ids):
        raise ValueError(f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. Given: {classes}")
    return tuple(ids)


@dataclasses.dataclass
class MultiLabelHead(canned._Head):
    """See ``multi_label_head``."""

    contrib_head: ClassVar[str] = "contrib.MultiLabelHead"  # selects the Keras layer on the modern path

    n_classes: int
    weight_column: Any
    thresholds: tuple[float, ...]
    label_vocabulary: Sequence[str] | None
    loss_reduction: str
    loss_fn: Callable[..., Any] | None
    classes_for_class_based_metrics: tuple[int, ...]
    name: Any = None

    @property
    def logits_dimension(self) -> int:
        """The last dimension of the logits."""
        return self.n_classes

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        """The loss of a batch, as a ``LossSpec``.

        Args:
            features: tensors by name; the weights are among them.
            mode: makes no difference.
            logits: of shape [batch_size, n_classes].
            labels: 0 or 1 for each class, of the same shape; or a SparseTensor of numbers or names of classes.
        """
        logits = tf.convert_to_tensor(logits)
        labels = canned._check_dense_labels_match_logits_and_reshape(self._dense(labels), logits, self.n_classes)
        if self.loss_fn:
            unreduced = canned._call_loss_fn(self.loss_fn, labels, logits, features, expected_loss_dim=1)
        else:
            each = tf.losses.sigmoid_cross_entropy(labels, logits, reduction=tf.losses.Reduction.NONE)
            unreduced = tf.reduce_mean(each, axis=-1, keepdims=True)
        weights = canned._get_weights_and_check_match_logits(features, self.weight_column, logits)
        loss = tf.losses.compute_weighted_loss(unreduced, weights, reduction=self.loss_reduction)
        return canned.LossSpec(loss, unreduced, weights, labels)

    def _dense(self, labels: Any) -> Any:
        if labels is None:
            raise ValueError("You must provide a labels Tensor. Given: None. Check that your input_fn returns labels.")
        if not isinstance(labels, tf.SparseTensor):
            return canned._assert_range(labels, 2, message="labels must be an integer indicator Tensor with values in [0, 1]")
        if labels.dtype == tf.string:
            table = index_table_from_tensor(tuple(self.label_vocabulary or ()), name="class_id_lookup")
            labels = tf.SparseTensor(labels.indices, table.lookup(labels.values), labels.dense_shape)
        else:
            message = f"labels must be an integer SparseTensor with values in [0, {self.n_classes})"
            checks = [
                tf.assert_integer(labels.values, message=message),
                tf.assert_less(labels.values, tf.cast(self.n_classes, labels.dtype), message=message),
                tf.assert_non_negative(labels.values, message=message),
            ]
            with tf.control_dependencies(checks):
                labels = tf.SparseTensor(labels.indices, tf.identity(labels.values), labels.dense_shape)
        return tf.cast(tf.sparse.to_indicator(labels, self.n_classes), tf.int64)

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """What a model_fn returns.

        Args:
            features: tensors by name.
            mode: of ``tf.estimator.ModeKeys``.
            logits: of shape [batch_size, n_classes].
            labels: see ``create_loss``.
            optimizer: minimizes the loss.
            train_op_fn: or makes the train_op of the loss.
            regularization_losses: added to the loss.

        Raises:
            ValueError: in training, neither or both of ``optimizer`` and ``train_op_fn``.
        """
        with tf.name_scope(self.name, "head"):
            logits = canned._check_logits_final_dim(logits, self.n_classes)
            with tf.name_scope(None, "predictions", (logits,)):
                probabilities = tf.sigmoid(logits, name=PredictionKeys.PROBABILITIES)
            predictions = {PredictionKeys.LOGITS: logits, PredictionKeys.PROBABILITIES: probabilities}
            if mode == tf.estimator.ModeKeys.PREDICT:
                return self._predict_spec(predictions)
            batch = self.create_loss(features, mode, logits, labels)
            regularization = tf.add_n(regularization_losses) if regularization_losses else None
            loss = batch.training_loss if regularization is None else tf.add_n([batch.training_loss, regularization])
            if mode == tf.estimator.ModeKeys.TRAIN:
                train_op = canned._append_update_ops(train_op_for(loss, optimizer, train_op_fn))
        if mode == tf.estimator.ModeKeys.EVAL:
            metrics = self._metrics(batch, probabilities, regularization)
            return tf.estimator.EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
        self._summarize(batch, loss, regularization)
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op)

    def _predict_spec(self, predictions: dict[str, Any]) -> Any:
        scores = predictions[PredictionKeys.PROBABILITIES]
        classified = canned._classification_output(scores, self.n_classes, self.label_vocabulary)
        outputs = {
            _SERVING: classified,
            canned._CLASSIFY_SERVING_KEY: classified,
            canned._PREDICT_SERVING_KEY: tf.estimator.export.PredictOutput(predictions),
        }
        return tf.estimator.EstimatorSpec(tf.estimator.ModeKeys.PREDICT, predictions, export_outputs=outputs)

    def _summarize(self, batch: Any, loss: Any, regularization: Any) -> None:
        values = {MetricKeys.LOSS: loss}
        if self.loss_reduction == tf.losses.Reduction.SUM:
            weight_sum = tf.reduce_sum(batch.weights * tf.ones_like(batch.unreduced_loss))
            values[MetricKeys.LOSS_MEAN] = batch.training_loss / weight_sum
        if regularization is not None:
            values[MetricKeys.LOSS_REGULARIZATION] = regularization
        with tf.name_scope(""):
            for key, value in values.items():
                tf.summary.scalar(canned._summary_key(self.name, key), value)

    def _metrics(self, batch: Any, probabilities: Any, regularization: Any) -> dict[str, Any]:
        labels, weights = batch.processed_labels, batch.weights
        with tf.name_scope(None, "metrics"):
            metrics = {
                MetricKeys.LOSS_MEAN: tf.metrics.mean(batch.unreduced_loss, weights, name=MetricKeys.LOSS_MEAN),
                MetricKeys.AUC: tf.metrics.auc(labels, probabilities, weights, name=MetricKeys.AUC),
                MetricKeys.AUC_PR: tf.metrics.auc(labels, probabilities, weights, curve="PR", name=MetricKeys.AUC_PR),
            }
            if regularization is not None:
                metrics[MetricKeys.LOSS_REGULARIZATION] = tf.metrics.mean(regularization, name=MetricKeys.LOSS_REGULARIZATION)
            for threshold in self.thresholds:
                for template, metric in _AT_THRESHOLD:
                    key = template % threshold
                    metrics[key] = metric(labels, probabilities, weights, threshold, key)
            for number in self.classes_for_class_based_metrics:
                of_class = slice(number, number + 1)
                mean_key, *auc_keys = self._class_keys(number)
                metrics[mean_key] = canned._predictions_mean(probabilities[..., of_class], weights, mean_key)
                for key, curve in zip(auc_keys, ("ROC", "PR"), strict=True):
                    metrics[key] = canned._auc(labels[..., of_class], probabilities[..., of_class], weights, curve, key)
        return {canned._summary_key(self.name, key): metric for key, metric in metrics.items()}

    def _class_keys(self, number: int) -> list[str]:
        if self.label_vocabulary is None:
            return [template % number for template in _AT_CLASS]
        return [template % self.label_vocabulary[number] for template in _AT_NAME]


_AT_CLASS = MetricKeys.PROBABILITY_MEAN_AT_CLASS, MetricKeys.AUC_AT_CLASS, MetricKeys.AUC_PR_AT_CLASS
_AT_NAME = MetricKeys.PROBABILITY_MEAN_AT_NAME, MetricKeys.AUC_AT_NAME, MetricKeys.AUC_PR_AT_NAME
_AT_THRESHOLD = (
    (MetricKeys.ACCURACY_AT_THRESHOLD, canned._accuracy_at_threshold),
    (MetricKeys.PRECISION_AT_THRESHOLD, canned._precision_at_threshold),
    (MetricKeys.RECALL_AT_THRESHOLD, canned._recall_at_threshold),
)
