"""Loads models from files, configs, functions and SavedModels, and the values of files of weights."""

import contextlib
import importlib
import json
import traceback
import zipfile
from pathlib import Path
from typing import Any

import h5py

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.trackable import Node
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE, OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.compat.keras_files import libraries, optimizers
from estimator_bridge.compat.keras_files.libraries import Model
from estimator_bridge.runtime.user_code import is_users

_WEIGHTS = "model.weights.h5"  # in a .keras file


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
    model = _load(how, name)
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
    check(path)
    with_state = _has_state(path)
    if has_architecture(path):
        return libraries.of_file(path).models.load_model(path, compile=with_state)
    if architecture is None:
        raise KerasError(
            "A file of weights does not identify its variables.",
            expected="the model of these weights",
            received=str(path),
            fix="Name it with --like: a .keras file, a config in JSON, or module:function.",
        )
    model = load(*architecture)
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


def has_architecture(path: Path) -> bool:
    """Returns True if a Keras file describes the model, and does not only hold weights."""
    return path.suffix == ".keras" or "model_config" in _attributes(path)


def is_named(path: Path) -> bool:
    """Returns True for weights in the older HDF5 format, which names each variable, so that no model is needed."""
    return not has_architecture(path) and "layer_names" in _attributes(path)


def write_named(path: Path, prefix: str) -> None:
    """Writes an object-based checkpoint of a file that ``is_named`` accepts.

    Args:
        path: Path of the file, in which a dataset's path is the layer's and the variable's name, e.g. ``h/net/h/kernel:0``.
        prefix: Prefix of the checkpoint.
    """
    found: dict[str, Any] = {}

    def take(place: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[place.partition("/")[2].rpartition(":")[0]] = item[()]

    with h5py.File(path) as file:
        file.visititems(take)
    nodes, values = [Node()], {}
    for number, (name, value) in enumerate(found.items()):
        nodes[0].children[str(number)] = len(nodes)
        nodes.append(trackable.variable(name, f"{number}{ATTRIBUTE}"))
        values[f"{number}{ATTRIBUTE}"] = value
    write_tensors(prefix, {**values, OBJECT_GRAPH: tensors.of_strings([trackable.encode(nodes)], ())})


def _attributes(path: Path) -> set[str]:
    with h5py.File(path) as file:
        return set(file.attrs)


def _has_state(path: Path) -> bool:
    """Returns True if a file has an optimizer's variables."""
    with contextlib.ExitStack() as stack:
        file: Any = path
        if path.suffix == ".keras":
            archive = stack.enter_context(zipfile.ZipFile(path))
            file = stack.enter_context(archive.open(_WEIGHTS))
        contents = stack.enter_context(h5py.File(file))
        return bool(contents.get("optimizer/vars") or contents.get("optimizer_weights"))


def _call(name: str) -> Model:
    """Calls the user's own function that makes a model.

    Raises:
        KerasError: It fails, or does not exist; the error names its file and line.
    """
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)()
    except Exception as error:  # noqa: BLE001 -- user code raises anything
        frames = traceback.extract_tb(error.__traceback__)
        places = [f" at {frame.filename}:{frame.lineno}" for frame in frames if is_users(frame.filename)]
        where = places[-1] if places else ""
        fix = (
            "Correct your code there."
            if where
            else "Check both names; the module is searched in this folder and in PYTHONPATH."
        )
        raise KerasError(
            f"The model function {name} cannot be called.",
            expected="module:function, a function without arguments that returns a model",
            received=f"{type(error).__name__}: {error}"[:2000] + where,
            fix=fix,
        ) from None


def _load(how: str, name: str) -> Model:
    if how == "function":
        return _call(name)
    if how == "saved-model":
        import tf_keras  # Keras 3 cannot load a SavedModel as a model

        return tf_keras.models.load_model(name)
    if how == "file":
        check(Path(name))
        return libraries.of_file(Path(name)).models.load_model(name)
    text = Path(name).read_text(encoding="utf-8")
    config = json.loads(text)
    if not isinstance(config, dict) or "config" not in config:
        raise KerasError("This is not the config of a model.", expected="the result of Model.to_json()", received=name)
    return libraries.of_config(config).models.model_from_json(text)
