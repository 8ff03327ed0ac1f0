"""The trace of one side: a folder that the side writes while it runs and that the judge reads afterwards.

::

    SIDE/
      events.jsonl     one line an event, in order: train, step, trained, evaluated, predicted, note, failed
      model-0/ ...     the model_dirs of the side's Estimators
      batches/         one TFRecord file a call: the recorded batches (legacy side of a replay)
      values/          checkpoints: values at the start, before and after the first step, and at the end of each training call; in
                       operations.json, what the forward pass of the first step computes
      predictions/     one .npz a call

In a cluster, SIDE/ has a folder of this kind for each task, such as ``chief-0``, with the tasks' ``logs`` and the model_dirs beside them.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FORWARD_FILE = "operations.json"


@dataclasses.dataclass(frozen=True)
class Trace:
    """One side's folder."""

    folder: Path

    def make(self) -> None:
        """Creates the folders."""
        for name in ("batches", "values", "predictions"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def write(self, event: str, **fields: Any) -> None:
        """Appends one event; NaN and infinities stay what they are."""
        with self._events.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")

    def events(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Yields the events so far, of these kinds (all by default), but for a line that is not complete yet."""
        return (event for event, _ in self._read(0, kinds) if not kinds or event["event"] in kinds)

    def follow(self, position: int, watch: Callable[[dict[str, Any]], None]) -> int:
        """Calls ``watch`` with each complete event after a byte position; returns the position of the next event."""
        for event, following in self._read(position):
            watch(event)
            position = following
        return position

    def _read(self, position: int, kinds: tuple[str, ...] = ()) -> Iterator[tuple[dict[str, Any], int]]:
        """Yields each complete event after a byte position, and the position after the event; not all of other kinds, for speed."""
        begins = tuple(f'{{"event": "{kind}"'.encode() for kind in kinds)
        if not self._events.exists():
            return
        with self._events.open("rb") as file:
            file.seek(position)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # the next line read would be the rest of this one, once it is written
                position += len(line)
                if begins and line.startswith(b'{"event": ') and not line.startswith(begins):
                    continue
                yield json.loads(line), position

    def batches(self, call: str) -> Path:
        """Returns the path of a call's record file."""
        return self.folder / "batches" / f"{call}.tfrecord"

    def values(self, call: str, moment: str) -> str:
        """Returns the prefix of the checkpoint with a training call's ``initial`` values, its ``final`` ones, or those after its ``first`` step.

        For a free run, the values at the ``start`` are kept too: before the first step, hooks may choose values from batches.
        """
        return str(self.folder / "values" / f"{call}.{moment}")

    def predictions(self, call: str) -> Path:
        """Returns the path of a predict call's arrays."""
        return self.folder / "predictions" / f"{call}.npz"

    @property
    def _events(self) -> Path:
        return self.folder / "events.jsonl"
