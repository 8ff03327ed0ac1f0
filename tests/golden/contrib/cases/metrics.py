"""Cases of tf.contrib.metrics: three updates, then the value, with weights and without, with names and collections."""

import numpy as np
import tensorflow as tf
from record import floats

metrics = tf.contrib.metrics


def _streamed(**made):
    """Values and updates of named metrics."""
    return {
        "run": {name: metric[1] for name, metric in made.items()},
        "value": {name: metric[0] for name, metric in made.items()},
    }


def _binary():
    predictions = tf.constant([0.1, 0.8, 0.4, 0.6, 0.35])
    labels = tf.constant([0.0, 1.0, 1.0, 0.0, 1.0])
    return predictions, labels, tf.constant([1.0, 0.5, 2.0, 0.0, 1.0])


def _classes():
    return tf.constant([0, 2, 1, 1, 0]), tf.constant([0, 1, 1, 2, 0]), tf.constant([1.0, 0.5, 2.0, 0.0, 1.0])


def means():
    values, weights = floats(2, 3), tf.constant([[0.5, 1.0, 0.0], [2.0, 1.0, 1.0]])
    return _streamed(
        mean=metrics.streaming_mean(values),
        weighted=metrics.streaming_mean(values, weights, "values", "updates", "named"),
        tensor=metrics.streaming_mean_tensor(values, weights),
        less=metrics.streaming_percentage_less(values, 0.2, weights),
        count=metrics.count(values, weights),
        concatenated=metrics.streaming_concat(values, axis=1, max_size=7),
    )


def classes():
    predictions, labels, weights = _classes()
    return _streamed(
        accuracy=metrics.streaming_accuracy(predictions, labels),
        weighted=metrics.streaming_accuracy(predictions, labels, weights, name="named"),
        iou=metrics.streaming_mean_iou(predictions, labels, 3, weights),
        kappa=metrics.cohen_kappa(labels, predictions, 3, weights),
    )


def confusion():
    predictions, labels, weights = _classes()
    return {
        "matrix": metrics.confusion_matrix(labels, predictions),
        "weighted": metrics.confusion_matrix(labels, predictions, 4, tf.float32, "named", weights),
        "accuracy": metrics.accuracy(predictions, labels),
        "weighted accuracy": metrics.accuracy(predictions, labels, weights),
    }


def counts():
    predictions, labels, weights = _binary()
    predicted, thresholds = predictions > 0.5, [0.2, 0.5]
    return _streamed(
        tp=metrics.streaming_true_positives(predicted, labels, weights),
        tn=metrics.streaming_true_negatives(predicted, labels),
        fp=metrics.streaming_false_positives(predicted, labels),
        fn=metrics.streaming_false_negatives(predicted, labels, weights),
        tp_at=metrics.streaming_true_positives_at_thresholds(predictions, labels, thresholds, weights),
        tn_at=metrics.streaming_true_negatives_at_thresholds(predictions, labels, thresholds),
        fp_at=metrics.streaming_false_positives_at_thresholds(predictions, labels, thresholds),
        fn_at=metrics.streaming_false_negatives_at_thresholds(predictions, labels, thresholds, weights),
    )


def rates():
    predictions, labels, weights = _binary()
    predicted, thresholds = predictions > 0.5, [0.2, 0.5]
    return _streamed(
        precision=metrics.streaming_precision(predicted, labels, weights),
        recall=metrics.streaming_recall(predicted, labels),
        fpr=metrics.streaming_false_positive_rate(predicted, labels, weights),
        fnr=metrics.streaming_false_negative_rate(predicted, labels),
        precision_at=metrics.streaming_precision_at_thresholds(predictions, labels, thresholds, weights),
        recall_at=metrics.streaming_recall_at_thresholds(predictions, labels, thresholds),
        fpr_at=metrics.streaming_false_positive_rate_at_thresholds(predictions, labels, thresholds, weights),
        fnr_at=metrics.streaming_false_negative_rate_at_thresholds(predictions, labels, thresholds),
    )


def curves():
    predictions, labels, weights = _binary()
    return _streamed(
        auc=metrics.streaming_auc(predictions, labels),
        pr=metrics.streaming_auc(predictions, labels, weights, num_thresholds=11, curve="PR", name="named"),
        points=metrics.streaming_curve_points(labels, predictions, num_thresholds=5),
        specificity=metrics.streaming_specificity_at_sensitivity(predictions, labels, 0.5, weights),
        sensitivity=metrics.streaming_sensitivity_at_specificity(predictions, labels, 0.4, num_thresholds=20),
        recall=metrics.recall_at_precision(labels, predictions, 0.6, weights, num_thresholds=50),
        strict=metrics.recall_at_precision(labels, predictions, 0.9, num_thresholds=50, strict_mode=True),
        precision=metrics.precision_at_recall(labels, predictions, 0.6, num_thresholds=50),
        histogram=metrics.auc_using_histogram(labels > 0.5, predictions, [0.0, 1.0], nbins=10),
    )


def curves_of_all_scores():
    predictions, labels, _ = _binary()
    dynamic = metrics.streaming_dynamic_auc(labels, predictions)
    equal = metrics.precision_recall_at_equal_thresholds(labels > 0.5, predictions, num_thresholds=5)
    interval = metrics.auc_with_confidence_intervals(labels, predictions)
    return {
        "run": [dynamic[1], equal[1], interval[1]],
        "dynamic": dynamic[0],
        "equal": list(equal[0]),
        "interval": list(interval[0]),
    }


def f1_score():
    predictions, labels, weights = _binary()
    return _streamed(
        plain=metrics.f1_score(labels, predictions), weighted=metrics.f1_score(labels, predictions, weights, num_thresholds=20)
    )


def at_k():
    scores = tf.constant([[0.1, 0.5, 0.4], [0.6, 0.1, 0.3]])
    labels, one = tf.constant([[1, 2], [2, 0]], tf.int64), tf.constant([1, 2], tf.int64)
    _, top = tf.nn.top_k(scores, 2)
    top = tf.cast(top, tf.int64)
    return _streamed(
        recall=metrics.streaming_recall_at_k(scores, one, 1),
        sparse_recall=metrics.streaming_sparse_recall_at_k(scores, labels, 2, weights=tf.constant([0.5, 1.0])),
        sparse_recall_of=metrics.streaming_sparse_recall_at_k(scores, labels, 1, class_id=1),
        top_recall=metrics.sparse_recall_at_top_k(labels, top),
        precision=metrics.streaming_sparse_precision_at_k(scores, labels, 2),
        precision_of=metrics.streaming_sparse_precision_at_k(scores, labels, 1, class_id=0),
        top_precision=metrics.streaming_sparse_precision_at_top_k(top, labels, class_id=2),
        average=metrics.streaming_sparse_average_precision_at_k(scores, labels, 2, tf.constant([0.5, 1.0])),
        top_average=metrics.streaming_sparse_average_precision_at_top_k(top, labels),
    )


def errors():
    predictions, labels, weights = floats(2, 3), floats(2, 3), tf.constant([[0.5, 1.0, 0.0], [2.0, 1.0, 1.0]])
    return _streamed(
        absolute=metrics.streaming_mean_absolute_error(predictions, labels, weights),
        relative=metrics.streaming_mean_relative_error(predictions, labels, tf.abs(labels) + 1),
        squared=metrics.streaming_mean_squared_error(predictions, labels),
        root=metrics.streaming_root_mean_squared_error(predictions, labels, weights),
        covariance=metrics.streaming_covariance(predictions, labels),
        pearson=metrics.streaming_pearson_correlation(predictions, labels, weights),
        cosine=metrics.streaming_mean_cosine_distance(
            tf.nn.l2_normalize(predictions, 1), tf.nn.l2_normalize(labels, 1), dim=1, name="named"
        ),
    )


def aggregated():
    predictions, labels, _ = _classes()
    accuracy, mean = metrics.streaming_accuracy(predictions, labels), metrics.streaming_mean(floats(2))
    values, updates = metrics.aggregate_metrics(accuracy, mean)
    values_by_name, updates_by_name = metrics.aggregate_metric_map({"accuracy": accuracy, "mean": mean})
    same = [updates_by_name["accuracy"] is updates[0], updates_by_name["mean"] is updates[1]]
    return {"run": updates, "values": values, "by name": values_by_name, "same": same}


def sets():
    first, second = tf.constant([[1, 2], [3, 3]]), tf.constant([[2, 5], [3, 4]])
    return [
        metrics.set_difference(first, second),
        metrics.set_difference(first, second, aminusb=False),
        metrics.set_intersection(first, second),
        metrics.set_union(first, second),
        metrics.set_size(metrics.set_union(first, second)),
        np.int64(1),
    ]
