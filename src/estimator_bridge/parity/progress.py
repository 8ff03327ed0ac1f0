"""Progress of both sides on stderr, if that is a terminal."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from estimator_bridge.parity.run import SIDES, Watch


@contextlib.contextmanager
def progress_display(sides: Sequence[str] = SIDES) -> Iterator[Watch]:
    """Yields a ``watch`` for ``compare`` that shows step, loss and remaining time of each side.

    Args:
        sides: Names of the sides, in order.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<7}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks: dict[str, TaskID] = {side: progress.add_task(side, start=False, total=None, state="waiting") for side in sides}

        def watch(side: str, event: dict[str, Any]) -> None:
            task = tasks[side]
            if event["event"] == "train":
                progress.start_task(task)
                progress.update(task, total=event["max_steps"], state="starting")
            elif event["event"] == "step":
                progress.update(task, completed=event["step"], state=f"loss {event['loss']:.4g}")
            elif event["event"] == "evaluated":
                progress.update(task, state=f"evaluated {event['name']}")

        yield watch
