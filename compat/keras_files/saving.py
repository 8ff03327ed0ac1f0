"""Saves models with the values of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.keras_files import libraries, optimizers
from estimator_bridge.compat.keras_files.libraries import Library, Model

WITHOUT_LEGACY_STATE = ("keras", "keras-weights")


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
    family = optimizers.family(library, optimizer)
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
        raise KerasError("Keras did not restore all variables of the model.", received=str(error)[:1000]) from None
    if to == "keras-weights":
        model.save_weights(str(path))
    elif to == "keras":
        model.save(str(path))
    elif libraries.is_keras3(libraries.of_model(model)):
        model.export(str(path), verbose=False)
    else:
        model.save(str(path), save_format="tf")
