"""The head that predicts numbers, with any loss and link function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.heads.base import AVERAGE_LOSS, LABEL_MEAN, Head, HeadMetric, Predictions, Tensor, to_column


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class RegressionHead(Head):
    """Predicts ``inverse_link(logits)`` or the logits themselves; the default loss is the squared error."""

    def __init__(self, *args: Any, inverse_link: Callable[[Tensor], Tensor] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._inverse_link = inverse_link

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "inverse_link": self._inverse_link}

    def call(self, logits: Tensor) -> Predictions:
        """Returns the predictions for logits [batch, units]."""
        if self._inverse_link is None:
            return {"predictions": tf.identity(logits)}
        return {"predictions": self._inverse_link(logits), "logits": logits}

    def logits_in(self, predictions: Predictions) -> Tensor:
        """Returns the logits, which are the predictions themselves without a link function."""
        return predictions["predictions" if self._inverse_link is None else "logits"]

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
        yield HeadMetric("prediction/mean", tf_keras.metrics.Mean, lambda batch: (batch.predictions["predictions"],))
        yield LABEL_MEAN
