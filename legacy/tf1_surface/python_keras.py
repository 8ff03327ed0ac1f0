"""``tensorflow.python.keras`` as TensorFlow 1 had it: the files of the ``tf.keras`` in use.

TensorFlow 2 has a frozen copy of Keras under that name, which nothing else uses. A layer of the copy in a model of ``tf.keras``, or variables
of both in one session, fail long after the import with unrelated errors.
"""

from __future__ import annotations

import importlib
import importlib.util
import types
from typing import Any

# Files of TensorFlow 1.15's layers that Keras has since split; tf.keras.layers has their names.
LAYERS = {
    "advanced_activations",
    "convolutional",
    "convolutional_recurrent",
    "core",
    "cudnn_recurrent",
    "dense_attention",
    "embeddings",
    "kernelized",
    "local",
    "merge",
    "noise",
    "normalization",
    "normalization_v2",
    "pooling",
    "recurrent",
    "recurrent_v2",
    "wrappers",
}

# Files and folders that Keras has moved; the longest matching name decides.
MOVED = {
    "layers.rnn_cell_wrapper_v2": "layers.rnn.cell_wrappers",
    "optimizer_v2": "optimizers.legacy",
    "optimizer_v2.learning_rate_schedule": "optimizers.schedules.learning_rate_schedule",
    "saving.hdf5_format": "saving.legacy.hdf5_format",
    "saving.save": "saving.legacy.save",
    "saving.saved_model": "saving.legacy.saved_model",
}


class KerasFile(types.ModuleType):
    """A file or folder of Keras, with the names that ``tf.keras`` offers of it before its own.

    Args:
        keras: Module ``tf.keras``.
        path: Path of the file below ``keras``.
        homes: Modules that have its names, in the order of look-up.
    """

    def __init__(self, keras: Any, path: tuple[str, ...], homes: list[types.ModuleType]) -> None:
        super().__init__(".".join(["tensorflow.python.keras", *path]))
        self.__dict__.update(_keras=keras, _path=path, _homes=homes, __path__=[])

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [one for one in dir(self._homes[0]) if not one.startswith("_")]
        found = next((getattr(home, name) for home in self._homes if not name.startswith("__") and hasattr(home, name)), None)
        if found is None or isinstance(found, types.ModuleType):
            found = keras_file(self._keras, *self._path, name) or found
        if found is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return found

    def __dir__(self) -> list[str]:
        return sorted({name for home in self._homes for name in dir(home)})


def keras_file(keras: Any, *path: str) -> types.ModuleType | None:
    """Returns the module that ``tensorflow.python.keras.PATH`` was; None if Keras has no such file.

    Args:
        keras: Module ``tf.keras``.
        path: Path below ``tensorflow.python.keras``.

    Example:
        >>> from estimator_bridge import legacy
        >>> legacy.install()
        >>> import tensorflow.compat.v1 as tf
        >>> keras_file(tf.keras, "layers", "core").Dense is tf.keras.layers.Dense
        True
        >>> keras_file(tf.keras, "nowhere") is None
        True
    """
    public = _public(keras, path)
    source = _source(keras.__name__.partition(".")[0], path)
    is_old_file = path[:1] == ("layers",) and ".".join(path[1:]) in LAYERS
    if source is None and not is_old_file and len(public) < len(path):
        return None
    homes = [*public[-1:], source] if path else [keras, source]
    return KerasFile(keras, path, [home for home in homes if home])


def _public(keras: Any, path: tuple[str, ...]) -> list[types.ModuleType]:
    """Returns the modules of ``tf.keras`` on the way to a file, as far as they exist."""
    found: list[types.ModuleType] = []
    for part in path:
        deeper = getattr(found[-1] if found else keras, part, None)
        if not isinstance(deeper, types.ModuleType):
            break
        found.append(deeper)
    return found


def _source(package: str, path: tuple[str, ...]) -> types.ModuleType | None:
    prefixes = (path[:length] for length in range(len(path), 0, -1))
    moved = next((prefix for prefix in prefixes if ".".join(prefix) in MOVED), ())
    start = MOVED[".".join(moved)].split(".") if moved else []
    name = ".".join([package, "src", *start, *path[len(moved) :]])
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # its parent is no package
        return None
    return importlib.import_module(name) if found else None
