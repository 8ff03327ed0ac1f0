"""Records what tf.contrib does with the cases of this folder: python record.py FOLDER [PACKAGE ...].

Under TensorFlow 1.15.5 (Python 3.7) it writes the goldens; the tests run this same file through ``estimator-bridge run``. A case
is a function that builds a graph and returns what is to be recorded: tensors, operations, plain values, in lists and
dictionaries. What it returns as ``run`` (a train_op, a metric's update) is run three
times before the rest, one after the other.

Random values would hang on the version: every trainable variable gets a value that follows from its name and shape alone.
"""

import importlib
import inspect
import json
import os
import sys
import tempfile
import zlib

import numpy as np
import tensorflow as tf

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
CORE = (
    "",
    "data",
    "data.experimental",
    "distribute",
    "distribute.cluster_resolver",
    "distributions",
    "errors",
    "estimator",
    "estimator.experimental",
    "estimator.tpu",
    "image",
    "initializers",
    "layers",
    "lookup",
    "losses",
    "math",
    "metrics",
    "nest",
    "nn",
    "nn.rnn_cell",
    "sets",
    "signal",
    "sparse",
    "summary",
    "tpu",
    "train",
)
INPUTS = "inputs of the case"
CONFIG = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
CONFIG.graph_options.rewrite_options.disable_meta_optimizer = True  # quicker for graphs that run once
PRIVATE = (INPUTS, "cond_context", "while_context")


def seeded(key, shape):
    """Values between -0.9 and 0.9 that follow from a name and a shape alone."""
    return np.random.RandomState(zlib.crc32(("%s %s" % (key, list(shape))).encode())).uniform(-0.9, 0.9, shape)


def floats(*shape, **options):
    """An input of a case: gradients are recorded for it."""
    number = len(tf.get_collection(INPUTS))
    values = seeded("input %d" % number, shape) * options.get("scale", 1)
    tensor = tf.constant(values, options.get("dtype", tf.float32), name="input")
    tf.add_to_collection(INPUTS, tensor)
    return tensor


def main(folder, packages):
    """Writes FOLDER/PACKAGE.json for each package."""
    for package in packages:
        module = importlib.import_module("cases." + package)
        cases = {name: case for name, case in vars(module).items() if inspect.isfunction(case) and _is_case(case, module)}
        recorded = {name: _outcome(case) for name, case in cases.items()}
        recorded["names of core"] = _names_of_core(getattr(tf.contrib, package))
        with open(os.path.join(folder, package + ".json"), "w") as file:
            file.write(_as_text(recorded))


def _is_case(function, module):
    return function.__module__ == module.__name__ and not function.__name__.startswith("_")


def _names_of_core(package):
    """The public names outside contrib that are the very same object."""
    paths = {}
    for path in CORE:
        home = tf
        for part in filter(None, path.split(".")):
            home = getattr(home, part)
        for name in dir(home):
            if not name.startswith("_"):
                paths.setdefault(id(getattr(home, name)), ".".join(filter(None, [path, name])))
    found = {name: paths.get(id(getattr(package, name))) for name in _public(package)}
    return {name: path for name, path in found.items() if path}


def _public(package):
    return getattr(package, "__all__", None) or [name for name in dir(package) if not name.startswith("_")]


def _outcome(case):
    try:
        return _record(case)
    except Exception as error:  # a case that fails here is told from one that fails in TensorFlow 1.15 by its record
        if os.environ.get("RAISE"):
            raise
        return {"raised": "%s: %s" % (type(error).__name__, str(error)[:300])}


def _record(case):
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        leaves = dict(_flat("", case()))
        before = {key[4:]: value for key, value in leaves.items() if key.startswith("/run")}
        leaves = {key[1:]: value for key, value in leaves.items() if not key.startswith("/run")}
        variables = tf.global_variables() + tf.local_variables()
        record = {"variables": [_described(variable) for variable in variables], "collections": _collections(graph)}
        gradients = {} if before else _gradients(leaves)
        summaries = tf.get_collection(tf.GraphKeys.SUMMARIES)
        with tf.Session(config=CONFIG) as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
            tf.train.start_queue_runners(session, tf.train.Coordinator())
            random = [variable for variable in variables if _is_random(variable)]
            values = session.run(_by_name(variable for variable in variables if variable not in random))
            record["initial"] = dict(_by_name(random, "random"), **{name: _as_one(value) for name, value in values.items()})
            _seed(tf.trainable_variables() + random, session)
            for key in sorted(before) * 3:
                session.run(before[key])
            record["values"], record["gradients"] = _evaluated(leaves, session), _evaluated(gradients, session)
            record["summaries"] = dict(_tags(summary) for summary in session.run(summaries))
            if before:
                record["after"] = _plain(session.run(_by_name(variables)))
            record["checkpoint"] = _checkpoint(session)
        return {key: value for key, value in record.items() if value}


def _flat(path, value):
    if isinstance(value, dict):
        items = sorted(value.items())
    elif isinstance(value, (list, tuple)) and not isinstance(value, tf.SparseTensorValue):
        items = list(enumerate(value))
    else:
        return [(path, value)]
    return [leaf for key, part in items for leaf in _flat("%s/%s" % (path, key), part)]


def _described(variable):
    shape = None if variable.shape.ndims is None else variable.shape.as_list()
    return [variable.name, shape, variable.dtype.base_dtype.name]


def _collections(graph):
    keys = [
        key
        for key in graph.get_all_collection_keys()
        if isinstance(key, str) and not key.startswith("__") and key not in PRIVATE
    ]
    collections = {key: [getattr(item, "name", type(item).__name__) for item in graph.get_collection(key)] for key in keys}
    return {key: names for key, names in collections.items() if names}


def _gradients(leaves):
    tensors = [leaf for leaf in leaves.values() if isinstance(leaf, tf.Tensor) and leaf.dtype.base_dtype.is_floating]
    wanted = tf.trainable_variables() + tf.get_collection(INPUTS)
    if not tensors or not wanted:
        return {}
    loss = tf.add_n(
        [tf.reduce_sum(tf.cast(tensor, tf.float32) * (0.5 + 0.25 * tf.cast(tensor, tf.float32))) for tensor in tensors]
    )
    gradients = [gradient if gradient is None else tf.convert_to_tensor(gradient) for gradient in tf.gradients(loss, wanted)]
    return {thing.name: gradient for thing, gradient in zip(wanted, gradients)}


def _by_name(variables, value=None):
    return {variable.name: value or variable for variable in variables}


def _evaluated(leaves, session):
    """Values of all at once, since each run of a graph costs what the graph costs."""
    received = session.run({key: leaf for key, leaf in leaves.items() if _is_of_graph(leaf)})
    return {
        key: "operation" if isinstance(leaf, tf.Operation) else _plain(received.get(key, leaf)) for key, leaf in leaves.items()
    }


def _is_of_graph(leaf):
    return isinstance(leaf, (tf.Operation, tf.Tensor, tf.Variable, tf.SparseTensor, tf.IndexedSlices))


def _seed(variables, session):
    """Values that hang on the variables' names, whatever random streams gave."""
    given = {variable.initializer.inputs[1]: variable for variable in variables}
    feed = {tensor: seeded(variable.op.name, variable.shape.as_list()) for tensor, variable in given.items()}
    session.run([variable.initializer for variable in variables], feed)


def _as_one(value):
    """One number where all are equal."""
    value = np.asarray(value)
    return _plain(value.flat[0] if value.size and (value == value.flat[0]).all() else value)


def _is_random(variable):
    seen, waiting = set(), [variable.initial_value.op]
    while waiting:
        operation = waiting.pop()
        if operation.name not in seen:
            seen.add(operation.name)
            waiting.extend(tensor.op for tensor in operation.inputs)
            if "Random" in operation.type or "TruncatedNormal" in operation.type:
                return True
    return False


def _plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (tf.SparseTensorValue, tf.compat.v1.ragged.RaggedTensorValue)):
        return {"indices": _plain(value.indices), "values": _plain(value.values), "dense_shape": _plain(value.dense_shape)}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic, float)):
        return _numbers(np.asarray(value))
    return type(value).__name__


def _numbers(array):
    if array.dtype.kind == "f":
        return (
            np.vectorize(lambda number: float("%.7g" % number), otypes=[object])(array).tolist()
            if array.size
            else array.tolist()
        )
    return [_plain(item) for item in array] if array.ndim else _plain(array.item())


def _tags(serialized):
    summary = tf.Summary.FromString(serialized)
    (value,) = summary.value
    return value.tag, _numbers(np.float32(value.simple_value)) if value.HasField("simple_value") else value.WhichOneof("value")


def _checkpoint(session):
    if not tf.global_variables():
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Saver().save(session, folder + "/model", write_meta_graph=False, write_state=False)
        return [list(entry) for entry in tf.train.list_variables(path)]


def _as_text(recorded):
    """JSON with one line a part, so that a difference shows what differs."""
    lines = []
    for case, parts in sorted(recorded.items()):
        inside = ["  %s: %s" % (json.dumps(part), json.dumps(value, sort_keys=True)) for part, value in sorted(parts.items())]
        lines.append("%s: {\n%s\n}" % (json.dumps(case), ",\n".join(inside)))
    return "{\n%s\n}\n" % ",\n".join(lines)


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    sys.modules["record"] = sys.modules["__main__"]  # the cases take their inputs from here
    main(sys.argv[1], sys.argv[2:] or sorted(name[:-3] for name in os.listdir(CASES) if name.endswith(".py")))
