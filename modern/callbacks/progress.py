"""Progress bar on stderr with step, loss, steps per second and remaining time; none if stderr is not a terminal."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import rich.progress
from rich.console import Console
from rich.text import Text

from estimator_bridge.modern.callbacks.at_steps import StopAtStep
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.step.transplant import Transplant

_SECONDS = 0.5
"""Seconds between two redraws; one redraw takes about two milliseconds."""


class ProgressBar(Callback):
    """Shows the steps that have run; it has no stops.

    Args:
        bar: Bar of rich.
        stop: Callback that knows the last step once it has begun.
    """

    def __init__(self, bar: rich.progress.Progress, stop: StopAtStep) -> None:
        self._bar = bar
        self._stop = stop

    def begin(self, transplant: Transplant, step: int) -> None:
        """Adds the bar; its clock starts with the first step, which is traced."""
        self._task = self._bar.add_task("train", start=False, total=self._stop.next_stop(step), completed=step, loss="")
        self._next: float | None = None

    def after(self, progress: Progress) -> bool:
        """Redraws the bar, at most every ``_SECONDS``."""
        if self._next is None:
            self._bar.start_task(self._task)
        elif time.monotonic() < self._next:
            return False
        if len(progress.losses):
            self._bar.update(self._task, loss=f"loss {progress.losses[-1]:.4g}")
        self._bar.update(self._task, completed=progress.step, refresh=True)
        self._next = time.monotonic() + _SECONDS
        return False


class _Speed(rich.progress.ProgressColumn):
    """Steps per second."""

    def render(self, task: rich.progress.Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.4g} steps/s", justify="right")


@contextlib.contextmanager
def show_progress(stop: StopAtStep) -> Iterator[list[Callback]]:
    """Shows a bar of training steps while active.

    Args:
        stop: Callback that ends the training; it begins before the bar does.

    Yields:
        The callback that moves the bar; no callback if stderr is not a terminal that can draw one.
    """
    with _show_bar() as bar:
        yield [] if bar is None else [ProgressBar(bar, stop)]


@contextlib.contextmanager
def show_batches(total: int | None) -> Iterator[Callable[[int], None]]:
    """Shows a bar of evaluated batches while active.

    Args:
        total: Number of batches; None if unknown.

    Yields:
        Function to call with the number of batches so far.
    """
    with _show_bar() as bar:
        if bar is None:
            yield lambda done: None
            return
        task = bar.add_task("evaluate", total=total, loss="")
        yield lambda done: bar.update(task, completed=done, refresh=True)


@contextlib.contextmanager
def _show_bar() -> Iterator[rich.progress.Progress | None]:
    """Shows a bar while active; Python's output to stderr goes above it."""
    console = Console(stderr=True, soft_wrap=True)
    if not sys.stderr.isatty() or not console.is_terminal or console.is_dumb_terminal:
        yield None
        return
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(bar_width=20),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TextColumn("{task.fields[loss]}"),
        _Speed(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    bar = rich.progress.Progress(
        *columns, console=console, transient=True, auto_refresh=False, redirect_stdout=sys.stdout.isatty()
    )
    handlers = _handlers(sys.stderr)
    with bar, _writing_to(handlers, sys.stderr):  # the bar has put a stderr of its own in place
        yield bar


def _handlers(stream: Any) -> list[Any]:
    """Returns the handlers of all loggers that write to ``stream``; absl's handler contains another one."""
    loggers = [logging.root, *(one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger))]
    found = [getattr(handler, "python_handler", handler) for logger in loggers for handler in logger.handlers]
    return [handler for handler in found if getattr(handler, "stream", None) is stream]


@contextlib.contextmanager
def _writing_to(handlers: list[Any], stream: Any) -> Iterator[None]:
    before = [handler.setStream(stream) for handler in handlers]
    try:
        yield
    finally:
        for handler, old in zip(handlers, before, strict=True):
            handler.setStream(old)
