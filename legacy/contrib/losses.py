"""``tf.contrib.losses``, as tf-slim keeps it."""

# ruff: noqa: F405 -- names of the packages that are imported whole

from __future__ import annotations

from tf_slim.losses import *  # noqa: F403 -- __all__ says which

__all__ = [
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "metric_learning",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
