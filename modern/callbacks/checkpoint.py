"""Checkpoints at the start, at the RunConfig's interval and at the end, saved by TF1's own CheckpointSaverHook."""

import functools
from collections.abc import Sequence
from typing import Any

from tensorflow.python.eager import context

from estimator_bridge.modern.callbacks.at_steps import HookAtSteps
from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.step.transplant import Transplant


def default_saver(hooks: Sequence[Any], model: ModelGraph, config: Any, listeners: Sequence[Any]) -> list[Any]:
    """Returns Estimator's own CheckpointSaverHook if the hooks contain none, and gives the first one the listeners.

    Args:
        hooks: Session hooks of a training.
        model: Model that is trained.
        config: A RunConfig: model_dir, save_checkpoints_secs, save_checkpoints_steps.
        listeners: ``tf.train.CheckpointSaverListener`` objects for the first CheckpointSaverHook.

    Raises:
        ValueError: There are listeners and no CheckpointSaverHook; Estimator raises it, too.
    """
    savers = [hook for hook in hooks if isinstance(hook, v1.train.CheckpointSaverHook)]
    own = []
    if not savers and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        own = [
            v1.train.CheckpointSaverHook(
                config.model_dir,
                config.save_checkpoints_secs,
                config.save_checkpoints_steps,
                scaffold=model.spec.scaffold,
                save_graph_def=config.checkpoint_save_graph_def,
            )
        ]
    for listener in listeners:
        if not savers + own:
            raise ValueError(
                "There should be a CheckpointSaverHook to use saving_listeners: set RunConfig.save_checkpoints_steps or "
                "RunConfig.save_checkpoints_secs."
            )
        first = (savers + own)[0]._listeners
        first += [] if listener in first else [listener]
    return own


class CheckpointSaver(HookAtSteps):
    """Runs a CheckpointSaverHook, which writes checkpoints, ``.meta`` files, graph.pbtxt and events, and calls listeners."""

    def begin(self, transplant: Transplant, step: int) -> None:
        """Gives the hook its session, and notes the step."""
        super().begin(transplant, step)
        self._begun = step

    def end(self, step: int) -> None:
        """Calls the hook's ``end``.

        It saves after a training without a step, too, since other hooks may have chosen values, such as k-means' centers: TensorFlow 1
        counts a step that finds no batch, and saves then.
        """
        if step == self._begun:
            self._hook._timer.reset()
        super().end(step)

    def _session_of(self, transplant: Transplant) -> Any:
        session = super()._session_of(transplant)
        return SavingSession(transplant, self._hook._get_saver(), session if self._run.is_free else None)


class SavingSession(ReadOnlySession):
    """Session of a CheckpointSaverHook, its Saver and its listeners.

    The hook and the Saver are TensorFlow's own; they decide the names and order of files, and which old ones to delete.

    Args:
        transplant: Transplant with the variables to save.
        saver: Saver with the variables' names in the checkpoint.
        session: Session that runs what listeners ask for; None to read only.
    """

    def __init__(self, transplant: Transplant, saver: Any, session: Any) -> None:
        self._session = session
        super().__init__(transplant.model.graph, transplant.variables, transplant.operations)
        self._pause = transplant.pause
        self._save = functools.partial(transplant.save, transplant.saved(saver))
        self._saving = saver.saver_def.save_tensor_name

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Writes a checkpoint and returns its prefix, or runs what a listener asks for in the other hooks' session."""
        with context.eager_mode():
            self._pause()  # the hook reads the global step first, by which it names the file
        if not isinstance(fetches, str) or fetches != self._saving:
            with self.caller("A CheckpointSaverListener"):
                if self._session is None:
                    return super().run(fetches, feed_dict, options, run_metadata)
                return self._session.run(fetches, feed_dict, options, run_metadata)
        (prefix,) = feed_dict.values()
        with context.eager_mode():
            self._save(prefix)
        return prefix
