"""``tensorflow.python.tpu.session_support``: heartbeats and graceful shutdown of TPU workers.

What was removed: the module, with TensorFlow 2.16 (March 2024).

Needed by: importing TPUEstimator. A TPUEstimator on a TPU asks for a graceful shutdown; everything here needs TPU workers,
so each class refuses when it is constructed.
"""

import sys
from typing import Any

from tensorflow.python.framework import errors

from estimator_bridge.legacy.restored.tensorflow_modules import place
from estimator_bridge.legacy.restored.tpu_absence import NeedsTpuError, refuse_call

_FIX = "Set use_tpu=False; on a TPU, set TF_TPU_GRACEFUL_SHUTDOWN_MODE to an empty value, or move to tf.distribute.TPUStrategy."

start_worker_watchdog = refuse_call("session_support.start_worker_watchdog", _FIX)


def restore() -> None:
    """Puts the module back, unless this TensorFlow has it.

    Example:
        >>> restore()
        >>> from tensorflow.python.tpu import session_support
        >>> session_support.stop_worker_watchdog()
    """
    place("tensorflow.python.tpu.session_support", sys.modules[__name__])


class CoordinatorResetError(errors.AbortedError):
    """Tells a monitored session to start over.

    Example:
        >>> CoordinatorResetError().message
        'The session is reset because a worker shut down.'
    """

    def __init__(self) -> None:
        super().__init__(None, None, "The session is reset because a worker shut down.")


class _NeedsTpu:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NeedsTpuError(f"session_support.{type(self).__name__}", _FIX)


class WorkerHeartbeatManager(_NeedsTpu):
    """Stands in for the heartbeats of TPU workers."""

    from_devices = staticmethod(refuse_call("session_support.WorkerHeartbeatManager", _FIX))


class WatchdogManager(_NeedsTpu):
    """Stands in for the thread that pings TPU workers."""


class GracefulShutdownHook(_NeedsTpu):
    """Stands in for the hook that saves a checkpoint before TPU workers go away."""


class ResetComputation(_NeedsTpu):
    """Stands in for restarting all TPU workers after one has failed."""


class ShutdownLameWorkers(_NeedsTpu):
    """Stands in for shutting down the TPU workers that have failed."""


class ShutdownAllWorkers(_NeedsTpu):
    """Stands in for shutting down all TPU workers."""


def all_worker_devices(session: Any) -> list[str]:
    """Returns the CPU devices of TPU hosts, which send heartbeats.

    Args:
        session: Session connected to the workers.

    Returns:
        Device names; none without TPUs.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        ...     all_worker_devices(session)
        []
    """
    names = [device.name for device in session.list_devices()]
    return [name.replace("TPU", "CPU") for name in names if ":TPU:0" in name and "coordinator" not in name]


def stop_worker_watchdog() -> None:
    """Does nothing: no watchdog is running.

    Example:
        >>> stop_worker_watchdog()
    """
