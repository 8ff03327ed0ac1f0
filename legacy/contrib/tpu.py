"""``tf.contrib.tpu``: TPUEstimator, which also trains on CPU and GPU, and the functions of programs for TPUs."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.gen_tpu_ops import (
    infeed_enqueue,
    infeed_enqueue_tuple,
    outfeed_dequeue,
    outfeed_dequeue_tuple,
    outfeed_enqueue,
    outfeed_enqueue_tuple,
)
from tensorflow.python.tpu import tpu_function
from tensorflow.python.tpu.ops.tpu_ops import infeed_dequeue, infeed_dequeue_tuple
from tensorflow.python.tpu.tpu_feed import InfeedQueue
from tensorflow.python.tpu.training_loop import repeat, while_loop

__all__ = [
    "CrossShardOptimizer",
    "InfeedQueue",
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "batch_parallel",
    "bfloat16_scope",
    "core",
    "cross_replica_sum",
    "infeed_dequeue",
    "infeed_dequeue_tuple",
    "infeed_enqueue",
    "infeed_enqueue_tuple",
    "initialize_system",
    "outfeed_dequeue",
    "outfeed_dequeue_tuple",
    "outfeed_enqueue",
    "outfeed_enqueue_tuple",
    "outside_compilation",
    "repeat",
    "replicate",
    "rewrite",
    "shard",
    "shutdown_system",
    "while_loop",
]

IN_FILES = {name: getattr(tpu_function, name) for name in ("TpuContext", "get_tpu_context", "tpu_shard_context")}

CrossShardOptimizer = tf.tpu.CrossShardOptimizer
InputPipelineConfig = tf.estimator.tpu.InputPipelineConfig
RunConfig = tf.estimator.tpu.RunConfig
TPUConfig = tf.estimator.tpu.TPUConfig
TPUEstimator = tf.estimator.tpu.TPUEstimator
TPUEstimatorSpec = tf.estimator.tpu.TPUEstimatorSpec
batch_parallel = tf.tpu.batch_parallel
bfloat16_scope = tf.tpu.bfloat16_scope
core = tf.tpu.core
cross_replica_sum = tf.tpu.cross_replica_sum
initialize_system = tf.tpu.initialize_system
outside_compilation = tf.tpu.outside_compilation
replicate = tf.tpu.replicate
rewrite = tf.tpu.rewrite
shard = tf.tpu.shard
shutdown_system = tf.tpu.shutdown_system
