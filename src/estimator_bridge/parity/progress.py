"""Progress of both sides on stderr: bars on a terminal, else a line a minute."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from estimator_bridge.parity.run import SIDES, Watch

_SECONDS = 60.0  # from one line to the next, where stderr is no terminal
_NAMES = {
    "train": "a training began",
    "step": "step {step}",
    "trained": "a training ended",
    "evaluated": "an evaluation",
    "predicted": "predictions",
    "exported": "an export",
}
"""Events after which a side may be silent for long, in words."""


def last_step(first: int, asked: int | None, left: int | None) -> int | None:
    """Returns the last step of a training, as far as it is known.

    Args:
        first: Its first step.
        asked: Step up to which the script trains.
        left: Number of steps that --steps leaves.

    Example:
        >>> last_step(1, 1000, 200), last_step(501, 1000, None)
        (200, 1000)
    """
    known = [asked, None if left is None else first + left - 1]
    return min((step for step in known if step is not None), default=None)


class _Lines:
    """Writes a line a minute, so that whoever waits for a job without a terminal knows that it is alive."""

    def __init__(self) -> None:
        self._written = self._began = time.monotonic()
        self._first = 0
        self._total: int | None = None
        self._left: int | None = None
        self._side = ""

    def watch(self, side: str, event: dict[str, Any]) -> None:
        """Takes an event of a side."""
        now, kind = time.monotonic(), event["event"]
        if side != self._side:
            self._side, self._seen, self._last = side, now, "its start"
        is_due = now - self._written >= _SECONDS
        if kind == "train":
            self._began, self._first, self._total, self._left = now, 0, event["max_steps"], event.get("left")
        elif kind == "step":
            if not self._first:
                self._first, self._total = event["step"], last_step(event["step"], self._total, self._left)
            if is_due:
                self._say(f"{side}: {self._progress(event, now - self._began)}")
        elif kind == "alive" and is_due and now - self._seen >= _SECONDS:  # an evaluation, an export or a step may take minutes
            self._say(f"{side}: it runs; {round((now - self._seen) / 60)} min since {self._last}")
        elif kind == "judging" and is_due:  # models of gigabytes take minutes
            self._say("both sides have ended; now their values are compared")
        if kind in _NAMES:
            self._seen, self._last = now, _NAMES[kind].format(**event)

    def _say(self, text: str) -> None:
        self._written = time.monotonic()
        sys.stderr.write(f"estimator-bridge: {text}\n")

    def _progress(self, event: dict[str, Any], seconds: float) -> str:
        step, loss = event["step"], event["loss"]
        if not self._total or step <= self._first or self._total < step:
            return f"step {step}, loss {loss:.4g}"
        left = seconds / (step - self._first) * (self._total - step)
        return f"step {step} of {self._total}, loss {loss:.4g}, about {max(1, round(left / 60))} min left"


@contextlib.contextmanager
def progress_display(sides: Sequence[str] = SIDES) -> Iterator[Watch]:
    """Yields a ``watch`` for ``compare`` that shows step, loss and remaining time of each side.

    Args:
        sides: Names of the sides, in order.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines().watch
        return
    columns = (
        TextColumn("{task.description:<7}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:

        def add(side: str) -> TaskID:
            return progress.add_task(side, start=False, total=None, state="waiting")

        tasks = {side: add(side) for side in sides}
        begun: dict[str, dict[str, Any]] = {}  # side -> training whose first step is to come

        def watch(side: str, event: dict[str, Any]) -> None:
            if side not in tasks:  # a run that only some comparisons need
                tasks[side] = add(side)
            task = tasks[side]
            if event["event"] == "train":
                progress.start_task(task)
                progress.update(task, total=event["max_steps"], state="starting")
                begun[side] = event
            elif event["event"] == "step":
                if training := begun.pop(side, None):
                    progress.update(task, total=last_step(event["step"], training["max_steps"], training.get("left")))
                progress.update(task, completed=event["step"], state=f"loss {event['loss']:.4g}")
            elif event["event"] == "evaluated":
                progress.update(task, state=f"evaluated {event['name']}")
            elif event["event"] == "judging":
                progress.update(task, state="values are compared")

        yield watch
