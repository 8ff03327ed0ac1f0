"""The head that predicts numbers, for any loss and link."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.heads.base import AVERAGE_LOSS, LABEL_MEAN, Head, Measure, Predictions, Tensor, as_column


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class RegressionHead(Head):
    """Predicts ``inverse_link(logits)``, or the logits themselves; the loss is the squared error unless one is given."""

    def __init__(self, *args: Any, inverse_link: Callable[[Tensor], Tensor] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._inverse_link = inverse_link

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` needs."""
        return {**super().get_config(), "inverse_link": self._inverse_link}

    def call(self, logits: Tensor) -> Predictions:
        """The predictions of [batch, units] logits."""
        if self._inverse_link is None:
            return {"predictions": tf.identity(logits)}
        return {"predictions": self._inverse_link(logits), "logits": logits}

    def logits_in(self, predictions: Predictions) -> Tensor:
        """The logits, which are the predictions where there is no link."""
        return predictions["predictions" if self._inverse_link is None else "logits"]

    @property
    def loss_width(self) -> int:
        """Each number has a loss, and perhaps a weight, of its own."""
        return self.units

    def processed(self, labels: Tensor, logits: Tensor) -> Tensor:
        """As float32."""
        return tf.cast(as_column(labels, logits), tf.float32)

    def losses_of(self, labels: Tensor, logits: Tensor) -> Tensor:
        """The squared error of each number."""
        return tf.math.squared_difference(logits, labels)

    def measures(self) -> Iterator[Measure]:
        """As ``tf.estimator`` reports them."""
        yield AVERAGE_LOSS
        yield Measure("prediction/mean", tf_keras.metrics.Mean, lambda seen: (seen.predictions["predictions"],))
        yield LABEL_MEAN
