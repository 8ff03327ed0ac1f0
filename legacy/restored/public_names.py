"""Names of TensorFlow 1's ``tf`` that ``tf.compat.v1`` dropped, though TensorFlow still has their implementation.

What was removed: ``tf.pywrap_tensorflow`` and ``tf.config.experimental_list_devices``, with TensorFlow 2.0 (2019).

Needed by: scripts that read checkpoints by ``tf.pywrap_tensorflow.NewCheckpointReader`` or count the devices by name.
"""

from __future__ import annotations

from tensorflow.python import pywrap_tensorflow
from tensorflow.python.eager import context

from estimator_bridge.legacy.restored.public_modules import api_version, load_public_modules


def restore() -> None:
    """Binds the names in TensorFlow 1's API.

    Example:
        >>> restore()
        >>> import tensorflow.compat.v1 as tf
        >>> tf.config.experimental_list_devices()
        ['/job:localhost/replica:0/task:0/device:CPU:0'...]
    """
    for name, module in load_public_modules().items():
        if api_version(name) == 1:
            setattr(module, "pywrap_tensorflow", pywrap_tensorflow)  # noqa: B010 -- mypy does not know the name
            setattr(module.config, "experimental_list_devices", experimental_list_devices)  # noqa: B010


def experimental_list_devices() -> list[str]:
    """Returns the full names of the devices of this process.

    Returns:
        One name a device.

    Example:
        >>> experimental_list_devices()[0]
        '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    context.ensure_initialized()
    return list(context.context().devices())
