"""``tf.contrib.opt``: optimizers whose slots and checkpoints have the names of TensorFlow 1.15's."""

from __future__ import annotations

from estimator_bridge.legacy.contrib.opt.adagrad import RegAdagradOptimizer
from estimator_bridge.legacy.contrib.opt.adam import AdaMaxOptimizer, LazyAdamOptimizer, NadamOptimizer
from estimator_bridge.legacy.contrib.opt.lars import LARSOptimizer
from estimator_bridge.legacy.contrib.opt.sign import (
    AddSignOptimizer,
    PowerSignOptimizer,
    get_cosine_decay_fn,
    get_linear_decay_fn,
    get_restart_decay_fn,
)
from estimator_bridge.legacy.contrib.opt.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from estimator_bridge.legacy.contrib.opt.wrappers import (
    MovingAverageOptimizer,
    MultitaskOptimizerWrapper,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)

__all__ = [
    "AdaMaxOptimizer",
    "AdamWOptimizer",
    "AddSignOptimizer",
    "DecoupledWeightDecayExtension",
    "LARSOptimizer",
    "LazyAdamOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper",
    "NadamOptimizer",
    "PowerSignOptimizer",
    "RegAdagradOptimizer",
    "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]

IN_FILES = {
    "get_cosine_decay_fn": get_cosine_decay_fn,
    "get_linear_decay_fn": get_linear_decay_fn,
    "get_restart_decay_fn": get_restart_decay_fn,
}
