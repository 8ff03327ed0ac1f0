"""Timeline of the last step of a training in a pipeline, written into a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.callbacks.base import Callback
from estimator_bridge.modern.parallel.micro_batches.accumulation import AccumulatingTransplant
from estimator_bridge.modern.parallel.timeline import chrome_trace, drawing, spans_of

logging = tf.compat.v1.logging


class TimelineWriter(Callback):
    """Writes the timeline of the last step of a training.

    Args:
        path: File to write: a Chrome trace if its name ends with .json, a picture with .svg.
        stages: Number of stages.

    Raises:
        BridgeError: The name ends otherwise, or the folder does not exist.
    """

    def __init__(self, path: Path, stages: int) -> None:
        if path.suffix not in (".json", ".svg") or not path.parent.is_dir():
            raise BridgeError(
                "--timeline writes a Chrome trace or a picture.",
                expected="a file of an existing folder whose name ends with .json or .svg",
                received=path,
            )
        self._path = path
        self._stages = stages
        self._transplant: AccumulatingTransplant | None = None

    def begin(self, transplant: Any, step: int) -> None:
        """Keeps the training step."""
        self._transplant = transplant

    def end(self, step: int) -> None:
        """Writes the file."""
        assert self._transplant
        spans = [span for times in self._transplant.times for span in spans_of(times.numpy(), self._stages)]
        if not spans:
            logging.warning("No step overlapped, so there is no timeline: batches have fewer rows than micro-batches.")
            return
        try:
            self._path.write_text(drawing(spans) if self._path.suffix == ".svg" else json.dumps(chrome_trace(spans)))
        except OSError as error:  # the training is over and saved
            logging.warning("The timeline could not be written: %s.", error)
