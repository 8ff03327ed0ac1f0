"""``tf.compat.v1.estimator.experimental.KMeans`` as a Keras model."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned import columns
from estimator_bridge.modern.canned.columns import Inputs
from estimator_bridge.modern.canned.columns.inputs import select_features
from estimator_bridge.modern.canned.heads.base import sum_over_replicas
from estimator_bridge.modern.canned.model import HEAD_ARGUMENTS, LastingModel, refuse_arguments, restore_layer_classes
from estimator_bridge.modern.canned.reading import Settings
from estimator_bridge.modern.canned.weights import Saved, take_over, under

Tensor = Any
_FIXED_ARGUMENTS = ("optimizer", *HEAD_ARGUMENTS)  # arguments of compile, in its order
_SMALL = 1e-6  # TensorFlow's value, against a division by zero for an empty cluster


class KMeansModel(LastingModel, tf_keras.Model):
    """Computes the distances to all cluster centers; ``fit`` moves the centers as the Estimator's training does.

    A batch's loss is the sum of its points' distances to their nearest centers; "score" is the mean loss over batches. A point is
    the concatenation of all features, sorted by name, or the output of the Estimator's columns.

    Args:
        clusters: Number of centers.
        width: Number of coordinates of a point.
        cosine: True for distances of 1 - cosine, False for squared Euclidean distances.
        mini_batch: True if each batch moves a center towards the mean of its points so far; False if a batch contains all points.
        points: Model that maps features to points [batch, width].
    """

    def __init__(self, clusters: int, width: int, cosine: bool, mini_batch: bool, points: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # All replicas assign the same values.
        first: Any = {"trainable": False, "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
        self.centers = self.add_weight("clusters", [clusters, width], **first)
        self.counts = self.add_weight("counts", [clusters], tf.int64, "ones", **first) if mini_batch else None
        self._cosine, self._points = cosine, points
        self.loss_mean, self.score = tf_keras.metrics.Mean(name="loss"), tf_keras.metrics.Mean(name="score")

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles the model, with options such as ``run_eagerly``.

        Raises:
            NotSupportedError: if an optimizer, a loss or metrics are given: they would be ignored.
        """
        refuse_arguments(
            kwargs | dict(zip(_FIXED_ARGUMENTS, args, strict=False)),
            _FIXED_ARGUMENTS,
            "Lloyd's algorithm moves the centers, and the loss and the score are its distances.",
            "compile() with options such as run_eagerly",
        )
        super().compile(*args, **kwargs)

    def call(self, inputs: Any) -> Mapping[str, Tensor]:
        """Returns ``all_distances`` [batch, clusters] and ``cluster_index`` [batch], int64."""
        points, centers = self._as_points(inputs), self._normalized(self.centers)
        gaps = _squared_distances(points, centers)
        distances = 1 - tf.matmul(points, centers, transpose_b=True) if self._cosine else gaps
        return {"all_distances": distances, "cluster_index": tf.argmin(gaps, 1)}

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Runs one iteration of Lloyd's algorithm on a batch."""
        inputs, _, _ = tf_keras.utils.unpack_x_y_sample_weight(data)
        nearest, points, count = self(inputs)["cluster_index"], self._as_points(inputs), self.centers.shape[0]
        result = self._result(points)
        sums = tf.math.unsorted_segment_sum(points, nearest, count)
        arrived = tf.math.unsorted_segment_sum(tf.ones_like(nearest), nearest, count)
        sums, arrived = sum_over_replicas(sums), sum_over_replicas(arrived)
        if self.counts is None:
            self.centers.assign(self._normalized(sums / (tf.cast(arrived, tf.float32)[:, tf.newaxis] + _SMALL)))
        else:
            self.counts.assign_add(arrived)
            moved = sums - tf.cast(arrived, tf.float32)[:, tf.newaxis] * self.centers
            self.centers.assign_add(moved / tf.cast(self.counts, tf.float32)[:, tf.newaxis])
        return result

    def test_step(self, data: Any) -> dict[str, Tensor]:
        """Returns the metrics after a batch."""
        inputs, _, _ = tf_keras.utils.unpack_x_y_sample_weight(data)
        restore_layer_classes(self)
        return self._result(self._as_points(inputs))

    def _as_points(self, inputs: Any) -> Tensor:
        if self._points is not None:
            inputs = self._points(select_features(inputs, self._points.input))
        elif isinstance(inputs, Mapping):
            inputs = tf.concat([inputs[key] for key in sorted(inputs)], 1)
        return self._normalized(inputs)

    def _normalized(self, vectors: Tensor) -> Tensor:
        return tf.math.l2_normalize(vectors, 1) if self._cosine else vectors

    def _result(self, points: Tensor) -> dict[str, Tensor]:
        """Returns the metrics after a batch; half the squared distance of unit vectors is 1 - cosine."""
        gaps = _squared_distances(points, self._normalized(self.centers))
        loss = tf.reduce_sum(tf.reduce_min(gaps, 1)) * (0.5 if self._cosine else 1.0)
        for metric in (self.loss_mean, self.score):
            metric.update_state(sum_over_replicas(loss))
        return {metric.name: metric.result() for metric in (self.loss_mean, self.score)}


def model(settings: Settings, checkpoint: str) -> KMeansModel:
    """Returns the KMeansModel for a KMeans Estimator.

    Raises:
        NotSupportedError: if the centers do not move at every step.
    """
    mini_batch = settings["use_mini_batch"]
    if mini_batch and settings["mini_batch_steps_per_iteration"] > 1:
        raise NotSupportedError(
            "KMeans with mini_batch_steps_per_iteration cannot be converted to a Keras model.",
            expected="mini_batch_steps_per_iteration=1, or use_mini_batch=False",
            received=settings["mini_batch_steps_per_iteration"],
            fix="Pass mini_batch_steps_per_iteration=1, or run the script with `estimator-bridge run --path modern`.",
        )
    points, weights = None, list[Saved]()
    if settings["feature_columns"]:
        inputs = Inputs(settings["feature_columns"])
        values, read = columns.dense(settings["feature_columns"], inputs)
        points, weights = tf_keras.Model(inputs.keras, values), under("input_layer", read)
    clusters, width = tf.train.load_checkpoint(checkpoint).get_variable_to_shape_map()["clusters"]
    made = KMeansModel(clusters, width, settings["distance_metric"] == "cosine", mini_batch, points)
    weights.append(Saved(made.centers, ("clusters",)))
    if made.counts is not None:
        weights.append(Saved(made.counts, ("Variable",)))
    take_over(weights, checkpoint)
    made.compile()
    return made


def _squared_distances(points: Tensor, centers: Tensor) -> Tensor:
    squares = [tf.reduce_sum(tf.square(vectors), 1, keepdims=True) for vectors in (points, centers)]
    return squares[0] - 2 * tf.matmul(points, centers, transpose_b=True) + tf.transpose(squares[1])
