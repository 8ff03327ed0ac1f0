"""A head as a Keras layer: maps logits to predictions and computes the loss, reduced to one number, and the metrics."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.canned.configured import Configured
from estimator_bridge.modern.canned.graph_function import GraphFunction

Tensor = Any
Features = Mapping[str, Tensor]
Predictions = Mapping[str, Tensor]


class HeadBatch(NamedTuple):
    """A batch as the losses and metrics read it.

    Attributes:
        labels: Numbers [batch, label_width].
        predictions: The model's outputs, by the Estimator's keys.
        losses: Losses [batch, loss_width], neither weighted nor reduced.
        weights: Weights [batch, loss_width or 1], or the scalar 1.
    """

    labels: Tensor
    predictions: Predictions
    losses: Tensor
    weights: Tensor


class HeadMetric(NamedTuple):
    """A metric of a head: its key in ``Estimator.evaluate``, its class, and a function that selects its inputs from a batch."""

    key: str
    make: Callable[..., Any]
    inputs_of: Callable[[HeadBatch], Sequence[Tensor]]


def against(key: str) -> Callable[[HeadBatch], Sequence[Tensor]]:
    """Returns a function that selects the labels and one of the predictions."""
    return lambda batch: (batch.labels, batch.predictions[key])


AVERAGE_LOSS = HeadMetric("average_loss", tf_keras.metrics.Mean, lambda batch: (batch.losses,))
LABEL_MEAN = HeadMetric("label/mean", tf_keras.metrics.Mean, lambda batch: (batch.labels,))


class Head(Configured, tf_keras.layers.Layer):
    """Computes predictions from logits of shape [batch, units], and the loss and the metrics.

    Args:
        units: Width of the logits.
        reduction: Reduction of a batch's losses to one number; a key of ``REDUCTIONS``.
        weight_column: Key of the feature that weights the examples.
        weight_normalizer: Function that is applied to that feature first.
        vocabulary: Names of the classes if labels are strings.
        loss_fn: Function ``(labels, logits[, features]) -> losses`` in place of the head's own.
        title: The Estimator's name for this head; its metrics' keys end with it.
        exact: True to compute metrics as ``tf.compat.v1.estimator`` does.
    """

    units: int
    reduction: str
    weight_column: str | None = None
    weight_normalizer: Callable[[Tensor], Tensor] | None = None
    vocabulary: Sequence[str] | None = None
    loss_fn: Callable[..., Tensor] | None = None
    title: str | None = None
    exact: bool = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if self.vocabulary:
            self.vocabulary = list(self.vocabulary)
            self._label_ids = tf_keras.layers.StringLookup(vocabulary=self.vocabulary, num_oov_indices=0, mask_token=None)

    def track(self) -> None:
        """Creates the model's metrics once; "loss" is a mean over batches, regardless of their sizes."""
        if not self._metrics:
            self.loss_mean = tf_keras.metrics.Mean(name="loss")
            self.track_measures()

    def track_measures(self) -> None:
        """Creates the head's own metrics; Keras resets and reports them with the model's."""
        for index, measure in enumerate(self.measures()):
            name = f"{measure.key}/{self.title}" if self.title else measure.key
            setattr(self, f"measure_{index}", measure.make(name=name))

    def measures(self) -> Iterator[HeadMetric]:
        """Yields the metrics in the order of their report."""
        raise NotImplementedError

    @property
    def label_width(self) -> int:
        """The number of values in an example's label."""
        return self.units

    @property
    def loss_width(self) -> int:
        """The number of losses of an example."""
        return 1

    def process_labels(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Converts the labels of an input_fn to numbers of shape [batch, label_width]."""
        raise NotImplementedError

    def losses_of(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the losses [batch, loss_width] for processed labels."""
        raise NotImplementedError

    def logits_in(self, predictions: Predictions) -> Tensor:
        """Returns the logits from the predictions."""
        return predictions["logits"]

    def see(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None) -> HeadBatch:
        """Returns a batch with processed labels and computed losses.

        Raises:
            BridgeError: if labels, weights or losses have a shape that the Estimator's head refuses. They would be broadcast.
            tf.errors.InvalidArgumentError: if such a shape is only known when the batch is computed.
        """
        logits = self.logits_in(predictions)
        labels = _check_shape("labels", self.process_labels(labels, logits), logits, self.label_width)
        weights = self._weights(features, logits) * (1.0 if sample_weight is None else self._weight(sample_weight, logits))
        losses = _check_shape("losses of the loss_fn", self._unreduced(labels, logits, features), logits, self.loss_width)
        return HeadBatch(labels, predictions, losses, weights)

    def loss(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the scalar loss of a batch, or this replica's share of it."""
        batch = self.see(labels, predictions, features, sample_weight)
        return reduce_losses(batch.losses, batch.weights, self.reduction)

    def observe(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None) -> None:
        """Updates the metrics with a batch."""
        batch = self.see(labels, predictions, features, sample_weight)
        for index, measure in enumerate(self.measures()):
            inputs = measure.inputs_of(batch)
            getattr(self, f"measure_{index}").update_state(
                *inputs, sample_weight=batch.weights + tf.zeros(tf.shape(inputs[-1]))
            )

    def _unreduced(self, labels: Tensor, logits: Tensor, features: Features) -> Tensor:
        if self.loss_fn is None:
            return self.losses_of(labels, logits)
        if isinstance(self.loss_fn, GraphFunction):
            return self.loss_fn(labels, logits)
        wanted = {"features": features} if "features" in inspect.signature(self.loss_fn).parameters else {}
        return self.loss_fn(labels=labels, logits=logits, **wanted)

    def _weights(self, features: Features, logits: Tensor) -> Tensor:
        if self.weight_column is None:
            return tf.constant(1.0)
        if self.weight_column not in features:
            raise BridgeError(
                f"The features lack {self.weight_column!r}, the Estimator's weight column.",
                expected=f"{self.weight_column!r} in the features of every batch for training and evaluation",
                received=", ".join(sorted(features)),
                fix="Return the weight column from the input_fn, as one of the features.",
            )
        weights = features[self.weight_column]
        return self._weight(self.weight_normalizer(weights) if self.weight_normalizer else weights, logits)

    def _weight(self, weights: Tensor, logits: Tensor) -> Tensor:
        return _check_shape("weights", to_column(tf.cast(weights, tf.float32), logits), logits, 1, self.loss_width)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``.

        Raises:
            NotSupportedError: if a function of the script is not a graph.
        """
        config = super().get_config()
        for name, value in config.items():
            if callable(value) and not isinstance(value, GraphFunction):
                raise NotSupportedError(
                    f"The head's {name} {getattr(value, '__qualname__', value)!r} cannot be saved: a .keras file cannot contain Python code.",
                    expected="only TensorFlow operations on its arguments and constants: no table, no py_function, no custom gradient",
                    fix="Use model.save_weights, or model.export to keep only the predictions.",
                )
        return config

    def classes(self, ids: Tensor) -> Tensor:
        """Returns the names of class ids, in the same shape."""
        return tf.gather(tf.constant(self.vocabulary), ids) if self.vocabulary else tf.strings.as_string(ids)

    def all_class_ids(self, logits: Tensor, count: int) -> Tensor:
        """Returns all class ids for each example: [batch, count], int32."""
        return tf.tile(tf.range(count)[tf.newaxis], [tf.shape(logits)[0], 1])


def to_column(labels: Tensor, logits: Tensor) -> Tensor:
    """Returns labels of shape [batch] as [batch, 1]; other shapes pass unchanged."""
    return tf.expand_dims(labels, -1) if labels.shape.rank == logits.shape.rank - 1 else labels


def check_in_range(labels: Tensor, count: int) -> Tensor:
    """Checks that all labels are in [0, count) and returns them."""
    message = f"Labels must be in [0, {count - 1}]."
    tf.debugging.assert_non_negative(labels, message)
    tf.debugging.assert_less_equal(labels, tf.cast(count - 1, labels.dtype), message)
    return labels


def _check_shape(what: str, values: Tensor, logits: Tensor, *widths: int) -> Tensor:
    """Checks that the values have the logits' shape, with one of the widths as last dimension, and returns them."""
    width = next((width for width in widths if width == (values.shape[-1] if values.shape.rank else None)), widths[0])
    wanted = tf.TensorShape([*logits.shape[:-1], width])
    if not wanted.is_compatible_with(values.shape):
        fix = "Return one row for each example from the input_fn or the loss_fn."
        raise BridgeError(f"The {what} have the wrong shape for the head.", expected=wanted, received=values.shape, fix=fix)
    tf.debugging.assert_equal(
        tf.shape(values)[:-1], tf.shape(logits)[:-1], f"The {what} and the logits have different numbers of examples."
    )
    return tf.ensure_shape(values, wanted)


def sum_over_replicas(value: Tensor) -> Tensor:
    """Returns the sum of a value over the replicas that share a batch, without a gradient.

    Example:
        >>> float(sum_over_replicas(tf.constant(2.0)))  # there is only one replica
        2.0
    """
    context = tf.distribute.get_replica_context()
    value = tf.stop_gradient(value)
    several = context is not None and context.num_replicas_in_sync > 1
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value) if several else value


def _count(losses: Tensor, weights: Tensor) -> Tensor:
    return tf.cast(tf.size(losses), losses.dtype)


def _sum_weights(losses: Tensor, weights: Tensor) -> Tensor:
    return tf.reduce_sum(tf.ones_like(losses) * weights)


def _count_weighted(losses: Tensor, weights: Tensor) -> Tensor:
    return tf.reduce_sum(tf.cast(tf.ones_like(losses) * weights != 0, losses.dtype))


REDUCTIONS: Mapping[str, Callable[[Tensor, Tensor], Tensor] | None] = {
    # tf.losses.Reduction
    "auto": _count,
    "sum": None,
    "sum_over_batch_size": _count,
    # tf.compat.v1.losses.Reduction
    "weighted_sum": None,
    "weighted_mean": _sum_weights,
    "weighted_sum_over_batch_size": _count,
    "weighted_sum_by_nonzero_weights": _count_weighted,
}
"""Reduction -> function of the divisor of the weighted sum; None for the sum itself."""


def reduce_losses(losses: Tensor, weights: Tensor, reduction: str) -> Tensor:
    """Returns the loss of a batch, or this replica's share of it; the shares of all replicas sum to the loss.

    Args:
        losses: Losses [batch, dimension].
        weights: Weights that broadcast to ``losses``.
        reduction: Value of ``tf.losses.Reduction`` or ``tf.compat.v1.losses.Reduction``.

    Returns:
        A scalar.

    Example:
        >>> float(reduce_losses(tf.constant([[1.0], [3.0]]), tf.constant([[2.0], [0.0]]), "weighted_mean"))
        1.0
        >>> float(reduce_losses(tf.constant([[1.0], [3.0]]), tf.constant([[2.0], [0.0]]), "sum_over_batch_size"))
        1.0
        >>> float(reduce_losses(tf.constant([[1.0], [3.0]]), tf.constant([[2.0], [1.0]]), "weighted_sum"))
        5.0
    """
    total, divisor = tf.reduce_sum(losses * weights), REDUCTIONS[reduction]
    return tf.math.divide_no_nan(total, sum_over_replicas(divisor(losses, weights))) if divisor else total
