"""Keras layers that declare their arguments once."""

import inspect
from typing import Any

import tf_keras


class Configured:
    """Base of layers whose keyword arguments are their annotated attributes.

    A layer's config contains these arguments, and Keras knows the layer's class when it loads a file.

    Example:
        >>> class Scale(Configured, tf_keras.layers.Layer):
        ...     factor: float = 1.0
        >>> Scale(factor=2.0).get_config()["factor"]
        2.0
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        tf_keras.saving.register_keras_serializable("estimator_bridge")(cls)

    def __init__(self, **kwargs: Any) -> None:
        own = {name: kwargs.pop(name) if name in kwargs else getattr(self, name) for name in self._arguments()}
        super().__init__(**kwargs)
        for name, value in own.items():
            setattr(self, name, value)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        config: dict[str, Any] = super().get_config()  # type: ignore[misc]
        return config | {name: getattr(self, name) for name in self._arguments()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Returns the same layer."""
        return cls(**tf_keras.saving.deserialize_keras_object(config))

    @classmethod
    def _arguments(cls) -> list[str]:
        """Returns the names of the annotated attributes, those of base classes first."""
        return [
            name for base in reversed(cls.__mro__) if issubclass(base, Configured) for name in inspect.get_annotations(base)
        ]
