"""Operations of ``tf.contrib`` whose kernels TensorFlow 2 lacks, as graphs of operations that it has."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_import = importlib.import_module  # a running script sees another one

_PLACES = {
    "AdjustHsvInYiq": "images.adjust_hsv_in_yiq",
    "BipartiteMatch": "matching.bipartite_match",
    "BucketizeWithInputBoundaries": "features.bucketize_with_input_boundaries",
    "DecodeLibsvm": "features.decode_libsvm",
    "GatherTree": "beams.gather_tree",
    "ImageConnectedComponents": "components.image_connected_components",
    "ImageProjectiveTransform": "images.image_projective_transform",
    "MaskedMatmul": "factors.masked_matmul",
    "ObtainNext": "variables.obtain_next",
    "PeriodicResample": "resampling.periodic_resample",
    "ReduceSliceMax": "slices.reduce_slice_max",
    "ReduceSliceMin": "slices.reduce_slice_min",
    "ReduceSliceProd": "slices.reduce_slice_prod",
    "ReduceSliceSum": "slices.reduce_slice_sum",
    "Resampler": "resampling.resampler",
    "ScatterAddNdim": "variables.scatter_add_ndim",
    "SkipGramGenerateCandidates": "texts.skip_gram_generate_candidates",
    "SparseFeatureCross": "crosses.sparse_feature_cross",
    "SparseFeatureCrossV2": "crosses.sparse_feature_cross_v2",
    "WALSComputePartialLhsAndRhs": "factors.wals_compute_partial_lhs_and_rhs",
    "ZeroInitializer": "variables.zero_initializer",
    "ZeroVarInitializer": "variables.zero_var_initializer",
}


def _imported_when_called(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(".")

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {key: value for key, value in kwargs.items() if value is not None}  # None is the default of an attribute
        return getattr(_import(f"{__name__}.{module}"), name)(*args, **given)

    return call


OPERATIONS: dict[str, Callable[..., Any]] = {name: _imported_when_called(place) for name, place in _PLACES.items()}
"""Function by the name of the operation; each imports its module when it is called."""
