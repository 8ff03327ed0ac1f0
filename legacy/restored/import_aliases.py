"""Aliases of old modules: ``tensorflow.python.estimator``, the modules beside it, and modules that have moved.

What was removed: ``tensorflow.python.estimator`` (thin re-exports of tensorflow_estimator since TensorFlow 1.13, gone with
2.16 in March 2024), ``tensorflow.estimator`` as an importable package, and the re-exports of TPUEstimator's modules in
``tensorflow.python.tpu``. TensorFlow 2.15 has most of them; there only the missing ones are aliases. ``training.training_ops`` went with
2.16 too, ``distribution_strategy_context`` and ``training.tracking`` with 2.11 to 2.14.

Needed by: scripts with ``from tensorflow.python.estimator.canned import head`` or ``from tensorflow.python.tpu import
tpu_config``, as many samples have; their own optimizers, which call ``training_ops``.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_ESTIMATOR = "tensorflow_estimator.python.estimator"

# The longest name that fits decides.
_ALIASES = {
    "tensorflow.estimator": f"{_ESTIMATOR}.api._v2.estimator",
    "tensorflow.compat.v1.estimator": f"{_ESTIMATOR}.api._v1.estimator",
    "tensorflow.compat.v2.estimator": f"{_ESTIMATOR}.api._v2.estimator",
    "tensorflow.python.estimator": _ESTIMATOR,
    "tensorflow.python.estimator.keras": f"{_ESTIMATOR}.keras_lib",
    f"{_ESTIMATOR}.keras": f"{_ESTIMATOR}.keras_lib",  # "from tensorflow.python.estimator import keras" asks for this one
    "tensorflow.python.data.experimental.ops.distribute_options": "tensorflow.python.data.ops.options",
    "tensorflow.python.data.experimental.ops.optimization_options": "tensorflow.python.data.ops.options",
    "tensorflow.python.data.experimental.ops.threading_options": "tensorflow.python.data.ops.options",
    "tensorflow.python.distribute.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.feature_column.dense_features": "tensorflow.python.feature_column.feature_column_lib",
    "tensorflow.python.feature_column.dense_features_v2": "tensorflow.python.feature_column.feature_column_lib",
    "tensorflow.python.ops.losses.loss_reduction": "tensorflow.python.keras.utils.losses_utils",
    "tensorflow.python.training.distribute": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.training.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.training.gen_training_ops": "tensorflow.python.ops.gen_training_ops",
    **{
        f"tensorflow.python.{parent}.{old}": f"tensorflow.python.{new}"
        # "from tensorflow.python.training.tracking import util" asks for tensorflow.python.trackable.util
        for parent in ("training.tracking", "trackable")
        for old, new in {
            "graph_view": "checkpoint.graph_view",
            "object_identity": "util.object_identity",
            "tracking": "trackable.autotrackable",
            "util": "checkpoint.checkpoint",
        }.items()
    },
    "tensorflow.python.training.saving.functional_saver": "tensorflow.python.checkpoint.functional_saver",
    "tensorflow.python.training.tracking": "tensorflow.python.trackable",
    "tensorflow.python.training.training_ops": "tensorflow.python.ops.gen_training_ops",
    "tensorflow.python.tpu.error_handling": f"{_ESTIMATOR}.tpu.error_handling",
    "tensorflow.python.tpu.tpu_config": f"{_ESTIMATOR}.tpu.tpu_config",
    "tensorflow.python.tpu.tpu_context": f"{_ESTIMATOR}.tpu.tpu_context",
    "tensorflow.python.tpu.tpu_estimator": f"{_ESTIMATOR}.tpu.tpu_estimator",
    "tensorflow.python.tpu.util": f"{_ESTIMATOR}.tpu.util",
}


def restore() -> None:
    """Makes the old names importable.

    The finder comes first: below an alias the usual finders would find the real file and load it a second time.

    Example:
        >>> from estimator_bridge import legacy
        >>> legacy.install()
        >>> from tensorflow.python.estimator import run_config
        >>> run_config.RunConfig().save_summary_steps
        100
    """
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())


def real_name(name: str) -> str | None:
    """Returns the module that an old name stands for.

    Args:
        name: Full module name.

    Returns:
        The full name of the module, or None for a name that is no alias.

    Example:
        >>> real_name("tensorflow.python.estimator.canned.head")
        'tensorflow_estimator.python.estimator.canned.head'
        >>> real_name("tensorflow.python.ops") is None
        True
    """
    if not name.startswith(("tensorflow.", "tensorflow_estimator.")):
        return None
    prefix, rest = name, ""
    while prefix and prefix not in _ALIASES:
        prefix, _, last = prefix.rpartition(".")
        rest = f".{last}{rest}"
    return _ALIASES[prefix] + rest if prefix else None


class _AliasFinder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        real = real_name(fullname)
        if real is None or _has_its_own(fullname, path):
            return None
        try:
            found = importlib.util.find_spec(real)
        except ModuleNotFoundError:  # a parent of it does not exist
            return None
        return found and ModuleSpec(fullname, _AliasLoader(real), is_package=found.submodule_search_locations is not None)


class _AliasLoader(Loader):
    """Loads the real module itself, so that a class is the same class under both names."""

    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just given the module the alias's spec: pickling and reloading need its own.
        module.__spec__ = self._spec


def _has_its_own(name: str, path: Sequence[str] | None) -> bool:
    """Returns True if TensorFlow has a module of this name, as 2.15 does.

    A parent that is an alias does not count: the module found beside it is the real one, which would be loaded a second time.
    """
    parent = name.rpartition(".")[0]
    return sys.modules[parent].__name__ == parent and PathFinder.find_spec(name, path) is not None
