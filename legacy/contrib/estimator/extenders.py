"""What changes an Estimator or an optimizer from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def clip_gradients_by_norm(optimizer: Any, clip_norm: float) -> Any:
    """An optimizer whose gradients are scaled down together where their global norm is above ``clip_norm``."""
    return _ClippingOptimizer(optimizer, clip_norm)


class _ClippingOptimizer(tf.train.Optimizer):
    def __init__(self, optimizer: Any, clip_norm: float) -> None:
        super().__init__(use_locking=False, name=f"ClipByNorm{optimizer.get_name()}")
        self._optimizer, self._clip_norm = optimizer, clip_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        gradients, variables = zip(*grads_and_vars, strict=True)
        clipped, _ = tf.clip_by_global_norm(gradients, self._clip_norm)
        return self._optimizer.apply_gradients(list(zip(clipped, variables, strict=True)), global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        return self._optimizer.variables()


def forward_features(
    estimator: Any, keys: str | Sequence[str] | None = None, sparse_default_values: Mapping[str, Any] | None = None
) -> Any:
    """An Estimator whose predictions have features beside them, a row's number for one.

    Args:
        estimator: the one to extend.
        keys: which features; all unless given.
        sparse_default_values: what stands where a sparse feature has nothing, by key.

    Raises:
        TypeError: keys that are no strings.
        ValueError: when the model is built: predictions are no dict, a key is not there or is taken, a feature is sparse.
    """
    keys = [keys] if isinstance(keys, str) else keys
    if keys is not None and not (isinstance(keys, (list, tuple)) and all(isinstance(key, str) for key in keys)):
        raise TypeError(f"keys should be either a string or a list of strings. Given: {keys}")

    def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        forwarded = _forwarded(features, spec.predictions, keys, sparse_default_values or {})
        for name in ("predict", "serving_default"):
            output = (spec.export_outputs or {}).get(name)
            if isinstance(output, tf.estimator.export.PredictOutput):
                output.outputs.update(forwarded)
        return spec._replace(predictions={**spec.predictions, **forwarded})

    return tf.estimator.Estimator(model_fn, estimator.model_dir, estimator.config)


def _forwarded(features: Any, predictions: Any, keys: Sequence[str] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(predictions, dict):
        raise ValueError(f"Predictions should be a dict to be able to forward features. Given: {type(predictions)}")  # noqa: TRY004
    forwarded = {}
    for key in features.keys() if keys is None else keys:
        if key not in features:
            raise ValueError(f'keys should be exist in features. Key "{key}" is not among {list(features)}.')
        if key in predictions:
            raise ValueError(f"Cannot forward feature key ({key}). Since it does exist in predictions: {list(predictions)}.")
        feature = tf.convert_to_tensor_or_sparse_tensor(features[key])
        if key in defaults:
            if not isinstance(feature, tf.SparseTensor):
                raise ValueError(f"Feature ({key}) is expected to be a `SparseTensor`.")
            feature = tf.sparse.to_dense(feature, default_value=defaults[key])
        if not isinstance(feature, tf.Tensor):
            raise ValueError(  # noqa: TRY004 -- as TensorFlow 1 has it
                f"Feature ({key}) should be a Tensor. Use `keys` to leave it out, or add it to `sparse_default_values`. "
                f"Received: {type(feature)}."
            )
        forwarded[key] = feature
    return forwarded
