"""What one side writes down while it runs, and where: a folder that the judge reads afterwards.

::

    SIDE/
      events.jsonl     one line an event, in order: train, step, trained, evaluated, predicted, note, failed
      model-0/ ...     the model_dirs of the side's Estimators
      batches/         one TFRecord file a call: the recorded batches (legacy side of a replay)
      values/          checkpoints: values at the start, before and after the first step of each training call
      predictions/     one .npz a call
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Trace:
    """One side's folder."""

    folder: Path

    def make(self) -> None:
        """Makes the folders."""
        for name in ("batches", "values", "predictions"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def write(self, event: str, **fields: Any) -> None:
        """Appends one event; NaN and infinities stay what they are."""
        with self._events.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")

    def events(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """The events so far, of these kinds (all by default); a line that is being written is left for later."""
        if not self._events.exists():
            return
        with self._events.open(encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):
                    event: dict[str, Any] = json.loads(line)
                    if not kinds or event["event"] in kinds:
                        yield event

    def follow(self, position: int, watch: Callable[[dict[str, Any]], None]) -> int:
        """Calls ``watch`` with each whole event after a byte position; gives the position to go on from."""
        if not self._events.exists():
            return position
        with self._events.open("rb") as file:
            file.seek(position)
            for line in file:
                if line.endswith(b"\n"):
                    watch(json.loads(line))
                    position += len(line)
        return position

    def batches(self, call: str) -> Path:
        """The record file of a call."""
        return self.folder / "batches" / f"{call}.tfrecord"

    def values(self, call: str, moment: str) -> str:
        """The checkpoint prefix of a training call's ``initial`` values or those after its ``first`` step.

        Between its ``start``, which is kept for a free run, and the first step, hooks may have chosen values from batches.
        """
        return str(self.folder / "values" / f"{call}.{moment}")

    def predictions(self, call: str) -> Path:
        """The arrays of a predict call."""
        return self.folder / "predictions" / f"{call}.npz"

    @property
    def _events(self) -> Path:
        return self.folder / "events.jsonl"
