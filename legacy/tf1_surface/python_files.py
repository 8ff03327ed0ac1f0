"""``tensorflow.python`` as TensorFlow 1 had it: names that mean something else in TensorFlow 2's files have TensorFlow 1's value.

TensorFlow 2's own code reads its files and must go on finding TensorFlow 2's classes there, so only a script and its modules get these.
"""

from __future__ import annotations

import functools
import importlib.util
import types
from collections.abc import Mapping
from typing import Any

from estimator_bridge.legacy.tf1_surface.python_keras import keras_file

ROOT = "tensorflow.python"
_READERS = ("FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset")
_MORE_READERS = ("CsvDataset", "SqlDataset", "make_batched_features_dataset", "make_csv_dataset")
_CELLS = {
    **{
        name: f"nn.rnn_cell.{name}"
        for name in (
            "BasicLSTMCell",
            "BasicRNNCell",
            "DeviceWrapper",
            "DropoutWrapper",
            "GRUCell",
            "LSTMCell",
            "LSTMStateTuple",
            "MultiRNNCell",
            "RNNCell",
            "ResidualWrapper",
        )
    },
    "LayerRNNCell": "nn.rnn_cell.BasicLSTMCell.__base__",  # has no public name
}


def _experimental(*names: str) -> dict[str, str]:
    return {name: f"data.experimental.{name}" for name in names}


NAMES: Mapping[str, Mapping[str, str]] = {
    "data": {name: f"data.{name}" for name in ("Dataset", *_READERS)},
    "data.experimental": _experimental(
        "Counter", "RandomDataset", "choose_from_datasets", "sample_from_datasets", *_MORE_READERS
    ),
    "data.experimental.ops.counter": _experimental("Counter"),
    "data.experimental.ops.interleave_ops": _experimental("choose_from_datasets", "sample_from_datasets"),
    "data.experimental.ops.random_ops": _experimental("RandomDataset"),
    "data.experimental.ops.readers": _experimental(*_MORE_READERS),
    "data.ops.dataset_ops": {"Dataset": "data.Dataset"},
    "data.ops.readers": {name: f"data.{name}" for name in _READERS},
    "framework.device": {"DeviceSpec": "DeviceSpec"},
    "framework.framework_lib": {"DeviceSpec": "DeviceSpec"},
    "layers.base": {"InputSpec": "layers.InputSpec"},
    "ops.rnn_cell": _CELLS,
    "ops.rnn_cell_impl": _CELLS,
    "ops.standard_ops": {"while_loop": "while_loop"},  # a module there
    "ops.variable_scope": {"disable_resource_variables": "disable_resource_variables"},  # does nothing on the modern path
}
"""File or folder below ``tensorflow.python`` -> name -> path in TensorFlow 1's namespace."""
_FOLDERS = frozenset(place[:end] for place in NAMES for end in (*(i for i, one in enumerate(place) if one == "."), len(place)))


class PythonFile(types.ModuleType):
    """A file or folder of ``tensorflow.python`` in which some names have TensorFlow 1's values.

    Args:
        tf1: TensorFlow 1's namespace.
        real: TensorFlow 2's module.
        place: Path below ``tensorflow.python``.
    """

    def __init__(self, tf1: Any, real: types.ModuleType, place: str) -> None:
        super().__init__(real.__name__, real.__doc__)
        own = {name: functools.reduce(getattr, path.split("."), tf1) for name, path in NAMES.get(place, {}).items()}
        own |= {"keras": keras_file(tf1.keras)} if not place else {}
        kept = {name: vars(real)[name] for name in ("__file__", "__path__", "__spec__", "__package__") if name in vars(real)}
        self.__dict__.update(kept | own, _tf1=tf1, _real=real)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # of ``import *``
            return getattr(self._real, name, None) or [one for one in dir(self) if not one.startswith("_")]
        try:
            found = getattr(self._real, name)
        except AttributeError:
            found = _left_out(self._real.__name__.removeprefix(ROOT), name)
            if found is None:
                raise
        return with_tf1_names(self._tf1, found)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets the name in TensorFlow's own file, too: a script that replaces a function means that one."""
        super().__setattr__(name, value)
        setattr(self._real, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._real), *self.__dict__})


def _left_out(place: str, name: str) -> Any:
    """Returns what TensorFlow 1's folder had because its files import it; None for all else.

    ``tensorflow.python`` had the modules of operations, such as ``math_ops``, and the one of graphs under the name of their folder, ``ops``.
    """
    if place == ".ops":
        return getattr(importlib.import_module(f"{ROOT}.framework.ops"), name, None)
    for folder in ("ops", "framework", "training") if not place and not name.startswith("_") else ():
        if importlib.util.find_spec(f"{ROOT}.{folder}.{name}") is not None:
            return importlib.import_module(f"{ROOT}.{folder}.{name}")
    return None


def with_tf1_names(tf1: Any, found: Any) -> Any:
    """Returns what a script gets for something that it found in ``tensorflow.python``.

    Args:
        tf1: TensorFlow 1's namespace.
        found: Any value.

    Returns:
        A ``PythonFile`` for a module that ``NAMES`` lists, or whose folder has such a module; else ``found``.
    """
    if not isinstance(found, types.ModuleType) or isinstance(found, PythonFile):
        return found
    place = found.__name__.removeprefix(ROOT).removeprefix(".")
    is_listed = found.__name__ == ROOT or (found.__name__.startswith(f"{ROOT}.") and place in _FOLDERS)
    return _file(tf1, found, place) if is_listed else found


@functools.cache
def _file(tf1: Any, real: types.ModuleType, place: str) -> PythonFile:
    return PythonFile(tf1, real, place)
