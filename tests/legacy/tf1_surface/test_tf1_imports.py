"""What a TF1 script's imports of TensorFlow give it, in one process for each path."""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.compat.source.removed_names.contrib import replacement
from tests.running import Ended, estimator_bridge_command, write

# Imports of a TF1 script, and an expression of what they bind, which must be true.
IMPORTS = [
    ("import tensorflow as tf", "tf.placeholder and tf.app.run and tf.logging.info and tf.gfile.Open and tf.layers.dense"),
    ("import tensorflow as tf", "tf.train.get_global_step and tf.estimator.Estimator is V1_ESTIMATOR"),
    ("import tensorflow as tf", "tf.__version__ == VERSION and tf.VERSION == VERSION and tf.__name__ == 'tensorflow'"),
    (
        "import tensorflow as tf",
        "tf.__file__.replace(os.sep, '/').endswith('/tensorflow/__init__.py') and 'tensorflow' in repr(tf)",
    ),
    ("import tensorflow as tf", "{'placeholder', 'estimator', 'compat', 'app', 'contrib'} <= set(dir(tf))"),
    (
        "import tensorflow as tf",
        "tf.test.TestCase and tf.test.is_built_with_cuda() is tf.test.is_gpu_available(cuda_only=True)",
    ),
    ("from tensorflow.test import is_built_with_cuda", "is_built_with_cuda is TF.test.is_built_with_cuda"),
    ("import tensorflow", "tensorflow is TF and tensorflow.placeholder"),
    ("import tensorflow, os", "tensorflow is TF"),
    ("import tensorflow.compat.v1 as tf", "tf is TF"),
    ("import tensorflow.compat.v1", "tensorflow is TF and tensorflow.compat.v1 is TF"),
    ("from tensorflow.compat import v1", "v1 is TF"),
    ("from tensorflow.compat import v1 as tf, v2", "tf is TF and v2.function and not hasattr(v2, 'placeholder')"),
    ("import tensorflow.compat.v2 as tf2", "tf2 is TF.compat.v2 and not hasattr(tf2, 'placeholder')"),
    ("import tensorflow.compat as compat", "compat.v1 is TF and compat.as_str and 'as_str' in dir(compat)"),
    ("import tensorflow as tf", "tf.compat.v1 is tf and tf.compat.v1.compat.v1 is tf and tf.compat.as_bytes('x') == b'x'"),
    ("from tensorflow import *", "placeholder and app and Session"),
    ("from tensorflow import estimator, layers", "estimator.Estimator is V1_ESTIMATOR and layers.dense"),
    ("from tensorflow.estimator import Estimator", "Estimator is V1_ESTIMATOR"),
    ("import tensorflow.estimator as estimator", "estimator.Estimator is V1_ESTIMATOR"),
    ("from tensorflow.estimator.inputs import numpy_input_fn", "numpy_input_fn"),
    ("from tensorflow.compat.v1.estimator import Estimator", "Estimator is V1_ESTIMATOR"),
    ("from tensorflow.compat.v2.estimator import Estimator", "Estimator is not V1_ESTIMATOR"),
    ("from tensorflow.train import AdamOptimizer, SessionRunHook", "AdamOptimizer and SessionRunHook"),
    ("from tensorflow.layers import dense", "dense is TF.layers.dense"),
    ("from tensorflow.losses import sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy"),
    ("from tensorflow.logging import set_verbosity, INFO", "set_verbosity and INFO"),
    ("from tensorflow_core.contrib.layers import fully_connected", "fully_connected is TF.contrib.layers.fully_connected"),
    ("from tensorflow_core.python.framework import ops", "ops is sys.modules['tensorflow.python.framework.ops']"),
    ("import tensorflow.gfile as gfile", "gfile is TF.gfile"),
    ("from tensorflow import keras", "keras.layers.BatchNormalization is V1_BATCH_NORMALIZATION"),
    ("import tensorflow.keras as keras", "keras.layers.BatchNormalization is V1_BATCH_NORMALIZATION"),
    ("from tensorflow.keras.layers import BatchNormalization", "BatchNormalization is V1_BATCH_NORMALIZATION"),
    ("import tensorflow.keras.backend as K", "K.get_session"),
    ("from tensorflow.keras import backend as K", "K.get_session"),
    ("from tensorflow.python.framework import ops", "ops is sys.modules['tensorflow.python.framework.ops']"),
    ("import tensorflow.python.framework.ops", "tensorflow.python.framework.ops.Graph and tensorflow is TF"),
    ("import tensorflow.python.framework.ops as ops", "ops.Graph"),
    ("from tensorflow import python", "python.framework.ops is sys.modules['tensorflow.python.framework.ops']"),
    (
        "from tensorflow.python import pywrap_tensorflow",
        "pywrap_tensorflow.NewCheckpointReader is TF.train.NewCheckpointReader",
    ),
    ("from tensorflow.keras.layers import Dense", "Dense(2).apply(TF.ones([1, 3])).shape == (1, 2)"),
    ("import keras", "keras.layers.Dense is TF.keras.layers.Dense and keras.__version__ < '3'"),
    ("import keras.backend as K", "K.get_value is TF.keras.backend.get_value"),
    ("from keras.layers import Dense", "Dense is TF.keras.layers.Dense"),
    ("import importlib; keras = importlib.import_module('keras.layers')", "keras.Dense is TF.keras.layers.Dense"),
    ("import orbit", "orbit.keras is sys.modules['keras']"),
    ("from tensorflow.python import keras, ops", "keras.layers.Dense is TF.keras.layers.Dense and ops.Graph is TF.Graph"),
    ("from tensorflow.python import ops, math_ops", "math_ops.matmul is TF.matmul and ops.convert_to_tensor and ops.array_ops"),
    ("from tensorflow.python import session_run_hook", "session_run_hook.SessionRunHook is TF.train.SessionRunHook"),
    ("from tensorflow import python", "not hasattr(python, 'no_such_module') and not hasattr(python.ops, 'no_such_name')"),
    ("from tensorflow.python.keras import backend as K, layers", "K.get_session and layers.LSTM is TF.keras.layers.LSTM"),
    ("from tensorflow.python.keras.layers import BatchNormalization", "BatchNormalization is V1_BATCH_NORMALIZATION"),
    ("from tensorflow.python.keras.layers import *", "Dense is TF.keras.layers.Dense"),
    ("from tensorflow.python.keras.layers.recurrent import LSTM", "LSTM is TF.keras.layers.LSTM"),
    (
        "from tensorflow.python.keras.layers.normalization import BatchNormalization",
        "BatchNormalization is V1_BATCH_NORMALIZATION",
    ),
    ("from tensorflow.python.keras.engine.base_layer import Layer", "Layer is TF.keras.layers.Layer"),
    ("from tensorflow.python.keras.engine import training", "training.Model is TF.keras.Model"),
    ("import tensorflow.python.keras.models as models", "models.Sequential is TF.keras.Sequential"),
    ("from tensorflow.python.keras.optimizer_v2 import optimizer_v2", "issubclass(LegacyAdam, optimizer_v2.OptimizerV2)"),
    ("from tensorflow.python.keras.utils.np_utils import to_categorical", "to_categorical is TF.keras.utils.to_categorical"),
    ("import importlib; models = importlib.import_module('tensorflow.python.keras.models')", "models.Model is TF.keras.Model"),
    ("from tensorflow.python.training import training_ops", "training_ops.resource_apply_adam"),
    (
        "from tensorflow.python.feature_column import feature_column_lib as fc",
        "fc.DenseFeatures is TF.keras.layers.DenseFeatures",
    ),
    (
        "from tensorflow.python.feature_column.feature_column_lib import SequenceFeatures",
        "SequenceFeatures is TF.keras.experimental.SequenceFeatures",
    ),
    (
        "from tensorflow.python.distribute import distribution_strategy_context",
        "distribution_strategy_context.get_strategy is TF.distribute.get_strategy",
    ),
    ("from tensorflow.python.training.tracking import base", "isinstance(TF.train.Checkpoint(), base.Trackable)"),
    ("from tensorflow.python.ops import variable_scope", "variable_scope.resource_variables_enabled() in (True, False)"),
    ("from tensorflow.python.training import session_run_hook", "session_run_hook.SessionRunHook"),
    ("from tensorflow.python.estimator import run_config", "run_config.RunConfig"),
    ("from tensorflow.python.estimator.canned import head", "head"),
    ("from tensorflow.core.framework import graph_pb2", "graph_pb2.GraphDef"),
    ("import importlib; tf = importlib.import_module('tensorflow')", "tf is TF"),
    ("from importlib import import_module; tf = import_module('tensorflow.compat.v1')", "tf is TF"),
    ("import importlib; train = importlib.import_module('tensorflow.train')", "train.AdamOptimizer"),
    ("import importlib; ops = importlib.import_module('.ops', 'tensorflow.python.framework')", "ops.Graph"),
    ("tf = __import__('tensorflow')", "tf is TF"),
    ("import importlib; helper = importlib.reload(helper)", "helper.tf is TF"),
    (
        "import tensorflow as tf",
        "sys.modules['tensorflow'] is not tf and not hasattr(sys.modules['tensorflow'], 'placeholder')",
    ),
    ("import helper", "helper.tf is TF and helper.inside() is TF"),
    ("from package.sub import module", "module.tf is TF and module.relative is helper"),
    ("import orbit", "not hasattr(orbit.tf, 'placeholder') and orbit.tf.function and orbit.by_importlib() is orbit.tf"),
    ("import someones_tf1_package", "someones_tf1_package.tf is TF"),
    ("import official", "official.tf is TF"),
    ("import pickle; op = pickle.loads(pickle.dumps(TF.float32))", "op is TF.float32"),
    ("import tensorflow as tf; tf.my_own = 1", "helper.tf.my_own == 1"),
    ("import tensorflow as tf", "tf.contrib.util.make_ndarray is TF.make_ndarray and hasattr(tf, 'contrib')"),
    ("from tensorflow import contrib", "contrib is TF.contrib and 'util' in dir(contrib)"),
    ("from tensorflow.compat.v1 import contrib", "contrib is TF.contrib"),
    ("import tensorflow.contrib", "tensorflow is TF"),
    ("import tensorflow.contrib.util as util", "util is TF.contrib.util"),
    ("import tensorflow.compat.v1.contrib.util", "tensorflow is TF"),
    ("from tensorflow.contrib import util", "util is TF.contrib.util and set(dir(util)) == set(util.__all__)"),
    ("from tensorflow.contrib.util import make_ndarray, constant_value", "make_ndarray is TF.make_ndarray"),
    ("from tensorflow.contrib.util import *", "make_ndarray is TF.make_ndarray"),
    ("from tensorflow.contrib.util import loader", "loader.make_ndarray is TF.make_ndarray"),
    ("from tensorflow.contrib.util.loader import make_ndarray", "make_ndarray is TF.make_ndarray"),
    ("import importlib; util = importlib.import_module('tensorflow.contrib.util')", "util is TF.contrib.util"),
]

# What looks for a name before it uses it.
PROBES = {
    "hasattr(TF.contrib, 'eager')": "False",
    "getattr(TF.contrib.util, 'load_op_library', None)": "None",
    "attempt('import tensorflow.contrib.eager as tfe')": "None",
    "attempt('from tensorflow.contrib import util, eager')": "None",
    "attempt('from tensorflow.contrib import util, nowhere')": "'ImportError'",
    "attempt('from tensorflow.contrib.eager import Network')": "'ImportError'",
    "attempt('from tensorflow.contrib.util import load_op_library')": "'ImportError'",
    "attempt('from tensorflow.contrib.util.nowhere import make_ndarray')": "'ImportError'",
    "attempt('import importlib; importlib.import_module(\"tensorflow.contrib.nowhere\")')": "'ImportError'",
    "attempt('import tensorflow; tensorflow.contrib.nowhere')": "'AttributeError'",
    "helper.EAGER": "None",
    "helper.TRT.__name__": "'tensorflow.contrib.tensorrt'",
    "attempt('import tensorflow; tensorflow.contrib.util.__nowhere__')": "'AttributeError'",
    "attempt('import tensorflow; tensorflow.nowhere')": "'AttributeError'",
    "attempt('import tensorflow.nowhere')": "'ImportError'",
    "attempt('import tensorflow.python.keras.nowhere')": "'ImportError'",
    "attempt('from tensorflow.python.keras.layers import nowhere')": "'ImportError'",
    "attempt('from tensorflow import nowhere')": "'ImportError'",
}

SCRIPT = """
import json, os, sys
import helper
import tensorflow as TF
from tensorflow.python.keras import backend as _  # an old Keras beside the one in use
from tensorflow_estimator.python.estimator.estimator import Estimator as V1_ESTIMATOR

VERSION = sys.modules["tensorflow"].__version__
LegacyAdam = TF.compat.v2.keras.optimizers.legacy.Adam
V1_BATCH_NORMALIZATION = TF.keras.layers.BatchNormalization
assert V1_BATCH_NORMALIZATION is not TF.compat.v2.keras.layers.BatchNormalization
answers = {}

def attempt(source):
    try:
        exec(source, {"__name__": "__main__"})
    except ImportError:
        return "ImportError"
    except AttributeError:
        return "AttributeError"

def in_function(source, expression):
    namespace = {**globals()}
    exec(source.strip(), namespace)
    return bool(eval(expression, namespace))

for source, expression in %(imports)r:
    try:
        answers[source + " # " + expression] = in_function(source, expression)
    except Exception as error:
        answers[source + " # " + expression] = f"{type(error).__name__}: {error}"
for expression in %(probes)r:
    answers[expression] = repr(eval(expression))
print(json.dumps(answers))
"""

# Packages of contrib that are not offered: one that the file can do without, and one for a branch that is not taken.
UNOFFERED = """
try:
    from tensorflow.contrib import eager as EAGER
except ImportError:
    EAGER = None
import tensorflow.contrib.tensorrt as TRT
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    names = "import tensorflow as tf\n"
    write(
        folder / "helper.py", f"{names}\ndef inside():\n    import tensorflow.compat.v1 as late\n    return late\n{UNOFFERED}"
    )
    write(folder / "package" / "__init__.py", "")
    write(folder / "package" / "sub" / "__init__.py", "")
    write(
        folder / "package" / "sub" / "module.py", f"{names}import helper\nfrom .. import sub\nfrom .relative import relative\n"
    )
    write(folder / "package" / "sub" / "relative.py", "import helper as relative\n")
    write(folder / "official" / "__init__.py", names)  # as in a checkout of TensorFlow's models
    installed = folder / "lib" / "site-packages"
    by_importlib = "import importlib\ndef by_importlib():\n    return importlib.import_module('tensorflow')\n"
    write(installed / "orbit" / "__init__.py", f"{names}import keras\n{by_importlib}")
    write(installed / "someones_tf1_package.py", names)
    write(folder / "train.py", SCRIPT % {"imports": IMPORTS, "probes": list(PROBES)})
    return folder


def run(project: Path, *arguments: str) -> Ended:
    import estimator_bridge

    source = str(Path(estimator_bridge.__file__).parents[1])
    path = os.pathsep.join([source, str(project / "lib" / "site-packages")])
    return estimator_bridge_command("run", *arguments, cwd=project, PYTHONPATH=path)


@pytest.fixture(scope="module")
def answers(project: Path) -> dict[str, Any]:
    return dict(run(project, "train.py").last_line)


@pytest.mark.parametrize(("source", "expression"), IMPORTS)
def test_imports(source: str, expression: str, answers: dict[str, Any]) -> None:
    assert answers[f"{source} # {expression}"] is True


@pytest.mark.parametrize("expression", PROBES)
def test_probing(expression: str, answers: dict[str, Any]) -> None:
    assert answers[expression] == PROBES[expression]


@pytest.mark.usefixtures("warm_python")
def test_the_modern_path_gives_the_same_names(project: Path, answers: dict[str, Any]) -> None:
    ended = run(project, "--path", "modern", "train.py")

    assert ended.last_line == answers
    assert ended.code == 2
    assert "\nestimator-bridge: The script called no Estimator" in f"\n{ended.err}"


CONTRIB = {
    "tf.contrib.eager.Network('x')": "tf.contrib.eager.Network",
    "(tf.contrib\n     .util\n     .load_op_library)": "tf.contrib.util.load_op_library",
    "tf.contrib.nowhere": "tf.contrib.nowhere",
    "tf.compat.v1.contrib.eager.metrics": "tf.contrib.eager.metrics",
    "getattr(tf.contrib, 'eager').metrics": "tf.contrib.eager",
    "__import__('tensorflow').contrib.nowhere": "tf.contrib.nowhere",
    "exec('import tensorflow.contrib.nowhere')": "tf.contrib.nowhere",
    "exec('import tensorflow.contrib.nowhere as tfe')": "tf.contrib.nowhere",
    "exec('from tensorflow.contrib import nowhere')": "tf.contrib.nowhere",
    "exec('from tensorflow.contrib.util import make_ndarray, load_op_library')": "tf.contrib.util.load_op_library",
    "exec('from tensorflow.contrib.eager.python import tfe, nowhere')": "tf.contrib.eager.python.nowhere",
    "exec('from tensorflow.contrib.util.loader import load_op_library')": "tf.contrib.util.loader.load_op_library",
    "exec('import tensorflow.compat.v1.contrib.nowhere')": "tf.contrib.nowhere",
    "__import__('importlib').import_module('tensorflow.contrib.nowhere')": "tf.contrib.nowhere",
}


def test_contrib_is_refused_by_symbol_file_and_line() -> None:
    """In this process: the namespace needs no more than a TensorFlow."""
    from estimator_bridge.legacy.contrib.refusal import ContribError
    from estimator_bridge.legacy.tf1_surface.tf1_imports import tf1_imports

    with tf1_imports({}) as tf:
        for expression, symbol in CONTRIB.items():
            code = compile(f"\n\n(\n{expression})", "old/model.py", "eval")
            with pytest.raises(ContribError) as raised:
                eval(code, {"__name__": "__main__", "tf": tf})
            message = str(raised.value)
            assert f"received: {symbol} at " in message, expression
            assert symbol in raised.value.what
            line = 4 + expression.count("\n")
            assert ("<string>:1" if "exec" in expression else f"old/model.py:{line}") in message, expression


@pytest.mark.usefixtures("warm_python")
def test_contrib_ends_a_run_with_one_message(project: Path) -> None:
    write(
        project / "old.py",
        "import helper\nimport tensorflow as tf\n\ndef f():\n    return tf.contrib.timeseries.ARRegressor\n\nf()\n",
    )

    ended = run(project, "old.py")

    fetch = "Or fetch the real tf.contrib (222 MB, once; Apache-2.0): estimator-bridge contrib fetch"
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "estimator-bridge: TensorFlow 2 removed tf.contrib.timeseries.ARRegressor with all of tf.contrib, and it is not restored.",
        "  expected: a name of tf.contrib that is restored; estimator-bridge check SCRIPT lists those that are not",
        f"  received: tf.contrib.timeseries.ARRegressor at {project / 'old.py'}:5",
        f"  to do:    {replacement('tf.contrib.timeseries.ARRegressor')} {fetch}",
        "  help:     estimator-bridge explain legacy-contrib-refusal-init",
    ]


def test_nothing_stays_behind() -> None:
    import tensorflow as tf

    from estimator_bridge.legacy.tf1_surface.tf1_imports import tf1_imports

    before = builtins.__import__, importlib.import_module, dict(vars(sys.modules["tensorflow"])).keys()

    with tf1_imports({"answer": 42}) as outer, tf1_imports({}) as inner:
        assert eval("__import__('tensorflow')", {"__name__": "__main__"}) is inner
        assert outer.answer == 42
        assert not hasattr(inner, "answer")

    assert (builtins.__import__, importlib.import_module, dict(vars(sys.modules["tensorflow"])).keys()) == before
    assert eval("__import__('tensorflow')", {"__name__": "__main__"}) is tf is sys.modules["tensorflow"]
