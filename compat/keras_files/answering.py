"""Answers to the questions of ``compat.checkpoint.models.keras_process``.

========  ===========================================================================================================
question  action, and the fields of the answer
========  ===========================================================================================================
read      a file's values become a checkpoint: prefix, handle, stateless (formats without optimizer state), notes
load      a model's object graph becomes one; its values are not used: prefix, handle, stateless, notes
save      a checkpoint is restored into a loaded model, and the model is saved: no fields
========  ===========================================================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import KerasError
from estimator_bridge.compat.keras_files import libraries, loading, optimizers, saving
from estimator_bridge.compat.keras_files.libraries import Model

Answer = dict[str, Any]


class Answerer:
    """Answers questions and keeps loaded models."""

    def __init__(self) -> None:
        self._models: list[Model] = []
        self._known: Mapping[str, Callable[..., Answer]] = {"read": self._read, "load": self._load, "save": self._save}

    def answer(self, question: Mapping[str, Any]) -> Answer:
        """Answers a question; a failure is described in the field "error"."""
        arguments = dict(question)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._known[arguments.pop("do")](**arguments)
        except KerasError as error:
            return {"error": {"what": str(error)}}
        except Exception as error:  # noqa: BLE001 -- the user gets any error of Keras or user code in its own words
            return {
                "error": {
                    "what": "Loading or saving a model with Keras failed.",
                    "received": f"{type(error).__name__}: {error}"[:2000],
                    "fix": "Correct the cause of this error; with --like module:function it may lie in your own code.",
                }
            }

    def _read(self, path: str, architecture: tuple[str, str] | None, folder: str) -> Answer:
        if architecture is None and loading.is_named(Path(path)):
            prefix = f"{folder}/weights"
            loading.write_named(Path(path), prefix)
            return {"handle": None, "prefix": prefix, "stateless": {}, "notes": []}
        return self._kept(loading.read(Path(path), architecture), folder, [])

    def _load(
        self,
        model: tuple[str, str],
        optimizer: Mapping[str, Any] | None,
        family: str | None,
        learning_rate: float | None,
        to: str,
        folder: str,
    ) -> Answer:
        loaded = loading.load(*model)
        default = "new" if to in saving.WITHOUT_LEGACY_STATE else "legacy"
        notes = optimizers.equip(loaded, optimizer, family, default, learning_rate)
        return self._kept(loaded, folder, notes)

    def _save(self, handle: int, checkpoint: str, path: str, to: str, partial: bool) -> Answer:
        saving.save(self._models[handle], checkpoint, Path(path), to, partial)
        return {}

    def _kept(self, model: Model, folder: str, notes: list[str]) -> Answer:
        handle = len(self._models)
        self._models.append(model)
        prefix = saving.checkpoint(model).save(f"{folder}/model-{handle}")
        optimizer = getattr(model, "optimizer", None)
        stateless = saving.without_state(libraries.of_model(model), optimizer) if optimizer else {}
        return {"handle": handle, "prefix": prefix, "stateless": stateless, "notes": notes}
