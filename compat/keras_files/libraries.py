"""Which Keras a model is of: tf_keras, the keras of TensorFlow 2.15 (both Keras 2), or Keras 3."""

from __future__ import annotations

import importlib
import json
import zipfile
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError

Library = Any  # the module tf_keras or keras
Model = Any


def is_keras3(library: Library) -> bool:
    """Whether a module is Keras 3."""
    return not str(library.__version__).startswith("2.")


def named(library: Library) -> str:
    """The library and its version, as "tf_keras 2.21.0"."""
    return f"{library.__name__} {library.__version__}"


def of_version(version: str) -> Library:
    """The library that reads what some version of Keras wrote.

    Args:
        version: of the writer: tf_keras and TensorFlow's own up to 2.15 write 2.x.

    Raises:
        KerasError: when Keras 3 is needed and is not installed.
    """
    library = importlib.import_module("tf_keras" if version.startswith(("1.", "2.")) else "keras")
    if version.startswith("3.") and not is_keras3(library):
        raise KerasError(
            "This is a model of Keras 3, which is not installed.",
            expected=f"a model of Keras 2: {named(library)} is what this TensorFlow comes with",
            received=f"Keras {version}",
            fix="Use an environment with TensorFlow 2.16 or later.",
        )
    return library


def of_file(path: Path) -> Library:
    """The library that reads a .keras file or a whole model in HDF5."""
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            return of_version(str(json.loads(archive.read("metadata.json"))["keras_version"]))
    import h5py

    with h5py.File(path) as file:
        version = file.attrs.get("keras_version", "2.")
    return of_version(version.decode() if isinstance(version, bytes) else str(version))


def of_config(config: Any) -> Library:
    """The library that reads what ``Model.to_json`` wrote: Keras 3 leaves its version out and names modules instead."""
    return of_version(str(config.get("keras_version", "3." if "module" in config else "2.")))


def of_model(model: Model) -> Library:
    """The library that a model is of.

    Raises:
        KerasError: when it is no Keras model.
    """
    for cls in type(model).__mro__:
        root = cls.__module__.partition(".")[0]
        if cls.__name__ == "Model" and root in {"keras", "tf_keras"}:
            return importlib.import_module(root)
    raise KerasError("This is no Keras model.", expected="a tf_keras.Model or a keras.Model", received=type(model).__name__)
