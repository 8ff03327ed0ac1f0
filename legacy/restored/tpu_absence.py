"""Refusals of TPU features, shared by all stand-ins for them."""

from collections.abc import Callable
from typing import Any, NoReturn

from estimator_bridge.errors import NotSupportedError

_FIX = "Set use_tpu=False, or move to tf.distribute.TPUStrategy."


class NeedsTpuError(NotSupportedError, NotImplementedError):
    """The use of a feature that needs a TPU and parts of TensorFlow that were removed.

    Args:
        feature: Name of the feature in TensorFlow.
        fix: Advice for the user.

    Example:
        >>> print(NeedsTpuError("tpu_embedding.TPUEmbedding"))
        tpu_embedding.TPUEmbedding needs a TPU, and was removed from TensorFlow after 2.15.
          expected: TPUEstimator(use_tpu=False), on CPU or GPU
          received: tpu_embedding.TPUEmbedding
          to do:    Set use_tpu=False, or move to tf.distribute.TPUStrategy.
    """

    def __init__(self, feature: str, fix: str = _FIX) -> None:
        super().__init__(
            f"{feature} needs a TPU, and was removed from TensorFlow after 2.15.",
            expected="TPUEstimator(use_tpu=False), on CPU or GPU",
            received=feature,
            fix=fix,
        )


def refuse_call(feature: str, fix: str = _FIX) -> Callable[..., NoReturn]:
    """Returns a stand-in for a function or class.

    Args:
        feature: Name of the function or class in TensorFlow.
        fix: Advice for the user.

    Returns:
        A function that takes anything and raises NeedsTpuError.

    Example:
        >>> refuse_call("session_support.start_worker_watchdog")("a session")
        Traceback (most recent call last):
        estimator_bridge.legacy.restored.tpu_absence.NeedsTpuError: session_support.start_worker_watchdog needs a TPU, ...
    """

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:  # takes whatever the original took
        raise NeedsTpuError(feature, fix)

    return refuse
