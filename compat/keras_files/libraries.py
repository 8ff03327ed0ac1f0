"""The Keras library of a model: tf_keras, the keras of TensorFlow 2.15 (both are Keras 2), or Keras 3."""

import importlib
import json
import zipfile
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError

Library = Any  # the module tf_keras or keras
Model = Any


def is_keras3(library: Library) -> bool:
    """Returns True if a module is Keras 3."""
    return not str(library.__version__).startswith("2.")


def named(library: Library) -> str:
    """Returns the library and its version, e.g. "tf_keras 2.21.0"."""
    return f"{library.__name__} {library.__version__}"


def of_version(version: str) -> Library:
    """Returns the library that reads files of some version of Keras.

    Args:
        version: Version of the writer: tf_keras, and TensorFlow's own Keras up to 2.15, write 2.x.

    Raises:
        KerasError: Keras 3 is needed and is not installed.
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
    """Returns the library that reads a .keras file or a whole model in HDF5."""
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            return of_version(str(json.loads(archive.read("metadata.json"))["keras_version"]))
    import h5py

    with h5py.File(path) as file:
        version = file.attrs.get("keras_version", "2.")
    return of_version(version.decode() if isinstance(version, bytes) else str(version))


def of_config(config: Any) -> Library:
    """Returns the library that reads a result of ``Model.to_json``, in which Keras 3 has modules instead of its version."""
    return of_version(str(config.get("keras_version", "3." if "module" in config else "2.")))


def of_model(model: Model) -> Library:
    """Returns the library of a model.

    Raises:
        KerasError: It is no Keras model.
    """
    for cls in type(model).__mro__:
        root = cls.__module__.partition(".")[0]
        if cls.__name__ == "Model" and root in {"keras", "tf_keras"}:
            return importlib.import_module(root)
    raise KerasError("This is not a Keras model.", expected="a tf_keras.Model or a keras.Model", received=type(model).__name__)
