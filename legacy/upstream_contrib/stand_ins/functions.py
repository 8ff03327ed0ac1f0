"""Functions that today's TensorFlow no longer has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tensorflow.python.eager import context

from estimator_bridge.errors import NotSupportedError, documentation


def gone(*args: object, **kwargs: object) -> NoReturn:
    """Stands for a function of compiled code that no later TensorFlow has."""
    raise NotSupportedError(
        "This function of tf.contrib calls compiled code that TensorFlow 2 no longer has.",
        fix=f"Use what {documentation('reference/contrib-refused', 'what-to-use-instead')} names in its place.",
    )


def decorate_nothing(*args: object, **kwargs: object) -> Callable[[Any], Any]:
    """Returns a decorator that changes nothing, for registrations that TensorFlow no longer needs."""
    return lambda decorated: decorated


def list_devices() -> Any:
    """Returns the devices of the eager context."""
    return context.context().devices()
