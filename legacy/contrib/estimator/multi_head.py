"""The head of several heads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator.canned import head as canned
from tensorflow_estimator.python.estimator.canned.metric_keys import MetricKeys

from estimator_bridge.legacy.contrib.estimator.training import train_op_for

_SERVING = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


def multi_head(heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> MultiHead:
    """A head for several objectives: losses are summed, labels and metrics kept by the heads' names.

    Args:
        heads: each with a name.
        head_weights: of their losses; 1 unless given.

    Raises:
        ValueError: no heads, a head without a name, or another number of weights.
    """
    if head_weights and len(head_weights) != len(heads):
        raise ValueError(
            "heads and head_weights must have the same size. "
            f"Given len(heads): {len(heads)}. Given len(head_weights): {len(head_weights)}."
        )
    if not heads:
        raise ValueError(f"Must specify heads. Given: {heads}")
    for head in heads:
        if not head.name:
            raise ValueError(f"All given heads must have name specified. Given: {head}")
    return MultiHead(tuple(heads), tuple(head_weights or ()))


@dataclasses.dataclass
class MultiHead(canned._Head):
    """See ``multi_head``."""

    contrib_head: ClassVar[str] = "contrib.MultiHead"  # selects the Keras layer on the modern path

    heads: tuple[Any, ...]
    head_weights: tuple[float, ...]

    @property
    def name(self) -> str:
        """The heads' names."""
        return "_".join(head.name for head in self.heads)

    @property
    def logits_dimension(self) -> int:
        """The last dimension of the logits: the sum of the heads'."""
        return sum(head.logits_dimension for head in self.heads)

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Mapping[str, Any]) -> Any:
        """The weighted sum of the heads' losses, as a ``LossSpec`` whose other values are by head.

        Args:
            features: tensors by name.
            mode: of ``tf.estimator.ModeKeys``.
            logits: of shape [batch_size, logits_dimension], or by head.
            labels: by head.
        """
        by_head = self._by_head(logits)
        specs = {head.name: head.create_loss(features, mode, by_head[head.name], labels[head.name]) for head in self.heads}
        weights = dict(zip(specs, self.head_weights or [None] * len(specs), strict=True))
        return canned.LossSpec(
            training_loss=self._sum([spec.training_loss for spec in specs.values()]),
            unreduced_loss={name: _weighted(spec.unreduced_loss, weights[name]) for name, spec in specs.items()},
            weights={name: _weighted(spec.weights, weights[name]) for name, spec in specs.items()},
            processed_labels={name: spec.processed_labels for name, spec in specs.items()},
        )

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Mapping[str, Any] | None = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
    ) -> Any:
        """What a model_fn returns; predictions are by (head's name, key).

        Args:
            features: tensors by name.
            mode: of ``tf.estimator.ModeKeys``.
            logits: see ``create_loss``.
            labels: by head.
            optimizer: minimizes the loss.
            train_op_fn: or makes the train_op of the loss.

        Raises:
            ValueError: labels not by head; in training, neither or both of ``optimizer`` and ``train_op_fn``.
        """
        if labels and not isinstance(labels, dict):
            raise ValueError(f"labels must be a dict. Given: {labels}")
        by_head = self._by_head(logits)
        specs = {
            head.name: head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=by_head[head.name],
                labels=labels[head.name] if labels else None,
                train_op_fn=lambda loss: tf.no_op(),
            )
            for head in self.heads
        }
        predictions = {(name, key): value for name, spec in specs.items() for key, value in spec.predictions.items()}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=_outputs(specs))
        metrics = {key: metric for spec in specs.values() for key, metric in (spec.eval_metric_ops or {}).items()}
        losses = {name: spec.loss for name, spec in specs.items()}
        if mode == tf.estimator.ModeKeys.EVAL:
            with tf.name_scope("merge_eval"):
                keys = {name: canned._summary_key(name, MetricKeys.LOSS) for name in losses}
                metrics |= {keys[name]: tf.metrics.mean(loss, name=keys[name]) for name, loss in losses.items()}
                loss = self._sum(losses.values())
            return tf.estimator.EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
        loss = self._sum(losses.values())
        train_op = train_op_for(loss, optimizer, train_op_fn)
        with tf.name_scope(""):
            tf.summary.scalar(MetricKeys.LOSS, loss)
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)

    def _by_head(self, logits: Any) -> Mapping[str, Any]:
        if isinstance(logits, dict):
            return logits
        logits = tf.convert_to_tensor(logits)
        sizes = [head.logits_dimension for head in self.heads]
        if logits.shape.as_list()[-1] not in (None, sum(sizes)):
            raise ValueError(
                f"Could not split logits of shape {logits.shape} among the heads with individual logits dimensions: {sizes}. "
                f"The last dimension of the logits tensor should equal {sum(sizes)} but is {logits.shape[-1]}."
            )
        with tf.name_scope(None, "split_logits", [logits]):
            parts = tf.split(logits, sizes, axis=-1)
        return {head.name: part for head, part in zip(self.heads, parts, strict=True)}

    def _sum(self, losses: Collection[Any]) -> Any:
        with tf.name_scope(None, "merge_losses", losses):
            weights = self.head_weights or [None] * len(losses)
            return tf.add_n([_weighted(loss, weight) for loss, weight in zip(losses, weights, strict=True)])


def _weighted(value: Any, weight: float | None) -> Any:
    return value if weight is None else tf.multiply(value, weight)


def _outputs(specs: Mapping[str, Any]) -> dict[str, Any]:
    """The heads' outputs under their names, the first one's as the default, and all predictions together."""
    outputs = {_SERVING: _default(*next(iter(specs.items())))}
    together = {}
    for name, spec in specs.items():
        for key, output in spec.export_outputs.items():
            outputs[name if key == _SERVING else f"{name}/{key}"] = output
            if key == canned._PREDICT_SERVING_KEY and isinstance(output, tf.estimator.export.PredictOutput):
                together.update({f"{name}/{part}": tensor for part, tensor in output.outputs.items()})
    outputs[canned._PREDICT_SERVING_KEY] = tf.estimator.export.PredictOutput(together)
    return outputs


def _default(name: str, spec: Any) -> Any:
    outputs = spec.export_outputs
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    if _SERVING not in outputs:
        raise ValueError(
            f"{name} did not specify default export_outputs. Given: {outputs} Suggested fix: Use one of the heads in "
            f"tf.contrib.estimator, or include key {_SERVING} in export_outputs."
        )
    return outputs[_SERVING]
