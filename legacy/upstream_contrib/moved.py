"""Table of what ``tf.contrib`` imports of TensorFlow 1.15, with its place in today's TensorFlow, and of mends in single files."""

from __future__ import annotations

import re

_PY = "tensorflow.python"
OURS = "estimator_bridge.legacy.upstream_contrib.stand_ins"

MODULES = {  # module that contrib imports, and modules below it -> today's
    f"{_PY}.framework.device": f"{OURS}.device",
    f"{_PY}.keras": "tensorflow.contrib._keras",
    f"{_PY}.keras.engine.training_arrays": "tensorflow.contrib._keras.engine.training_arrays_v1",
    f"{_PY}.keras.engine.training_utils": "tensorflow.contrib._keras.engine.training_utils_v1",
    f"{_PY}.ops.rnn_cell": f"{OURS}.rnn_cell",
    f"{_PY}.ops.rnn_cell_impl": f"{OURS}.rnn_cell",
}

NAMES = {  # module:name that contrib alone reads -> module:name of today; legacy.restored.moved_names has those that scripts read, too
    f"{_PY}.eager.context:list_devices": f"{OURS}.functions:list_devices",
    f"{_PY}.framework.common_shapes:call_cpp_shape_fn": f"{OURS}.functions:gone",
    f"{_PY}.framework.ops:RegisterShape": f"{OURS}.functions:decorate_nothing",
    f"{_PY}.framework.ops:register_dense_tensor_like_type": f"{OURS}.functions:decorate_nothing",
    f"{_PY}.ops.summary_ops_v2:create_db_writer": f"{OURS}.functions:gone",
    f"{_PY}.pywrap_tensorflow:DeleteStatSummarizer": f"{OURS}.functions:gone",
    f"{_PY}.pywrap_tensorflow:NewStatSummarizer": f"{OURS}.functions:gone",
    f"{_PY}.pywrap_tensorflow:StatSummarizer": f"{OURS}.functions:gone",
    f"{_PY}.tpu.tpu:_TPU_REPLICATE_ATTR": f"{_PY}.tpu.tpu_replication:_TPU_REPLICATE_ATTR",
    f"{_PY}.tpu.tpu_strategy_util:initialize_tpu_system": f"{OURS}.functions:gone",
    "tensorflow.tools:graph_transforms": f"{OURS}.functions:gone",
}

ROOT_NAMES = {  # names of tf.contrib that are no packages of that name -> module below tensorflow.contrib
    "eager": "eager.python.tfe",
    "optimizer_v2": "optimizer_v2.optimizer_v2_symbols",
    "receptive_field": "receptive_field.receptive_field_api",
    "recurrent": "recurrent.python.recurrent_api",
    "remote_fused_graph": "remote_fused_graph.pylib",
    "specs": "specs.python",
    "summary": "summary.summary",
}

EVERYWHERE = (  # names that Python 3.10 and NumPy 2 dropped
    (re.compile(r"\bnp\.(int|float|bool|object|str)\b(?!_)"), r"\1"),
    (re.compile(r"\bnp\.(Inf|infty)\b"), "np.inf"),
    (re.compile(r"\.tostring\(\)"), ".tobytes()"),
    (
        re.compile(r"from collections import (Container|Mapping|Sequence|Iterable|Callable)\b"),
        r"from collections.abc import \1",
    ),
)

FILES = {  # file -> what is replaced in it; each replacement must apply
    "tensorflow/contrib/factorization/python/ops/gmm_ops.py": (  # NumPy compares an array with a text element by element now
        (re.compile(r"if initial_clusters != 'random' and not"), "if not isinstance(initial_clusters, str) and not"),
    ),
    "tensorflow/contrib/framework/__init__.py": (  # would remove names from TensorFlow's own nest module
        (re.compile(r"remove_undocumented\(nest\.__name__.*\)"), "pass"),
    ),
    "tensorflow/contrib/graph_editor/transform.py": (
        (
            re.compile(
                r"tf_ops\.Operation\(node_def_, info\.graph_, new_inputs, output_types_,\s*\[\], input_types_, None, op_def_\)"
            ),
            "tf_ops.Operation.from_node_def(node_def_, info.graph_, new_inputs, output_types_, [], input_types_, None, op_def_)",
        ),
    ),
    "tensorflow/contrib/learn/python/learn/estimators/estimator.py": (  # trains in a session of its own, which no engine sees
        (
            re.compile(r"^    # Create a run configuration\.$", re.MULTILINE),
            f"    from {OURS} import learn as _checks\n    _checks.check(self)",
        ),
    ),
    "tensorflow/contrib/learn/python/learn/estimators/run_config.py": (  # a setting that TensorFlow 2's hooks ask for
        (
            re.compile(r"^    self\._tf_random_seed = tf_random_seed", re.MULTILINE),
            "    self._checkpoint_save_graph_def = True\n    self._tf_random_seed = tf_random_seed",
        ),
    ),
    "tensorflow/contrib/tpu/python/profiler/__init__.py": (
        (re.compile(r"^from tensorflow\.(core|python).*(pb2|profiler).*$", re.MULTILINE), "pass"),
    ),
    "tensorflow/contrib/util/loader.py": (  # a compiled library of TensorFlow 1 ends the process
        (re.compile(r"^def load_op_library\(path\):", re.MULTILINE), "def load_op_library(path):\n  return None"),
    ),
}


def moved(name: str) -> str:
    """Returns today's path of a module or of a name in a module.

    Example:
        >>> moved("tensorflow.python.keras.layers.core")
        'tensorflow.contrib._keras.layers.core'
    """
    start = max((old for old in MODULES if f"{name}.".startswith(f"{old}.")), key=len, default=None)
    return MODULES[start] + name[len(start) :] if start else name
