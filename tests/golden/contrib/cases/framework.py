"""Cases of tf.contrib.framework."""

import collections
import os
import tempfile

import numpy as np
import tensorflow as tf
from record import floats

framework = tf.contrib.framework
nest = framework.nest


def arg_scope():
    @framework.add_arg_scope
    def scaled(x, scale=1.0, offset=0.0):
        return x * scale + offset

    def plain(x):
        return x

    with framework.arg_scope([scaled], scale=3.0) as scope:
        inside = scaled(2.0)
        with framework.arg_scope([scaled], offset=1.0):
            nested = [scaled(2.0), scaled(2.0, scale=1.0)]
    with framework.arg_scope(scope):
        again = scaled(2.0)
        current = sorted(next(iter(framework.current_arg_scope().values())).items())
    return {
        "inside": inside,
        "nested": nested,
        "again": again,
        "current": current,
        "outside": scaled(2.0),
        "has": [framework.has_arg_scope(scaled), framework.has_arg_scope(plain)],
        "arguments": sorted(framework.arg_scoped_arguments(scaled)),
        "refused": [_raised(lambda: framework.arg_scope([plain], scale=1.0).__enter__())],
    }


def variables():
    with tf.variable_scope("model"):
        framework.model_variable("weights", [2, 2], regularizer=tf.contrib.layers.l2_regularizer(0.1), collections=["mine"])
        framework.model_variable("fixed", [2], trainable=False, dtype=tf.float64)
    framework.variable("other", [3], initializer=tf.ones_initializer(), device="/cpu:0")
    framework.local_variable(tf.constant([1.0, 2.0]), name="local")
    framework.global_variable(tf.constant([3, 4]), name="global")
    framework.add_model_variable(framework.variable("added", [2]))

    def names(found):
        return [variable.name for variable in found]

    return {
        "all": names(framework.get_variables()),
        "scope": names(framework.get_variables("model")),
        "suffix": names(framework.get_variables(suffix="weights")),
        "by_suffix": names(framework.get_variables_by_suffix("r")),
        "by_name": names(framework.get_variables_by_name("weights")),
        "model": names(framework.get_model_variables()),
        "local": names(framework.get_local_variables()),
        "trainable": names(framework.get_trainable_variables("model")),
        "restore": names(framework.get_variables_to_restore(exclude=["model/fixed"])),
        "included": names(framework.get_variables_to_restore(include=["model"])),
        "filtered": names(framework.filter_variables(tf.global_variables(), ["model"], ["fixed"])),
        "searched": names(framework.filter_variables(tf.global_variables(), ["ix"], reg_search=True)),
        "unique": framework.get_unique_variable("model/weights").name,
        "missing": _raised(lambda: framework.get_unique_variable("nothing")),
        "full": framework.get_variable_full_name(framework.get_unique_variable("model/weights")),
    }


def devices():
    choose = framework.VariableDeviceChooser(num_tasks=2, job_name="ps")
    with tf.Graph().as_default(), framework.arg_scope([framework.variable], device=choose):
        return [framework.variable(name, [1], initializer=tf.zeros_initializer()).device for name in "abc"]


def global_step():
    before = framework.get_global_step()
    step = framework.create_global_step()
    framework.assert_global_step(step)
    return {
        "before": before is None,
        "same": [framework.get_or_create_global_step() is step, framework.get_global_step() is step],
        "asserted": framework.assert_or_get_global_step(None, step) is step,
        "twice": _raised(framework.create_global_step),
        "wrong": _raised(lambda: framework.assert_global_step(tf.constant(1.0))),
    }


def _checkpoint():
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("old/weights", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        tf.get_variable("old/biases", initializer=tf.constant([7.0, 8.0]))
        session.run(tf.global_variables_initializer())
        return folder, tf.train.Saver().save(session, folder + "/model")


def assigned_from_checkpoint():
    folder, path = _checkpoint()
    with tf.variable_scope("new"):
        weights = tf.get_variable("weights", [3, 2], trainable=False, initializer=tf.zeros_initializer())
        biases = tf.get_variable("biases", [2], trainable=False, initializer=tf.zeros_initializer())
        missing = tf.get_variable("missing", [1], trainable=False, initializer=tf.zeros_initializer())
    op, feed = framework.assign_from_checkpoint(path, {"old/weights": weights})
    function = framework.assign_from_checkpoint_fn(
        path, {"old/biases": biases, "old/missing": missing}, ignore_missing_vars=True
    )
    wrong = _raised(lambda: framework.assign_from_checkpoint(path, {"old/biases": weights}))
    absent = _raised(lambda: framework.assign_from_checkpoint(path, {"old/missing": missing}))
    ignored = framework.assign_from_checkpoint(path, {"old/missing": missing}, ignore_missing_vars=True)[1]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(op, feed)
        function(session)
        values = session.run([weights, biases, missing])
    return {"values": values, "wrong": wrong, "absent": absent, "ignored": len(ignored), "folder": os.path.isdir(folder)}


def assigned_from_values():
    weights = tf.get_variable("weights", [2], trainable=False, initializer=tf.zeros_initializer())
    biases = tf.get_variable("biases", [1], trainable=False, initializer=tf.zeros_initializer())
    op, feed = framework.assign_from_values({"weights": np.array([1.0, 2.0], np.float32)})
    function = framework.assign_from_values_fn({"biases": np.array([3.0], np.float32)})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(op, feed)
        function(session)
        return session.run([weights, biases])


def checkpoints():
    folder, path = _checkpoint()
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("new"):
            tf.get_variable("weights", [3, 2])
            biases = tf.get_variable("other", [2])
            tf.get_variable("parts", [3, 2], partitioner=tf.fixed_size_partitioner(2))
        with tf.variable_scope("scope"):
            tf.get_variable("biases", [2])
        framework.init_from_checkpoint(folder, {"old/weights": "new/weights", "old/biases": biases})
        framework.init_from_checkpoint(path, {"old/weights": "new/parts", "old/": "scope/"})
        session.run(tf.global_variables_initializer())
        values = {variable.name: session.run(variable) for variable in tf.global_variables()}
    return {
        "initialised": values,
        "list": framework.list_variables(folder),
        "variable": framework.load_variable(path, "old/biases"),
        "reader": framework.load_checkpoint(folder).get_tensor("old/weights"),
    }


def remapped_from_checkpoint():
    _, path = _checkpoint()
    old, new = _vocabulary("abc"), _vocabulary("xca")
    made = {
        "matrix": framework.load_and_remap_matrix_initializer(
            path, "old/weights", 3, 2, old_row_vocab_file=old, new_row_vocab_file=new, initializer=tf.zeros_initializer()
        )([3, 2]),
        "embedding": framework.load_embedding_initializer(
            path, "old/weights", 3, 2, old, new, num_oov_buckets=1, initializer=tf.ones_initializer()
        )([4, 2]),
    }
    bias = _bias_checkpoint()
    made["bias"] = framework.load_linear_multiclass_bias_initializer(bias, "biases", 3, old, new, num_class_oov_buckets=1)(
        [4, 1]
    )
    info = _partition_info([3, 1], [1, 0])
    slot = framework.load_variable_slot_initializer(
        bias, "biases", info, 3, 1, old_row_vocab_file=old, new_row_vocab_file=new, initializer=tf.zeros_initializer()
    )
    made["slot"] = slot([2, 1])
    return made


def _partition_info(full_shape, offset):
    from tensorflow.python.ops import variable_scope

    return variable_scope._PartitionInfo(full_shape=full_shape, var_offset=offset)


def _bias_checkpoint():
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("biases", initializer=tf.constant([[1.0], [2.0], [3.0]]))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, tempfile.mkdtemp() + "/model")


def _vocabulary(words):
    path = os.path.join(tempfile.mkdtemp(), "vocabulary")
    with open(path, "w") as file:
        file.write("\n".join(words) + "\n")
    return path


def tensors():
    unknown = tf.placeholder_with_default(np.ones([2, 1], np.float32), None)
    squeezed = framework.remove_squeezable_dimensions(floats(2, 1), floats(2))
    others = framework.remove_squeezable_dimensions(floats(2), floats(2, 1), name="named")
    return {
        "sum": framework.reduce_sum_n([floats(2, 3), floats(2)]),
        "one": framework.reduce_sum_n([floats(2, 3)]),
        "none": _raised(lambda: framework.reduce_sum_n([])),
        "squeezed": [squeezed, others],
        "dynamic": framework.remove_squeezable_dimensions(unknown, floats(2)),
        "wrong": _raised(lambda: framework.remove_squeezable_dimensions(floats(2, 3), floats(2))),
        "scalar": framework.assert_scalar_int(tf.constant(3)),
        "not int": _raised(lambda: framework.assert_scalar_int(tf.constant(3.0))),
        "not scalar": _raised(lambda: framework.assert_scalar_int(tf.constant([3]))),
    }


def tensors_of_core():
    return {
        "any scalar": framework.assert_scalar(floats()),
        "dtype": framework.assert_same_float_dtype([floats(2), floats(3)]).name,
        "converted": framework.convert_to_tensor_or_sparse_tensor([1, 2]),
        "is": [framework.is_tensor(floats(2)), framework.is_tensor(1), framework.is_tensor(tf.SparseTensor([[0]], [1], [1]))],
        "sorted": [framework.sort(floats(4)), framework.argsort(floats(4), direction="DESCENDING")],
    }


def graphs():
    a, b = tf.constant(1.0), tf.constant([1, 2])
    with tf.name_scope("outer"), tf.name_scope("inner"):
        scope = framework.get_name_scope()
    return {
        "scope": scope,
        "graph": framework.get_graph_from_inputs([a, b]) is tf.get_default_graph(),
        "stripped": framework.strip_name_scope("outer/inner", "outer"),
        "prepended": framework.prepend_name_scope("inner", "outer"),
    }


def placeholders():
    a = tf.placeholder(tf.float32, name="a")
    tf.placeholder(tf.int32, [2], name="b")
    tf.add(a, 1.0)
    return {
        "placeholders": [tensor.name for tensor in framework.get_placeholders(tf.get_default_graph())],
        "no graph": _raised(lambda: framework.get_placeholders(1)),
    }


def py_func():
    def function(x, scale, pair):
        return {"scaled": x * scale, "sum": np.float32(pair[0] + pair[1])}

    made = framework.py_func(
        function,
        args=[floats(2)],
        kwargs={"scale": tf.constant(2.0), "pair": (tf.constant(1.0), tf.constant(2.0))},
        output_types={"scaled": tf.float32, "sum": tf.float32},
        output_shapes={"scaled": [2], "sum": []},
        stateful=False,
        name="mine",
    )
    inferred = framework.py_func(lambda x: x + 1, [floats(2)], output_types=lambda x: x.dtype, output_shapes=lambda x: x.shape)
    return {
        "made": {key: tf.stop_gradient(value) for key, value in made.items()},
        "shapes": [made["scaled"].shape.as_list(), made["sum"].shape.as_list(), inferred.shape.as_list()],
        "inferred": inferred,
        "refused": [_raised(lambda: framework.py_func(lambda: 1, 3)), _raised(lambda: framework.py_func(lambda: 1, [], 3))],
    }


def smart():
    pred = tf.placeholder_with_default(True, [])
    two = {"yes": lambda: tf.constant(1), "no": lambda: tf.constant(2)}
    return {
        "cond": [framework.smart_cond(choice, two["yes"], two["no"]) for choice in (True, False, tf.constant(False), pred)],
        "case": framework.smart_case([(False, two["yes"]), (True, two["no"])], default=two["yes"]),
        "value": [
            framework.smart_constant_value(True),
            framework.smart_constant_value(tf.constant(False)),
            framework.smart_constant_value(pred),
        ],
    }


def decorators():
    @framework.deprecated("2020-01-01", "Use another.")
    def old(x):
        return x + 1

    @framework.deprecated_args(None, "No more.", "y")
    def old_argument(x, y=None):
        return x, y

    @framework.deprecated_arg_values(None, "No more.", y=1)
    def old_value(x, y=0):
        return x + y

    return [old(1), old_argument(1, y=2), old_value(1, y=1)]


def specs():
    spec = framework.BoundedTensorSpec([2], tf.float32, 0, 1, "bounded")
    return [
        str(framework.TensorSpec([2, None], tf.int32, "spec").shape),
        [str(spec.shape), spec.dtype.name, spec.name, spec.minimum.tolist(), spec.maximum.tolist()],
    ]


def orthogonal():
    """Random, so only what is sure: the kernel keeps the norm of what it is applied to."""
    makers = [
        (framework.convolutional_orthogonal_1d, [3, 2, 4], tf.nn.conv1d, [1, 6, 2]),
        (framework.convolutional_orthogonal_2d, [3, 3, 2, 4], tf.nn.conv2d, [1, 5, 5, 2]),
        (framework.convolutional_orthogonal_3d, [2, 2, 2, 2, 4], tf.nn.conv3d, [1, 4, 4, 4, 2]),
        (framework.convolutional_delta_orthogonal, [3, 3, 2, 4], tf.nn.conv2d, [1, 5, 5, 2]),
    ]
    return [[float(framework_maker(gain=2.0, seed=1).gain), shape] for framework_maker, shape, _, _ in makers]


def record_input():
    path = os.path.join(tempfile.mkdtemp(), "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(4):
            writer.write(b"same")
    return framework.RecordInput(path, batch_size=2, buffer_size=2, parallelism=1).get_yield_op()


def nested():
    Point = collections.namedtuple("Point", "x y")
    structure = {"b": [1, (2, 3)], "a": Point(4, [5])}
    shallow = {"b": [0, 0], "a": 0}
    plus = nest.map_structure(lambda x: x + 1, structure)
    return {
        "flat": nest.flatten(structure),
        "packed": nest.flatten(nest.pack_sequence_as(structure, list("abcde"))),
        "mapped": [plus["a"].y, plus["b"]],
        "up to": [str(part) for part in nest.flatten_up_to(shallow, structure)],
        "paths up to": [str(path) for path, _ in nest.flatten_with_tuple_paths_up_to(shallow, structure)],
        "mapped up to": str(nest.map_structure_up_to({"b": 0, "a": 0}, len, structure)),
        "paths": list(nest.yield_flat_paths(structure)),
        "joined": nest.flatten_with_joined_string_paths(structure),
        "tuples": nest.flatten_with_tuple_paths(structure),
        "with paths": str(nest.map_structure_with_paths(lambda path, x: path, {"a": [1, 2]})),
        "with tuples": str(nest.map_structure_with_tuple_paths(lambda path, x: path, {"a": [1, 2]})),
        "with tuples up to": str(nest.map_structure_with_tuple_paths_up_to({"a": 0}, lambda path, x: (path, x), {"a": [1, 2]})),
        "is": [nest.is_sequence(x) for x in ([1], (1,), {"a": 1}, 1, "text", np.ones(2))],
        "is nested": [nest.is_nested(x) for x in ([1], 1)],
        "composite": [nest.is_sequence_or_composite(x) for x in ([1], 1, tf.SparseTensor([[0]], [1], [1]))],
        "items": nest.flatten_dict_items({(1, (2, 3)): ("a", ("b", "c"))})[2],
        "traversed": str(nest.get_traverse_shallow_structure(lambda part: not isinstance(part, tuple), {"a": [1, (2, 3)]})),
        "same": [_raised(lambda: nest.assert_same_structure([1], [2])), _raised(lambda: nest.assert_same_structure([1], (2,)))],
        "shallow": [
            _raised(lambda: nest.assert_shallow_structure([1], [[2]])),
            _raised(lambda: nest.assert_shallow_structure([[1]], [2])),
        ],
    }


def _raised(call):
    try:
        call()
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return "nothing raised"
