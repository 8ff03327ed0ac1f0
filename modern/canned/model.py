"""A Keras model that takes its loss, metrics and predictions from a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.columns.inputs import select_features
from estimator_bridge.modern.canned.heads.base import Head, sum_over_replicas
from estimator_bridge.modern.canned.optimizers import state

Tensor = Any
_STATE = "optimizer_"
HEAD_ARGUMENTS = ("loss", "metrics", "loss_weights", "weighted_metrics")  # arguments of compile, in its order


def restore_layer_classes(model: Any) -> None:
    """Makes a model usable again after Estimators were run in its process.

    An Estimator builds its layers in a graph. Keras 2 then replaces the base class of its own classes, which "invalidates"
    all earlier models. Creating an object outside of graphs restores the base class.
    """
    classes: set[Any] = {type(layer) for layer in model._flatten_layers()}
    for cls in classes:
        cls.__new__(cls)


def refuse_arguments(given: Mapping[str, Any], names: Sequence[str], what: str, expected: str) -> None:
    """Refuses arguments of ``compile`` that would be ignored.

    Args:
        given: All arguments.
        names: Names of the unsupported arguments.
        what: First line of the error.
        expected: Supported arguments, for the error.

    Raises:
        NotSupportedError: if an unsupported argument is given.
    """
    others = [name for name in names if given.get(name)]
    if others:
        raise NotSupportedError(
            what,
            expected=expected,
            received=", ".join(others),
            fix="Build your own tf_keras.Model from the inputs and an output of this model.",
        )


class LastingModel:
    """Base of models that are used after other Estimators were run in their process."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the predictions for a batch of features."""
        restore_layer_classes(self)
        return super().__call__(*args, **kwargs)  # type: ignore[misc]


class _HeadMethods(LastingModel):
    """The methods that ``fit`` and ``evaluate`` call, answered by the model's head."""

    head: Head

    def compile(self, optimizer: Any = "rmsprop", *args: Any, **kwargs: Any) -> None:
        """Compiles the model with the head's loss and metrics.

        Raises:
            NotSupportedError: if another loss or other metrics are given: they would be ignored.
        """
        refuse_arguments(
            kwargs | dict(zip(HEAD_ARGUMENTS, args, strict=False)),
            HEAD_ARGUMENTS,
            "This model takes its loss and its metrics from its head.",
            "compile(optimizer) and options such as run_eagerly",
        )
        super().compile(optimizer, *args, **kwargs)  # type: ignore[misc]
        self.head.track()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model; Keras does not if a class overrides ``compile``."""
        self.compile(**tf_keras.saving.deserialize_keras_object(config))

    def save_own_variables(self, store: Any) -> None:
        """Stores the optimizer's state as well, which Keras leaves out of .keras files for its legacy optimizers."""
        super().save_own_variables(store)  # type: ignore[misc]
        for index, variable in enumerate(self._optimizer_state()):
            store[f"{_STATE}{index}"] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Loads what ``save_own_variables`` stored."""
        super().load_own_variables({key: store[key] for key in store if not key.startswith(_STATE)})  # type: ignore[misc]
        saved = [key for key in store if key.startswith(_STATE)]
        for index, variable in enumerate(self._optimizer_state() if saved else ()):
            variable.assign(store[f"{_STATE}{index}"])

    def _optimizer_state(self) -> list[Any]:
        optimizer: Any = getattr(self, "optimizer", None)
        if not isinstance(optimizer, tf_keras.optimizers.legacy.Optimizer):
            return []
        optimizer._create_all_weights(self.trainable_variables)  # type: ignore[attr-defined]
        return state(optimizer)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the head's scalar loss of a batch, or a replica's share of it: gradients are summed over replicas."""
        loss = self.head.loss(y, y_pred, x, sample_weight)
        self.head.loss_mean.update_state(sum_over_replicas(loss))
        return loss

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Tensor | None) -> dict[str, Tensor]:
        """Returns metric -> current value, with the keys of ``Estimator.evaluate``."""
        self.head.observe(y, y_pred, x, sample_weight)
        return self.get_metrics_result()  # type: ignore[attr-defined]


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class CannedModel(_HeadMethods, tf_keras.Model):
    """A functional model that ends with a head."""

    @property
    def head(self) -> Head:  # type: ignore[override]
        """The layer that computes the predictions."""
        return next(layer for layer in self.layers if isinstance(layer, Head))

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Returns the predictions; features that no column reads are left out."""
        read = select_features(inputs, self.input) if isinstance(inputs, Mapping) else inputs
        return super().call(read, training, mask)


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class BaselineModel(_HeadMethods, tf_keras.Model):
    """One bias for all examples; the model reads only the batch size from the features, so it has no fixed inputs.

    Args:
        head: Head that computes the predictions.
    """

    def __init__(self, head: Head, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.head = head
        self.bias = self.add_weight("bias", [head.units], initializer="zeros")

    def call(self, inputs: Any) -> Any:
        """Returns one prediction for each example of the features."""
        first = tf.nest.flatten(inputs)[0]
        count = (first.dense_shape if isinstance(first, tf.SparseTensor) else tf.shape(first))[0]
        return self.head(tf.repeat(self.bias[tf.newaxis], count, axis=0))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {"name": self.name, "head": self.head}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> BaselineModel:
        """Returns the same model."""
        return cls(**tf_keras.saving.deserialize_keras_object(config, custom_objects))
