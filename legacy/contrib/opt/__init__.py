"""``tf.contrib.opt``: optimizers whose slots and checkpoints have the names of TensorFlow 1.15's."""

from __future__ import annotations

from estimator_bridge.legacy.contrib.opt.lazy_adam import LazyAdamOptimizer
from estimator_bridge.legacy.contrib.opt.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from estimator_bridge.legacy.contrib.opt.wrappers import MovingAverageOptimizer

__all__ = [
    "AdamWOptimizer",
    "DecoupledWeightDecayExtension",
    "LazyAdamOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "extend_with_decoupled_weight_decay",
]
