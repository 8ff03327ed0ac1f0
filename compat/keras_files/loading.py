"""Loads models from files, configs, functions and SavedModels."""

from __future__ import annotations

import contextlib
import importlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.keras_files import libraries
from estimator_bridge.compat.keras_files.libraries import Model


def load(how: str, name: str) -> Model:
    """Loads a model.

    Args:
        how: "file", "config", "function" or "saved-model".
        name: Path, or ``module:function``.

    Returns:
        The model, with its optimizer if that is stored.

    Raises:
        KerasError: It has no variables yet.
    """
    model = _WAYS[how](name)
    libraries.of_model(model)
    with contextlib.suppress(ValueError):  # tf_keras raises it for a model that was never called
        if model.weights:
            return model
    raise KerasError(
        "The model has no variables yet.",
        expected="a model that is built",
        received=name,
        fix="Give it an input shape, or name a module:function that calls the model once before it returns it.",
    )


def check(path: Path) -> None:
    """Compares the checksums in a .keras file, which Keras itself does not do; HDF5 has none.

    Raises:
        KerasError: Bytes have changed.
    """
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            changed = archive.testzip()
        if changed is not None:
            raise KerasError("The file is damaged.", expected="the checksum of each of its parts", received=changed)


def has_architecture(path: Path) -> bool:
    """Returns True if a Keras file describes the model, and does not only hold weights."""
    if path.suffix == ".keras":
        return True
    import h5py

    with h5py.File(path) as file:
        return "model_config" in file.attrs


def _file(name: str) -> Model:
    check(Path(name))
    return libraries.of_file(Path(name)).models.load_model(name)


def _saved_model(name: str) -> Model:
    """Loads a SavedModel with tf_keras: Keras 3 cannot load it as a model."""
    import tf_keras

    return tf_keras.models.load_model(name)


def _config(name: str) -> Model:
    text = Path(name).read_text(encoding="utf-8")
    config = json.loads(text)
    if not isinstance(config, dict) or "config" not in config:
        raise KerasError("This is not the config of a model.", expected="the result of Model.to_json()", received=name)
    return libraries.of_config(config).models.model_from_json(text)


def _function(name: str) -> Model:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)()


_WAYS: Mapping[str, Callable[[str], Model]] = {
    "file": _file,
    "config": _config,
    "function": _function,
    "saved-model": _saved_model,
}
