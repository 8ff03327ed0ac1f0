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


class _Lines:
    """Writes a line a minute, so that whoever waits for a job without a terminal knows that it is alive."""

    def __init__(self) -> None:
        self._written = self._began = time.monotonic()
        self._first = 0
        self._total: int | None = None
        self._seen, self._last = self._began, "its start"

    def watch(self, side: str, event: dict[str, Any]) -> None:
        """Takes an event of a side."""
        now = time.monotonic()
        if event["event"] == "train":
            self._began, self._first, self._total = now, 0, event["max_steps"]
        elif event["event"] == "step":
            self._first = self._first or event["step"]
            if now - self._written >= _SECONDS:
                self._written = now
                sys.stderr.write(f"estimator-bridge: {side}: {self._progress(event, now - self._began)}\n")
        elif (
            event["event"] == "alive" and now - self._written >= _SECONDS
        ):  # an evaluation, an export or a step may take minutes
            self._written = now
            minutes = round((now - self._seen) / 60)
            sys.stderr.write(f"estimator-bridge: {side}: it runs; {minutes} min since {self._last}\n")
        elif event["event"] == "judging" and now - self._written >= _SECONDS:  # models of gigabytes take minutes
            sys.stderr.write("estimator-bridge: both sides have ended; now their values are compared\n")
        if event["event"] != "alive":
            self._seen, self._last = (
                now,
                f"step {event['step']}" if event["event"] == "step" else f"the event {event['event']!r}",
            )

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

        def watch(side: str, event: dict[str, Any]) -> None:
            if side not in tasks:  # a run that only some comparisons need
                tasks[side] = add(side)
            task = tasks[side]
            if event["event"] == "train":
                progress.start_task(task)
                progress.update(task, total=event["max_steps"], state="starting")
            elif event["event"] == "step":
                progress.update(task, completed=event["step"], state=f"loss {event['loss']:.4g}")
            elif event["event"] == "evaluated":
                progress.update(task, state=f"evaluated {event['name']}")
            elif event["event"] == "judging":
                progress.update(task, state="values are compared")

        yield watch
