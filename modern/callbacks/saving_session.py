"""A session for CheckpointSaverHook and its listeners: it reads variables and saves."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager import context

from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.modern.step.checkpoints import entries, save
from estimator_bridge.modern.step.transplant import Transplant


class SavingSession(ReadOnlySession):
    """What a CheckpointSaverHook, its Saver and its listeners find in place of their session: it reads variables and saves.

    The hook and the Saver stay TensorFlow's own, and with them names of files, their order, and which old ones go.

    Args:
        transplant: whose variables are saved.
        saver: whose names they have.
    """

    def __init__(self, transplant: Transplant, saver: Any) -> None:
        super().__init__(transplant.model.graph, transplant.variables, transplant.operations)
        self._entries = entries(transplant, saver)
        self._saving = saver.saver_def.save_tensor_name

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """What variables say; or the prefix of a checkpoint, once it is written.

        Raises:
            NotSupportedError: for anything else, which a CheckpointSaverListener may ask for.
        """
        if not isinstance(fetches, str) or fetches != self._saving:
            with self.asked_by("A CheckpointSaverListener"):
                return super().run(fetches, feed_dict, options, run_metadata)
        (prefix,) = feed_dict.values()
        with context.eager_mode():
            save(self._entries, prefix)
        return prefix
