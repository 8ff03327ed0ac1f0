"""A side that trains freely with a seed: its own initial values, input and random numbers; only evaluations are recorded."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.calls import TracedEngine, scalar_metrics
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.runtime.patching import wrap


class FreeEngine(TracedEngine):
    """Executes a script's calls as they are, and records what its evaluations give."""

    def prepare(self, estimator: Any, call: Any, name: str) -> Any:
        """Returns the call."""
        return call


def prepare_keras(trace: Trace, seed: int) -> Callable[[], None]:
    """Seeds a Keras script, and records its evaluations for the life of the process.

    Args:
        trace: Trace of the side.
        seed: Seed of Python, NumPy and TensorFlow.

    Returns:
        A function to call after the script's end, which raises BridgeError if the script evaluated nothing.
    """
    import keras
    import tensorflow as tf
    import tf_keras

    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)

    def evaluate(original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(original).bind(model, *args, **kwargs)
        as_dict = given.arguments.get("return_dict", False)
        given.arguments["return_dict"] = True
        results = original(*given.args, **given.kwargs)
        trace.write("evaluated", call="", name="", metrics=scalar_metrics(results) | {"global_step": 0})
        values = list(results.values())
        return results if as_dict else values[0] if len(values) == 1 else values

    for kind in {tf_keras.Model, keras.Model}:
        wrap(kind, evaluate=evaluate)

    def check() -> None:
        if not any(trace.events("evaluated")):
            raise BridgeError(
                "The new script evaluated nothing that could be seen.",
                expected="evaluate of a Keras model, or fit with validation_data",
                fix="Evaluate at the end of the script.",
            )

    return check
