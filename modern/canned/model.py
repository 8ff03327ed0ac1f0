"""A Keras model whose loss, metrics and predictions are those of a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.columns.inputs import selected
from estimator_bridge.modern.canned.heads.base import Head
from estimator_bridge.modern.canned.heads.losses import over_replicas
from estimator_bridge.modern.canned.optimizers import state

Tensor = Any
_STATE = "optimizer_"
OF_THE_HEAD = ("loss", "metrics", "loss_weights", "weighted_metrics")  # arguments of compile, in its order


def reinstate(model: Any) -> None:
    """Makes a model usable again after Estimators were run in its process.

    An Estimator builds its layers in a graph, and Keras 2 then exchanges the base class of its own classes, which "invalidates"
    every model made before; making an object outside of graphs exchanges it back.
    """
    classes: set[Any] = {type(layer) for layer in model._flatten_layers()}
    for cls in classes:
        cls.__new__(cls)


def refuse(given: Mapping[str, Any], names: Sequence[str], what: str, expected: str) -> None:
    """Refuses arguments of ``compile`` that would be passed over.

    Args:
        given: all arguments.
        names: of those that are not taken.
        what: whose they are, for the error.
        expected: which are taken.

    Raises:
        NotSupportedError: where one of them is given.
    """
    others = [name for name in names if given.get(name)]
    if others:
        raise NotSupportedError(
            what,
            expected=expected,
            received=", ".join(others),
            fix="Put a tf_keras.Model of your own over the inputs and an output of this one.",
        )


class _Headed:
    """What ``fit`` and ``evaluate`` ask of a model, answered by its head."""

    head: Head

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Predictions from features."""
        reinstate(self)
        return super().__call__(*args, **kwargs)  # type: ignore[misc]

    def compile(self, optimizer: Any = "rmsprop", *args: Any, **kwargs: Any) -> None:
        """``tf_keras.Model.compile``, where loss and metrics are the head's.

        Raises:
            NotSupportedError: for others, which would be passed over.
        """
        refuse(
            kwargs | dict(zip(OF_THE_HEAD, args, strict=False)),
            OF_THE_HEAD,
            "The loss and the metrics of this model are its head's.",
            "compile(optimizer), and options of how to run",
        )
        super().compile(optimizer, *args, **kwargs)  # type: ignore[misc]
        self.head.track()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a model that is loaded; Keras leaves this out where ``compile`` is not its own."""
        self.compile(**tf_keras.saving.deserialize_keras_object(config))

    def save_own_variables(self, store: Any) -> None:
        """The optimizer's state is kept too: Keras leaves that of its legacy optimizers out of .keras files."""
        super().save_own_variables(store)  # type: ignore[misc]
        for index, variable in enumerate(self._optimizer_state()):
            store[f"{_STATE}{index}"] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Takes over what ``save_own_variables`` kept."""
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
        """The head's loss of a batch, a scalar, or a replica's share of it: gradients are summed over replicas."""
        loss = self.head.loss(y, y_pred, x, sample_weight)
        self.head.loss_mean.update_state(over_replicas(loss))
        return loss

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Tensor | None) -> dict[str, Tensor]:
        """Metric -> value so far, by the keys of ``Estimator.evaluate``."""
        self.head.observe(y, y_pred, x, sample_weight)
        return self.get_metrics_result()  # type: ignore[attr-defined]


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class CannedModel(_Headed, tf_keras.Model):
    """A functional model that ends with a head."""

    @property
    def head(self) -> Head:  # type: ignore[override]
        """The layer that gives the predictions."""
        return next(layer for layer in self.layers if isinstance(layer, Head))

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Predictions from features, of which those that no column reads are left out."""
        read = selected(inputs, self.input) if isinstance(inputs, Mapping) else inputs
        return super().call(read, training, mask)


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class BaselineModel(_Headed, tf_keras.Model):
    """One bias for all examples: of the features only the batch's size is read, so the model has no fixed inputs.

    Args:
        head: gives the predictions.
    """

    def __init__(self, head: Head, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.head = head
        self.bias = self.add_weight("bias", [head.units], initializer="zeros")

    def call(self, inputs: Any) -> Any:
        """Predictions for as many examples as the features have."""
        first = tf.nest.flatten(inputs)[0]
        count = (first.dense_shape if isinstance(first, tf.SparseTensor) else tf.shape(first))[0]
        return self.head(tf.repeat(self.bias[tf.newaxis], count, axis=0))

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` needs."""
        return {"name": self.name, "head": self.head}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> BaselineModel:
        """The same model."""
        return cls(**tf_keras.saving.deserialize_keras_object(config, custom_objects))
