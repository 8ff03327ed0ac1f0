"""Operations of ``tf.contrib`` whose kernels TensorFlow 2 lacks, as graphs of operations that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_bridge.legacy.upstream_contrib.operations.beams import gather_tree
from estimator_bridge.legacy.upstream_contrib.operations.images import image_projective_transform
from estimator_bridge.legacy.upstream_contrib.operations.variables import zero_initializer

OPERATIONS: dict[str, Callable[..., Any]] = {
    "GatherTree": gather_tree,
    "ImageProjectiveTransform": image_projective_transform,
    "ZeroInitializer": zero_initializer,
}
"""Function by the name of the operation."""
