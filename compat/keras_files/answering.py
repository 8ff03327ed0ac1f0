"""Answers to the questions of ``compat.checkpoint.models.keras_process``.

========  ===========================================================================================================
question  action, and the fields of the answer
========  ===========================================================================================================
read      a file's values become a checkpoint: prefix, handle, stateless (formats without optimizer state), notes
load      a model's object graph becomes one; its values are not used: prefix, handle, stateless, notes, optimizer (class and numbers)
save      a checkpoint is restored into a loaded model, and the model is saved: no fields
========  ===========================================================================================================
"""

import contextlib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.keras_files import libraries, loading, optimizers
from estimator_bridge.compat.keras_files.libraries import Library, Model

WITHOUT_LEGACY_STATE = ("keras", "keras-weights")
Answer = dict[str, Any]


class Answerer:
    """Answers questions and keeps loaded models."""

    def __init__(self) -> None:
        self._models: list[Model] = []
        self._known: Mapping[str, Callable[..., Answer]] = {"read": self._read, "load": self._load, "save": self._save}

    def answer(self, question: Mapping[str, Any]) -> Answer:
        """Answers a question; a failure has the parts of its message in the field "error", and the message's address beside it."""
        arguments = dict(question)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._known[arguments.pop("do")](**arguments)
        except KerasError as error:
            problem = error
        except Exception as error:  # noqa: BLE001 -- the user gets any error of Keras or user code in its own words
            problem = KerasError(
                "Loading or saving a model with Keras failed.",
                received=f"{type(error).__name__}: {error}"[:2000],
                fix="Correct the cause of this error, or name another file.",
            )
        parts = {name: text for name, text in problem.as_dict().items() if name != "line"}
        return {"error": parts, "address": problem.address}

    def _read(self, path: str, architecture: tuple[str, str] | None, folder: str) -> Answer:
        if architecture is None and loading.is_named(Path(path)):
            prefix = f"{folder}/weights"
            loading.write_named(Path(path), prefix)
            return {"handle": None, "prefix": prefix, "stateless": {}, "notes": []}
        return self._kept(loading.read(Path(path), architecture), folder, [])

    def _load(self, model: tuple[str, str], to: str, folder: str, **wanted: Any) -> Answer:
        loaded = loading.load(*model)
        own, settings = getattr(loaded, "optimizer", None), dict[str, Any]()
        with contextlib.suppress(Exception):  # a class of the user's may have no configuration; then advice is given
            settings = own.get_config() if own else {}
        numbers = {name: float(value) for name, value in settings.items() if isinstance(value, (int, float))}
        default = "new" if to in WITHOUT_LEGACY_STATE else "legacy"
        kept = self._kept(loaded, folder, optimizers.equip(loaded, default, **wanted))
        return kept | {"optimizer": {"class": type(own).__name__, "numbers": numbers} if own else None}

    def _save(self, handle: int, checkpoint: str, path: str, to: str, partial: bool) -> Answer:
        save(self._models[handle], checkpoint, Path(path), to, partial)
        return {}

    def _kept(self, model: Model, folder: str, notes: list[str]) -> Answer:
        handle = len(self._models)
        self._models.append(model)
        prefix = checkpoint(model).save(f"{folder}/model-{handle}")
        optimizer = getattr(model, "optimizer", None)
        stateless = without_state(libraries.of_model(model), optimizer) if optimizer else {}
        return {"handle": handle, "prefix": prefix, "stateless": stateless, "notes": notes}


def checkpoint(model: Model) -> Any:
    """Returns a tf.train.Checkpoint of a model and its optimizer."""
    import tensorflow as tf

    optimizer = getattr(model, "optimizer", None)
    return tf.train.Checkpoint(model=model, optimizer=optimizer) if optimizer else tf.train.Checkpoint(model=model)


def without_state(library: Library, optimizer: Any) -> dict[str, str]:
    """Returns the formats that leave this optimizer's state out, and the reasons.

    Args:
        library: Library of the optimizer.
        optimizer: Optimizer of a model.
    """
    family = optimizers.family_of(library, optimizer)
    if family == "legacy":
        reason = "Keras' own file formats do not contain the state of tf_keras.optimizers.legacy"
        return dict.fromkeys(WITHOUT_LEGACY_STATE, reason)
    return {"saved-model": "Keras 3 exports a SavedModel for serving, without an optimizer"} if family == "keras3" else {}


def save(model: Model, prefix: str, path: Path, to: str, partial: bool) -> None:
    """Restores a checkpoint into a model and saves it.

    Args:
        model: Model whose object graph the checkpoint has.
        prefix: Prefix of the checkpoint.
        path: Path of the file or folder.
        to: "keras-weights", "keras" or "saved-model".
        partial: True if some of the model's variables keep their values.

    Raises:
        KerasError: The checkpoint and the model differ.
    """
    status = checkpoint(model).restore(prefix)
    try:
        status.expect_partial() if partial else status.assert_consumed()
    except AssertionError as error:
        raise KerasError(
            "Keras did not restore all variables of the model.",
            received=str(error)[:1000],
            fix="Make the model as it was when it was saved, or leave out --like.",
        ) from None
    if to == "keras-weights":
        model.save_weights(str(path))
    elif to == "keras":
        model.save(str(path))
    elif libraries.is_keras3(libraries.of_model(model)):
        model.export(str(path), verbose=False)
    else:
        model.save(str(path), save_format="tf")
