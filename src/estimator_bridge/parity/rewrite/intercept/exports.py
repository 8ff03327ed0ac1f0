"""SavedModels that the new script writes, whichever function of TensorFlow or Keras it calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from estimator_bridge.parity.rewrite.session import Session
from estimator_bridge.runtime.patching import wrap


def intercept(session: Session, keeps: bool) -> None:
    """Lets the script write SavedModels, and keeps a copy of each, for the life of the process.

    Args:
        session: Session of the new side.
        keeps: False to keep none.
    """
    from tensorflow.python.saved_model import save

    def save_and_return_nodes(original: Callable[..., Any], model: Any, export_dir: Any, *args: Any, **kwargs: Any) -> Any:
        if keeps and session.in_step and session.has_trained():
            session.open_loop()  # ends the step of a loop of the script, after which the old script's values come back
        try:
            saved = original(model, export_dir, *args, **kwargs)
        except AssertionError as error:
            if session.step.name not in str(error):
                raise
            # A graph that draws random numbers reads our count of steps, which the script's object does not have.
            model._track_trackable(session.step, session.step.name.partition(":")[0], overwrite=True)
            saved = original(model, export_dir, *args, **kwargs)
        if keeps:
            session.exported(os.fsdecode(export_dir))
        return saved

    wrap(save, save_and_return_nodes=save_and_return_nodes)
