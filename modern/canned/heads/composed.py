"""Heads made of heads: several objectives on one network, and one head for each step of a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.heads.base import Features, Head, Measure, Predictions, Tensor
from estimator_bridge.modern.canned.heads.losses import over_replicas


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class MultiHead(Head):
    """Several heads side by side, each with its slice of the logits; labels are a dict by the heads' names.

    Predictions are named ``head/key``, as ``tf.estimator`` names them in a SavedModel (``Estimator.predict`` gives tuples).
    """

    def __init__(self, heads: Sequence[Head], shares: Sequence[float] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._heads = list(heads)
        self._shares = list(shares) or [1.0] * len(self._heads)

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` needs."""
        return {**super().get_config(), "heads": self._heads, "shares": self._shares}

    def track_measures(self) -> None:
        """Makes its own metrics and those of the heads within."""
        super().track_measures()
        for head in self._heads:
            head.track_measures()

    def measures(self) -> Iterator[Measure]:
        """The losses of the heads, which ``observe`` gives them."""
        for head in self._heads:
            yield Measure(f"loss/{head.title}", tf_keras.metrics.Mean, lambda seen: ())

    def call(self, logits: Tensor) -> Predictions:
        """The predictions of [batch, units] logits."""
        parts = tf.split(logits, [head.units for head in self._heads], -1)
        return {
            f"{head.title}/{key}": value
            for head, part in zip(self._heads, parts, strict=True)
            for key, value in head(part).items()
        }

    def loss(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None = None) -> Tensor:
        """As ``Head.loss``."""
        losses = [head.loss(*part, features, sample_weight) for head, part in self._parts(labels, predictions)]
        return tf.add_n([loss * share for loss, share in zip(losses, self._shares, strict=True)])

    def observe(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None) -> None:
        """Updates the metrics with a batch."""
        for index, (head, part) in enumerate(self._parts(labels, predictions)):
            getattr(self, f"measure_{index}").update_state(over_replicas(head.loss(*part, features, sample_weight)))
            head.observe(*part, features, sample_weight)

    def _parts(self, labels: Any, predictions: Predictions) -> Iterator[tuple[Head, tuple[Any, Predictions]]]:
        for head in self._heads:
            start = f"{head.title}/"
            own = {key.removeprefix(start): value for key, value in predictions.items() if key.startswith(start)}
            if head.title not in labels:
                raise BridgeError(
                    f"The labels have none for the head {head.title!r}.",
                    expected=f"a dict with {', '.join(str(each.title) for each in self._heads)}",
                    received=", ".join(labels) or "an empty dict",
                )
            yield head, (labels[head.title], own)


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class SequentialHead(Head):
    """A head that answers at each step of a sequence: steps beyond an example's length count for nothing.

    Called with logits of shape [batch, steps, units] and a mask of shape [batch, steps], which is among the predictions too.
    """

    def __init__(self, head: Head, mask_key: str, weight_keys: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._head, self._mask_key, self._weight_keys = head, mask_key, tuple(weight_keys)

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` needs."""
        own = {"head": self._head, "mask_key": self._mask_key, "weight_keys": self._weight_keys}
        return {**super().get_config(), **own}

    def track_measures(self) -> None:
        """Makes its own metrics and those of the heads within."""
        self._head.track_measures()

    def measures(self) -> Iterator[Measure]:
        """None but those of the head within."""
        return iter(())

    def call(self, inputs: tuple[Tensor, Tensor]) -> Predictions:
        """The predictions of [batch, units] logits."""
        logits, mask = inputs
        return {**self._head(logits), self._mask_key: mask}

    def loss(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None = None) -> Tensor:
        """As ``Head.loss``."""
        return self._head.loss(*self._flat(labels, predictions, features, sample_weight))

    def observe(self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None) -> None:
        """Updates the metrics with a batch."""
        self._head.observe(*self._flat(labels, predictions, features, sample_weight))

    def _flat(
        self, labels: Any, predictions: Predictions, features: Features, sample_weight: Tensor | None
    ) -> tuple[Tensor, Predictions, Features, Tensor | None]:
        """Each step of each sequence as an example of its own."""
        mask = tf.cast(features.get(self._mask_key, predictions[self._mask_key]), tf.bool)

        def steps(values: Any) -> Tensor:
            flat = tf.sparse.reorder(values).values if isinstance(values, tf.SparseTensor) else tf.boolean_mask(values, mask)
            return flat[:, tf.newaxis] if flat.shape.rank == 1 else flat

        given = {key: steps(value) for key, value in predictions.items() if key != self._mask_key}
        weights = {key: steps(features[key]) for key in self._weight_keys}
        repeated = None if sample_weight is None else steps(tf.repeat(sample_weight[:, tf.newaxis], tf.shape(mask)[1], 1))
        return steps(labels), given, weights, repeated
