"""Digests of a batch and of variables, computed by TensorFlow on their own device or the CPU beside it."""

from collections.abc import Sequence
from typing import Any

_MULTIPLIER = 6364136223846793005  # Knuth's 64-bit linear congruential generator
_SAMPLED = 2**16  # elements of a variable, at most twice that; reading a large embedding takes longer than a step


def batch_digest(tensors: Sequence[Any]) -> Any:
    """Returns one int64 for all bytes, shapes and types of a batch, in order; equal batches give equal digests.

    Args:
        tensors: Tensors of any shape and dtype that ``tf.io.serialize_tensor`` takes, strings included.

    Returns:
        An int64 scalar tensor; in graph mode its operations belong to the tensors' graph.

    Example:
        >>> import tensorflow as tf
        >>> one, other = (int(batch_digest([tf.constant([x, 2.0])])) for x in (1.0, 1.5))
        >>> one == other
        False
    """
    import tensorflow as tf

    digest = tf.constant(len(tensors), tf.int64)
    for tensor in tensors:
        part = tf.strings.to_hash_bucket_fast(tf.io.serialize_tensor(tensor), 2**62)
        digest = digest * _MULTIPLIER + part
    return digest


def variables_digest(variables: Sequence[Any]) -> Any:
    """Returns one int64 for the values of variables; of a large variable, evenly spaced elements count.

    Args:
        variables: Variables of any kind with ``read_value``, but no containers of several variables.

    Returns:
        An int64 scalar tensor. Each variable is read on its device, and one number travels from each device.

    Example:
        >>> import tensorflow as tf
        >>> one, other = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.5])
        >>> int(variables_digest([one])) == int(variables_digest([other]))
        False
    """
    import tensorflow as tf

    on_device: dict[str, list[Any]] = {}
    for variable in variables:
        on_device.setdefault(processor_beside(variable.device), []).append(variable)
    parts = []
    for device, there in on_device.items():
        with tf.device(device):
            parts.append(batch_digest([_sample(variable) for variable in there]))
    return batch_digest(parts)


def processor_beside(device: str) -> str:
    """Returns the CPU in the task of a device, since only CPUs hash strings.

    Args:
        device: Device of an operation or a variable; empty if it has none.

    Returns:
        The name of the CPU.

    Example:
        >>> processor_beside("/job:ps/task:1/device:GPU:3")
        '/job:ps/task:1/device:CPU:0'
    """
    import tensorflow as tf

    return tf.DeviceSpec.from_string(device).replace(device_type="CPU", device_index=0).to_string()


def _sample(variable: Any) -> Any:
    import tensorflow as tf

    flat = tf.reshape(variable.read_value(), [-1])
    return flat[:: tf.maximum(1, tf.size(flat) // _SAMPLED)]
