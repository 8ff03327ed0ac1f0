"""A session's ConfigProto is applied, and TensorFlow has it in force."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config import session_config

v1 = tf.compat.v1


def fields_are_in_force() -> None:
    config = v1.ConfigProto()
    config.intra_op_parallelism_threads, config.inter_op_parallelism_threads = 3, 2
    config.device_count["CPU"] = 2
    config.allow_soft_placement = True
    config.graph_options.optimizer_options.global_jit_level = v1.OptimizerOptions.ON_1
    config.gpu_options.allow_growth = True
    config.gpu_options.visible_device_list = "0"
    tf.config.set_soft_device_placement(False)
    now = _applied(config)
    assert (now.intra_op_parallelism_threads, now.inter_op_parallelism_threads) == (3, 2)
    assert len(tf.config.list_logical_devices("CPU")) == 2
    assert tf.config.get_soft_device_placement()
    assert now.allow_soft_placement
    assert tf.config.optimizer.get_jit() == "autoclustering"


def placement_is_logged() -> None:
    _applied(v1.ConfigProto(log_device_placement=True))
    assert tf.debugging.get_log_device_placement()


def threads_too_late_are_refused() -> None:
    tf.constant(1)
    with pytest.raises(BridgeError, match="intra_op_parallelism_threads=3"):
        session_config.apply(v1.ConfigProto(intra_op_parallelism_threads=3))


def _applied(config: Any) -> Any:
    assert session_config.apply(config) == []
    tf.constant(0)
    return context.context().config
