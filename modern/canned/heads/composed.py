"""Heads that contain heads: several objectives on one network, and one head for each step of a sequence."""

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.heads.base import Features, Head, HeadMetric, Predictions, Tensor, sum_over_replicas


class MultiHead(Head):
    """Several heads, each with its slice of the logits; labels are a dict with the heads' names as keys.

    Predictions are named ``head/key``, as ``tf.estimator`` does in a SavedModel (``Estimator.predict`` returns tuples).
    """

    def __init__(self, heads: Sequence[Head], shares: Sequence[float] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._heads = list(heads)
        self._shares = list(shares) or [1.0] * len(self._heads)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "heads": self._heads, "shares": self._shares}

    def track_measures(self) -> None:
        """Makes the metrics of this head and of its inner heads."""
        super().track_measures()
        for head in self._heads:
            head.track_measures()

    def measures(self) -> Iterator[HeadMetric]:
        """Yields one loss for each head, which ``observe`` updates."""
        for head in self._heads:
            yield HeadMetric(f"loss/{head.title}", tf_keras.metrics.Mean, lambda batch: ())

    def call(self, logits: Tensor) -> Predictions:
        """Returns the predictions for logits [batch, units]."""
        parts = tf.split(logits, [head.units for head in self._heads], -1)
        return {
            f"{head.title}/{key}": value
            for head, part in zip(self._heads, parts, strict=True)
            for key, value in head(part).items()
        }

    def loss(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss of a batch, as ``Head.loss`` does."""
        losses = [head.loss(*part, features, sample_weight) for head, part in self._parts(labels, predictions)]
        return tf.add_n([loss * share for loss, share in zip(losses, self._shares, strict=True)])

    def observe(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None) -> None:
        """Updates the metrics with a batch."""
        for index, (head, part) in enumerate(self._parts(labels, predictions)):
            getattr(self, f"measure_{index}").update_state(sum_over_replicas(head.loss(*part, features, sample_weight)))
            head.observe(*part, features, sample_weight)

    def _parts(self, labels: Any, predictions: Predictions) -> Iterator[tuple[Head, tuple[Any, Predictions]]]:
        for head in self._heads:
            start = f"{head.title}/"
            own = {key.removeprefix(start): value for key, value in predictions.items() if key.startswith(start)}
            if head.title not in labels:
                raise BridgeError(
                    f"There is no label for the head {head.title!r}.",
                    expected=f"a dict with the keys {', '.join(str(each.title) for each in self._heads)}",
                    received=", ".join(labels) or "an empty dict",
                    fix="Return a dict of labels with all of these keys from the input_fn.",
                )
            yield head, (labels[head.title], own)


class SequentialHead(Head):
    """A head that predicts at each step of a sequence; steps beyond an example's length are ignored.

    It is called with logits of shape [batch, steps, units] and a mask of shape [batch, steps], which it adds to the predictions.
    """

    def __init__(self, head: Head, mask_key: str, weight_keys: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._head, self._mask_key, self._weight_keys = head, mask_key, tuple(weight_keys)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        own = {"head": self._head, "mask_key": self._mask_key, "weight_keys": self._weight_keys}
        return {**super().get_config(), **own}

    def track_measures(self) -> None:
        """Makes the metrics of this head and of its inner heads."""
        self._head.track_measures()

    def measures(self) -> Iterator[HeadMetric]:
        """Yields nothing: only the inner head has metrics."""
        return iter(())

    def call(self, inputs: tuple[Tensor, Tensor]) -> Predictions:
        """Returns the predictions for logits [batch, units]."""
        logits, mask = inputs
        return {**self._head(logits), self._mask_key: mask}

    def loss(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss of a batch, as ``Head.loss`` does."""
        return self._head.loss(*self._flat(labels, predictions, features, sample_weight))

    def observe(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None) -> None:
        """Updates the metrics with a batch."""
        self._head.observe(*self._flat(labels, predictions, features, sample_weight))

    def _flat(
        self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None
    ) -> tuple[Tensor, Predictions, Features, Tensor | None]:
        """Returns a batch in which each step of each sequence is a separate example."""
        mask = tf.cast(features.get(self._mask_key, predictions[self._mask_key]), tf.bool)

        def steps(values: Any) -> Tensor:
            flat = tf.sparse.reorder(values).values if isinstance(values, tf.SparseTensor) else tf.boolean_mask(values, mask)
            return flat[:, tf.newaxis] if flat.shape.rank == 1 else flat

        given = {key: steps(value) for key, value in predictions.items() if key != self._mask_key}
        weights = {key: steps(features[key]) for key in self._weight_keys}
        repeated = None if sample_weight is None else steps(tf.repeat(sample_weight[:, tf.newaxis], tf.shape(mask)[1], 1))
        return steps(labels), given, weights, repeated
