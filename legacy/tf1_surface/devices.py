"""The devices that TensorFlow 1 asked for at its build, and that later builds find when they run."""

from __future__ import annotations

import sys

from estimator_bridge.legacy.warn_once import warn_once


def is_built_with_cuda() -> bool:
    """Returns True if TensorFlow is built for CUDA and this machine has a GPU.

    TensorFlow 1 had one package for CPUs and another for GPUs, and scripts choose the layout of images by the answer: ``channels_first`` does
    not train on CPUs. Today's package is built for both.
    """
    import tensorflow as tf

    is_built = bool(tf.test.is_built_with_cuda())
    if is_built and not tf.config.list_physical_devices("GPU"):
        frame = sys._getframe(1)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        warn_once("tf.test.is_built_with_cuda() is False here, as in TensorFlow 1's package for CPUs: there is no GPU", where)
        return False
    return is_built
