"""Session for CheckpointSaverHook and its listeners: it reads variables and saves."""

from __future__ import annotations

import functools
from typing import Any

from tensorflow.python.eager import context

from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.modern.step.transplant import Transplant


class SavingSession(ReadOnlySession):
    """Session of a CheckpointSaverHook, its Saver and its listeners.

    The hook and the Saver are TensorFlow's own; they decide the names and order of files, and which old ones to delete.

    Args:
        transplant: Transplant with the variables to save.
        saver: Saver with the variables' names in the checkpoint.
    """

    def __init__(self, transplant: Transplant, saver: Any) -> None:
        super().__init__(transplant.model.graph, transplant.variables, transplant.operations)
        self._save = functools.partial(transplant.save, transplant.saved(saver))
        self._saving = saver.saver_def.save_tensor_name

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Returns values of variables, or writes a checkpoint and returns its prefix.

        Raises:
            NotSupportedError: A CheckpointSaverListener asks for anything else.
        """
        if not isinstance(fetches, str) or fetches != self._saving:
            with self.caller("A CheckpointSaverListener"):
                return super().run(fetches, feed_dict, options, run_metadata)
        (prefix,) = feed_dict.values()
        with context.eager_mode():
            self._save(prefix)
        return prefix
