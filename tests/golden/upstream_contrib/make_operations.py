"""Records what tf.contrib's compiled operations do: python make_operations.py FOLDER (TensorFlow 1.15.5, Python 3.7, CPU).

Writes FOLDER/operations.json: for each operation a list of cases with the arguments, and the results or the error's class. With
``gradients``, each floating-point result is weighted by the sine of its position, and the gradients of the sum are recorded.
"""

import importlib
import json
import os
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
tf.logging.set_verbosity("ERROR")
FUNCTIONS = {
    "AdjustHsvInYiq": "image.python.ops.distort_image_ops gen_distort_image_ops.adjust_hsv_in_yiq",
    "BipartiteMatch": "image.python.ops.image_ops gen_image_ops.bipartite_match",
    "BucketizeWithInputBoundaries": "boosted_trees.python.ops.quantile_ops bucketize_with_input_boundaries",
    "DecodeLibsvm": "libsvm.python.ops.libsvm_ops gen_libsvm_ops.decode_libsvm",
    "GatherTree": "seq2seq.python.ops.beam_search_ops gather_tree",
    "ImageConnectedComponents": "image.python.ops.image_ops gen_image_ops.image_connected_components",
    "ImageProjectiveTransform": "image.python.ops.image_ops gen_image_ops.image_projective_transform",
    "MaskedMatmul": "factorization.python.ops.factorization_ops gen_factorization_ops.masked_matmul",
    "ObtainNext": "input_pipeline.python.ops.input_pipeline_ops gen_input_pipeline_ops.obtain_next",
    "PeriodicResample": "periodic_resample.python.ops.periodic_resample_op periodic_resample",
    "ReduceSliceMax": "reduce_slice_ops.python.ops.reduce_slice_ops reduce_slice_max",
    "ReduceSliceMin": "reduce_slice_ops.python.ops.reduce_slice_ops reduce_slice_min",
    "ReduceSliceProd": "reduce_slice_ops.python.ops.reduce_slice_ops reduce_slice_prod",
    "ReduceSliceSum": "reduce_slice_ops.python.ops.reduce_slice_ops reduce_slice_sum",
    "Resampler": "resampler.python.ops.resampler_ops gen_resampler_ops.resampler",
    "ScatterAddNdim": "tensor_forest.python.ops.tensor_forest_ops scatter_add_ndim",
    "SkipGramGenerateCandidates": "text.python.ops.skip_gram_ops gen_skip_gram_ops.skip_gram_generate_candidates",
    "SparseFeatureCross": "layers.python.ops.sparse_feature_cross_op gen_sparse_feature_cross_op.sparse_feature_cross",
    "SparseFeatureCrossV2": "layers.python.ops.sparse_feature_cross_op gen_sparse_feature_cross_op.sparse_feature_cross_v2",
    "WALSComputePartialLhsAndRhs": (
        "factorization.python.ops.factorization_ops gen_factorization_ops.wals_compute_partial_lhs_and_rhs"
    ),
    "ZeroInitializer": "framework.python.ops.variables gen_variable_ops.zero_initializer",
    "ZeroVarInitializer": "framework.python.ops.variables gen_variable_ops.zero_var_initializer",
}
RANDOM = np.random.RandomState(5)
CASES = []


class Variable:
    """An argument that is a variable."""

    def __init__(self, values, initialized=True, resource=False):
        self.values, self.initialized, self.resource = values, initialized, resource


def case(operation, *arguments, **options):
    """Notes one call of an operation; the option ``gradients`` asks for gradients."""
    CASES.append((operation, arguments, options.pop("gradients", False), options))


def normal(*shape):
    """Random float32 values."""
    return RANDOM.normal(size=shape).astype(np.float32)


def integers(low, high, *shape):
    """Random int32 values."""
    return RANDOM.randint(low, high, size=shape).astype(np.int32)


def beams():
    """Cases of GatherTree."""
    for time, batch, width in ((1, 1, 1), (5, 3, 4), (9, 2, 3), (2, 1, 2), (16, 2, 5), (0, 2, 3), (3, 0, 2)):
        ids, parents = integers(0, 12, time, batch, width), integers(0, width, time, batch, width)
        for lengths in (np.full(batch, time), RANDOM.randint(0, time + 1, batch), np.full(batch, time + 3), np.full(batch, -1)):
            case("GatherTree", ids, parents, lengths.astype(np.int32), np.int32(9))
    ids, parents = integers(0, 9, 4, 1, 2), integers(0, 2, 4, 1, 2)
    unused, below, above = parents.copy(), parents.copy(), parents.copy()
    unused[0], unused[3], below[2], above[2] = -1, 7, -1, 5
    dead = np.zeros_like(parents)
    dead[1, 0, 1] = 6  # all beams come from beam 0
    lengths, end = np.int32([3]), np.int32(8)
    for broken in (unused, below, above, dead):
        case("GatherTree", ids, broken, lengths, end)
    case("GatherTree", ids[0], parents[0], lengths, end)
    case("GatherTree", ids, parents[1:], lengths, end)
    case("GatherTree", ids, parents, np.int32([3, 3]), end)
    case("GatherTree", ids, parents, lengths, np.int32([8]))


def resampling():
    """Cases of Resampler and PeriodicResample."""
    data, warp = normal(2, 4, 5, 3), RANDOM.uniform(-1.5, 5.5, size=(2, 6, 2)).astype(np.float32)
    case("Resampler", data, warp, gradients=True)
    case("Resampler", data.astype(np.float64), warp.astype(np.float64), gradients=True)
    case("Resampler", data.astype(np.float16), warp.astype(np.float16))
    case("Resampler", data, warp.reshape(2, 3, 2, 2), gradients=True)
    whole = np.float32(
        [[[0, 0], [4, 3], [-1, 0], [5, 4], [4.5, 3.5], [-0.5, -0.5]], [[2, 1], [2, 3.5], [9, 9], [4, 4], [5, 0], [0, -1]]]
    )
    case("Resampler", data, whole, gradients=True)
    case("Resampler", data, np.float32([[[np.nan, 1], [1, np.inf], [1e30, 1]]] * 2))
    case("Resampler", data, np.zeros((2, 0, 2), np.float32))
    case("Resampler", data, warp[:, 0])
    case("Resampler", data[:1], warp)
    case("Resampler", data, warp[..., :1])
    case("Resampler", data[0], warp)
    for shape, desired in (
        ([3, 4], [6, None]),
        ([3, 4], [None, 8]),
        ([3, 4], [4, None]),
        ([4, 4, 2], [8, 8, None]),
        ([2, 2, 16], [4, 4, None]),
        ([2, 3, 12], [None, 5, 17]),
        ([6], [None]),
        ([3, 4], [2, None]),
        ([3, 4], [6, 2]),
        ([3, 4], [None, None]),
        ([3, 4], [6, None, 1]),
    ):
        repeats = any(size and size % old for size, old in zip(desired, shape))
        is_whole = not repeats and np.prod(shape) % np.prod([size for size in desired if size]) == 0
        case("PeriodicResample", normal(*shape), shape=desired, gradients=is_whole)  # else they are wrong, or random memory
    case("PeriodicResample", integers(0, 99, 2, 2, 4), shape=[4, 4, None])


def slices():
    """Cases of ReduceSlice."""
    data = normal(6, 3)
    pairs = np.int32([[0, 1], [1, 1], [0, 3], [2, 99], [4, 2], [5, 6], [6, 8]])
    for name in ("ReduceSliceSum", "ReduceSliceProd", "ReduceSliceMax", "ReduceSliceMin"):
        case(name, data, pairs, np.int64(0))
        case(name, data.astype(np.float64), pairs.astype(np.int64), np.int64(0))
        case(name, data.T.copy(), pairs, np.int64(1))
        case(name, integers(-5, 5, 2, 4, 3), pairs, np.int64(1))
        case(name, integers(-5, 5, 4, 3), np.int32([0, 2, 2, 4]), np.int64(0))
        case(name, data[:, 0], np.int32([0, 3, 3, 6]), np.int64(0))
        case(name, data, np.zeros((0, 2), np.int32), np.int64(0))
        case(name, data, np.int32([1]), np.int64(0))
        case(name, np.zeros((0, 3), np.float32), pairs, np.int64(0))
        case(name, data.astype(np.float16), pairs, np.int64(0))
        case(name, data, np.int32([[0, 1, 2]]), np.int64(0))
        case(name, data, np.int32([[[0, 1]]]), np.int64(0))
        case(name, data, pairs, np.int64(2))
        case(name, np.float32(1), pairs, np.int64(0))
        case(name, data.T.copy(), pairs, np.int64(-1))


def factors():
    """Cases of MaskedMatmul and WALSComputePartialLhsAndRhs."""
    a, b = normal(4, 3), normal(3, 5)
    mask = np.int64([[0, 0], [3, 4], [2, 1], [2, 1], [0, 4]])
    case("MaskedMatmul", a, b, mask, False, False)
    case("MaskedMatmul", a.T.copy(), b, mask, True, False)
    case("MaskedMatmul", a, b.T.copy(), mask, False, True)
    case("MaskedMatmul", a.T.copy(), b.T.copy(), mask, True, True)
    case("MaskedMatmul", a, b, mask[:0], False, False)
    case("MaskedMatmul", a, b, np.int64([[4, 0]]), False, False)
    case("MaskedMatmul", a, b, np.int64([[0, -1]]), False, False)
    case("MaskedMatmul", a, a, mask, False, False)
    case("MaskedMatmul", a, b, mask[0], False, False)
    indices = np.int64([[0, 1], [0, 3], [1, 0], [3, 2], [3, 3]])
    right, weights, values, none = normal(4, 2), RANDOM.uniform(size=4).astype(np.float32), normal(5), np.zeros(0, np.float32)
    rows, entries, wals = (
        RANDOM.uniform(size=4).astype(np.float32),
        RANDOM.uniform(size=5).astype(np.float32),
        "WALSComputePartialLhsAndRhs",
    )
    for unobserved in np.float32([0, 0.3]):
        case(wals, right, weights, unobserved, rows, indices, values, none, np.int64(4), False)
        case(wals, right, weights, unobserved, rows, indices[:, ::-1].copy(), values, none, np.int64(4), True)
        case(wals, right, none, unobserved, none, indices, values, entries, np.int64(4), False)
        case(wals, right, none, unobserved, none, indices[:, ::-1].copy(), values, entries, np.int64(4), True)
    shuffled = indices[[3, 0, 2, 4, 1]]
    case(wals, right, weights, np.float32(0.3), rows, shuffled, values, none, np.int64(4), False)
    case(wals, right, weights, np.float32(0.3), rows, indices[:0], values[:0], none, np.int64(4), False)
    case(wals, right, weights, np.float32(0.3), rows[:2], indices, values, none, np.int64(2), False)
    case(wals, right, weights, np.float32(0.3), rows, indices, values, entries, np.int64(4), False)
    case(wals, right, weights[:3], np.float32(0.3), rows, indices, values, none, np.int64(4), False)
    case(wals, right, none, np.float32(0.3), none, indices, values, entries[:2], np.int64(4), False)


def images():
    """Cases of the operations on images."""
    picture = RANDOM.uniform(size=(2, 3, 4, 3)).astype(np.float32)
    for hue, saturation, value in ((0, 1, 1), (0.7, 1, 1), (0, 0.4, 1), (0, 1, 1.7), (-2.3, 1.2, 0.8), (0.3, 0, 0)):
        case("AdjustHsvInYiq", picture, np.float32(hue), np.float32(saturation), np.float32(value))
    case("AdjustHsvInYiq", picture[:0], np.float32(0.2), np.float32(1), np.float32(1))
    case("AdjustHsvInYiq", picture[0, 0], np.float32(0.2), np.float32(1), np.float32(1))
    case("AdjustHsvInYiq", picture[..., :2], np.float32(0.2), np.float32(1), np.float32(1))
    case("AdjustHsvInYiq", picture, np.float32([0.2]), np.float32(1), np.float32(1))
    case("AdjustHsvInYiq", picture, np.float32(0.2), np.float32(-1), np.float32(1))
    case("AdjustHsvInYiq", picture.astype(np.float64), np.float32(0.2), np.float32(1), np.float32(1))
    transforms = np.float32([[0.8, -0.3, 0.7, 0.3, 0.9, -0.4, 0.01, -0.02], [1, 0, -1.5, 0, 1, 0.5, 0, 0]])
    for kind in ("NEAREST", "BILINEAR"):
        case("ImageProjectiveTransform", picture, transforms, interpolation=kind)
        case("ImageProjectiveTransform", (picture * 255).astype(np.uint8), transforms[:1], interpolation=kind)
    case("ImageProjectiveTransform", picture, transforms[:, :7], interpolation="NEAREST")
    case("ImageProjectiveTransform", picture, transforms, interpolation="CUBIC")
    components = "ImageConnectedComponents"
    for shape, top in (((1, 1, 1), 2), ((2, 6, 7), 2), ((1, 9, 9), 2), ((3, 5, 4), 3), ((2, 0, 3), 2)):
        case(components, integers(0, top, *shape))
    case(components, integers(0, 2, 2, 5, 5).astype(bool))
    case(components, np.float32([[[0.5, 0.5, 0], [-1, 0.5, np.nan], [-1, 0.5, np.nan]]]))
    case(components, np.array([[[b"a", b"a", b""], [b"b", b"a", b"a"]]], object))
    case(components, integers(0, 2, 5, 5))
    for rows, columns, valid, top in (
        (4, 5, -1, -1), (5, 3, -1, -1), (5, 5, 2, -1), (4, 6, -1, 2), (4, 4, 9, 9), (3, 3, 0, -1), (3, 3, -1, 0), (0, 3, -1, -1), (3, 0, -1, -1),
    ):  # fmt: skip
        case("BipartiteMatch", RANDOM.uniform(size=(rows, columns)).astype(np.float32), np.float32(valid), top_k=top)
    case("BipartiteMatch", integers(0, 3, 5, 5).astype(np.float32), np.float32([-1]))
    case("BipartiteMatch", integers(0, 3, 6, 4).astype(np.float32), np.float32(2.7))
    case("BipartiteMatch", np.float32([[np.inf, 1], [np.inf, 1]]), np.float32(-1))
    case("BipartiteMatch", np.float32([[-1, np.inf], [np.inf, np.inf]]), np.float32(-1))
    case("BipartiteMatch", np.float32([[3e38, 3.4028235e38], [1, 2]]), np.float32(-1))
    case("BipartiteMatch", np.float32([[np.nan, 2], [1, 3]]), np.float32(-1))
    case("BipartiteMatch", np.float32([1, 2]), np.float32(-1))
    case("BipartiteMatch", np.float32([[1, 2]]), np.float32([1, 2]))


def features():
    """Cases of the operations on features."""
    first = (np.int64([[0, 0], [1, 0], [1, 1]]), np.array([b"a", b"b", b"c"], object), np.int64([3, 2]))
    second = (np.int64([[0, 0], [0, 1], [1, 0], [2, 0]]), np.array([b"d", b"", b"e", b"f"], object), np.int64([3, 2]))
    numbers = (second[0], np.int64([7, -3, 2**62, 5]), second[2])
    words, ids = np.array([[b"x", b"y"], [b"", b"z"], [b"x", b"y"]], object), np.int64([[4, 5], [-6, 7], [8, 9]])
    texts, mixed, integral = ((first, second), (words,)), ((first, numbers), (words, ids)), ((numbers,), (ids,))
    for operation, key in (("SparseFeatureCross", {}), ("SparseFeatureCrossV2", {"hash_key": 956888297470})):
        for (sparse, dense), internal in (
            (texts, "string"),
            (mixed, "int64"),
            (integral, "int64"),
            ((((first),), ()), "string"),
        ):
            lists = [[column[part] for column in sparse] for part in range(3)] + [list(dense)]
            cross_types = dict(internal_type=internal, **key)
            if len(sparse) > 1 or internal == "string":
                case(operation, *lists, hashed_output=False, num_buckets=0, out_type="string", **cross_types)
            for buckets in (0, 1, 1000):
                case(operation, *lists, hashed_output=True, num_buckets=buckets, out_type="int64", **cross_types)
        many = [normal(100, 2).astype(np.int64) * 10**15, integers(0, 50, 100, 2).astype(str).astype("S").astype(object)]
        case(operation, [], [], [], many, hashed_output=True, num_buckets=10**6, out_type="int64", internal_type="int64", **key)
        empty = [[np.zeros((0, 2), np.int64)], [np.zeros(0, object)], [np.int64([3, 2])], [words]]
        case(operation, *empty, hashed_output=True, num_buckets=9, out_type="int64", internal_type="int64", **key)
        wrong = [[first[0]], [first[1]], [first[2]], [words[:2]]]
        case(operation, *wrong, hashed_output=True, num_buckets=9, out_type="int64", internal_type="int64", **key)
    lines = np.array([b"1 1:3.5 2:-1e2 7:0", b"-2\t3:4 \n", b"  5   0:1", b"0"], object)
    for line_shape in ((4,), (2, 2)):
        case("DecodeLibsvm", lines.reshape(line_shape), num_features=10)
    case("DecodeLibsvm", np.array([b"1.5 1:3", b"2 2:4"], object), num_features=3, dtype=tf.int32, label_dtype=tf.float64)
    case("DecodeLibsvm", np.array(b"1 1:3", object), num_features=3)
    case("DecodeLibsvm", np.zeros(0, object), num_features=3)
    for line in (
        b"",
        b"+1 1:2",
        b"1 +1:+2",
        b"a 1:2",
        b"1 2",
        b"1 a:2",
        b"1 2:b",
        b"1 2:",
        b"1 :2",
        b"1 1:2:3",
        b"1 -1:2",
        b"1 9:2",
        b"1.5 1:2",
        b"1 1.5:2",
        b"1 1: 2",
    ):
        case("DecodeLibsvm", np.array([line], object), num_features=5)
    edges = np.float32([0, 10, 10, 100])
    for numbers in (
        np.float32([[-5, 10000], [150, 10], [5, 100]]),
        np.int32([0, 10, 11]),
        np.float64([1e-300, -1e-300, 99.999]),
        np.float32([np.nan, np.inf]),
    ):
        case("BucketizeWithInputBoundaries", numbers, edges)
    case("BucketizeWithInputBoundaries", np.int64([2**24 + 1]), np.float32([2**24 + 2]))
    case("BucketizeWithInputBoundaries", np.float32([1, 2]), edges[:0])
    case("BucketizeWithInputBoundaries", np.zeros(0, np.float32), edges)
    case("BucketizeWithInputBoundaries", edges, np.float32([[1, 2]]))


def texts():
    """Cases of SkipGramGenerateCandidates; its first run alone is recorded."""
    ids, words, name = (
        np.arange(10, dtype=np.int32),
        np.array([b"the", b"quick", b"brown", b"fox"], object),
        "SkipGramGenerateCandidates",
    )
    for least, most, start, limit, own in (
        (2, 2, 0, -1, False), (1, 1, 3, 4, True), (0, 0, 0, -1, True), (0, 0, 0, -1, False), (1, 4, 0, -1, False), (0, 3, 2, 5, True),
        (20, 20, 0, 3, False), (1, 1, 8, 20, False), (1, 1, 12, 2, False), (1, 1, 0, 0, False), (3, 1, 0, -1, False), (-1, 2, 0, -1, False),
    ):  # fmt: skip
        case(name, ids, np.int32(least), np.int32(most), np.int32(start), np.int32(limit), own, seed=3, seed2=7)
    case(name, words, np.int32(1), np.int32(3), np.int32(0), np.int32(-1), False, seed=5, seed2=1)
    case(name, ids[:0], np.int32(1), np.int32(3), np.int32(0), np.int32(-1), False, seed=5, seed2=1)
    case(name, ids.reshape(2, 5), np.int32(1), np.int32(3), np.int32(0), np.int32(-1), False, seed=5, seed2=1)


def variables():
    """Cases of the operations on variables."""
    for values in (normal(3, 2), integers(1, 9, 4), np.float64(2), np.zeros((0, 2), np.float32)):
        for initialized in (False, True):
            case("ZeroInitializer", Variable(values, initialized))
            shape, dtype = list(np.shape(values)), np.asarray(values).dtype.name
            case("ZeroVarInitializer", Variable(values, initialized, resource=True), dtype=dtype, shape=shape)
    table, add = normal(4, 3), "ScatterAddNdim"
    case(add, Variable(table), np.int32([[0, 0], [3, 2], [0, 0]]), normal(3))
    case(add, Variable(table), np.int32([[1], [3], [1]]), normal(3, 3))
    case(add, Variable(table), np.zeros((0, 2), np.int32), normal(0))
    case(add, Variable(table), np.int32([[4, 0]]), normal(1))
    case(add, Variable(table), np.int32([[0, -1]]), normal(1))
    case(add, Variable(table), np.int32([[0, 0]]), normal(2))
    files = np.array([b"a", b"b", b"c"], object)
    for position in (-1, 0, 1, 2, 7):
        case("ObtainNext", files, Variable(np.int64(position)))
    case("ObtainNext", files[:0], Variable(np.int64(-1)))
    case("ObtainNext", files.reshape(1, 3), Variable(np.int64(-1)))
    case("ObtainNext", files, Variable(np.int64([-1])))


def function(operation):
    """Returns contrib's function of an operation."""
    module, _, path = FUNCTIONS[operation].partition(" ")
    found = importlib.import_module("tensorflow.contrib." + module)
    if operation.startswith("Zero"):  # its library is loaded by a function
        tf.load_op_library(os.path.join(os.path.dirname(found.__file__), "_variable_ops.so"))
    for name in path.split("."):
        found = getattr(found, name)
    return found


def as_json(value):
    """Returns an argument or a result as JSON has it."""
    if isinstance(value, (list, tuple)) and (not value or not isinstance(value[0], (int, type(None)))):
        return [as_json(item) for item in value]
    if isinstance(value, Variable):
        return {"variable": as_json(value.values), "initialized": value.initialized, "resource": value.resource}
    if isinstance(value, tf.DType):
        return value.name
    if not isinstance(value, (np.ndarray, np.generic, bytes)):
        return value
    value = np.asarray(value)
    flat = value.ravel().tolist()
    if value.dtype.kind in "OS":
        flat = [item.decode("latin1") for item in flat]
    elif value.dtype.kind == "f":
        flat = [float(str(item)) for item in value.ravel()]  # the shortest text that gives the same value again
    return {"dtype": "bytes" if value.dtype.kind in "OS" else value.dtype.name, "shape": list(value.shape), "values": flat}


def fed(argument):
    """Returns what the operation gets for an argument: a constant, or a variable, and what to watch."""
    if isinstance(argument, Variable):
        return v1.Variable(argument.values, use_resource=argument.resource, dtype=np.asarray(argument.values).dtype.name)
    if isinstance(argument, list):
        return [fed(item) for item in argument]
    return tf.constant(argument) if isinstance(argument, (np.ndarray, np.generic)) else argument


def outcome(operation, arguments, gradients, options):
    """Runs one case."""
    with tf.Graph().as_default():
        fed_arguments = [fed(argument) for argument in arguments]
        given = [argument.handle if hasattr(argument, "handle") else argument for argument in fed_arguments]
        given = [argument._ref() if isinstance(argument, v1.Variable) else argument for argument in given]
        held = [(argument, one) for argument, one in zip(fed_arguments, arguments) if isinstance(one, Variable)]
        try:
            results = function(operation)(*given, **options)
            listed = list(results) if isinstance(results, (tuple, list)) else [results]
            listed = [result for result in listed if getattr(result, "dtype", None) != tf.resource]
            found = {}
            if gradients:
                loss = weighted(listed)
                floating = [tensor for tensor in given if tensor.dtype.is_floating]
                found["gradients"] = tf.gradients(loss, floating)
            with v1.Session() as session:
                session.run([variable.initializer for variable, one in held if one.initialized])
                if held and operation != "ObtainNext":
                    session.run(results if isinstance(results, tf.Operation) else results.op)
                else:
                    found = session.run(dict(found, results=listed))
                found["after"] = session.run([variable for variable, _ in held])
            return {key: as_json(value) for key, value in found.items() if value}
        except (tf.errors.OpError, ValueError, TypeError) as error:
            if "-v" in sys.argv:
                print(error)
            return {"raised": type(error).__name__}


def apart(operation, arguments, gradients, options):
    """Runs one case in a process of its own, since some wrong arguments end TensorFlow 1.15.5."""
    function(operation)  # loads the library once
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiver)
        with os.fdopen(sender, "w") as pipe:
            pipe.write(json.dumps(outcome(operation, arguments, gradients, options)))
            pipe.flush()
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if not status else {"raised": "signal %d" % status}


def weighted(results):
    """Returns the sum of all results, each element weighted by the sine of its position."""
    sums = []
    for result in results:
        flat = tf.reshape(result, [-1])
        sums.append(tf.reduce_sum(flat * tf.sin(tf.cast(tf.range(tf.size(flat)), flat.dtype))))
    return tf.add_n(sums)


def main(folder):
    """Writes the file."""
    for group in (beams, resampling, slices, factors, images, features, texts, variables):
        group()
    recorded = {}
    for operation, arguments, gradients, options in CASES:
        entry = {"arguments": as_json(arguments), "options": {key: as_json(value) for key, value in options.items()}}
        entry.update(apart(operation, arguments, gradients, options))
        recorded.setdefault(operation, []).append(entry)
        if "-v" in sys.argv:
            print(operation, entry, flush=True)
    with open(folder + "/operations.json", "w") as file:
        lists = [
            "%s: [\n%s\n]" % (json.dumps(name), ",\n".join(map(json.dumps, cases))) for name, cases in sorted(recorded.items())
        ]
        file.write("{%s}\n" % ",\n".join(lists))


if __name__ == "__main__":
    main(sys.argv[1])
