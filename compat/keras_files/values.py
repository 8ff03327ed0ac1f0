"""Loads models with the values of a Keras file."""

from __future__ import annotations

import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.keras_files import libraries, loading, optimizers
from estimator_bridge.compat.keras_files.libraries import Model

_WEIGHTS = "model.weights.h5"  # in a .keras file


def read(path: Path, architecture: tuple[str, str] | None) -> Model:
    """Loads a model with its values, and with its optimizer if the file has the state of one.

    Args:
        path: Path of a .keras file, a whole model in HDF5, or weights.
        architecture: Model for a file of weights: "file", "config" or "function", and its name.

    Returns:
        The model.

    Raises:
        KerasError: Weights come without their model, or an optimizer's state without the optimizer.
    """
    loading.check(path)
    with_state = _has_state(path)
    if loading.has_architecture(path):
        return libraries.of_file(path).models.load_model(path, compile=with_state)
    if architecture is None:
        raise KerasError(
            "A file of weights does not identify its variables.",
            expected="the model of these weights",
            received=str(path),
            fix="Name it with --like: a .keras file, a config in JSON, or module:function.",
        )
    model = loading.load(*architecture)
    if not with_state:
        optimizers.remove(model)
    elif not getattr(model, "optimizer", None):
        raise KerasError(
            "The file has the state of an optimizer, and the model has no optimizer to interpret it.",
            expected="a model that is compiled with the optimizer that it was trained with",
            received=architecture[1],
        )
    else:
        optimizers.build(model)
    model.load_weights(str(path))
    return model


def _has_state(path: Path) -> bool:
    """Returns True if a file has an optimizer's variables."""
    import h5py

    with ExitStack() as stack:
        file: Any = path
        if path.suffix == ".keras":
            archive = stack.enter_context(zipfile.ZipFile(path))
            file = stack.enter_context(archive.open(_WEIGHTS))
        contents = stack.enter_context(h5py.File(file))
        return bool(contents.get("optimizer/vars") or contents.get("optimizer_weights"))
