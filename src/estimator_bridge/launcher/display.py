"""The terminal while a cluster runs: the output of the tasks, each line with its task, and a table of them."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from estimator_bridge.cluster.server_status import Answer, Health
from estimator_bridge.launcher.processes.task import Sink, State, Task

_logger = logging.getLogger(__name__)
_WIDTH = len("evaluator 0")
_REFRESHES = 4  # a second
_STYLES = {State.DONE: "green", State.FAILED: "red", State.STOPPED: "dim", State.TRAINING: "cyan", State.RESTARTING: "yellow"}
_HEALTH_STYLES = {Health.READY: "green", Health.MISSING: "red", Health.MISTAKEN: "red"}

Show = Callable[[Sequence[Task]], None]
"""Function that displays the state of the tasks."""


@contextlib.contextmanager
def open_display(stream: TextIO) -> Iterator[tuple[Sink, Show]]:
    """Shows lines, and on a terminal a live table below them.

    Args:
        stream: Stream to write to.

    Yields:
        A function for lines, which any thread may call, and a function for the tasks.
    """
    console = Console(file=stream, emoji=False)
    if not console.is_terminal:
        yield _plain_sink(stream), lambda tasks: None
        return
    with Live(console=console, refresh_per_second=_REFRESHES) as live:

        def print_line(name: str, text: str) -> None:
            console.print(Text.assemble((f"{name:<{_WIDTH}} | ", "bold"), text), soft_wrap=True)

        yield print_line, lambda tasks: live.update(task_table(tasks))


def _plain_sink(stream: TextIO) -> Sink:
    lock = threading.Lock()
    failures: list[OSError] = []

    def write_line(name: str, text: str) -> None:
        with lock:
            try:
                stream.write(f"{name:<{_WIDTH}} | {text}\n")
                stream.flush()
            except OSError as error:  # a disk may be full: training goes on
                if not failures:
                    _logger.warning(
                        "the output cannot be written: %s; training goes on, its lines are in --log-dir", error.strerror
                    )
                    failures.append(error)

    return write_line


def task_table(tasks: Sequence[Task]) -> Table:
    """Makes a table of the tasks and their states."""
    table = Table("task", "state", "global step", "steps/s", "restarts")
    for task in sorted(tasks, key=lambda task: task.name):
        step = "" if task.step is None else f"{task.step:,}"
        rate = "" if task.steps_per_second is None else f"{task.steps_per_second:.1f}"
        state = task.state.value + (f" ({task.exit_code})" if task.state is State.FAILED else "")
        table.add_row(str(task.name), Text(state, _STYLES.get(task.state, "")), step, rate, str(task.restarts))
    return table


def answer_table(answers: Sequence[Answer]) -> Table:
    """Makes a table of the answers of a cluster's servers."""
    names = ("task", "address", "state", "devices", "incarnation", "round trip")
    table = Table(*(Column(name, overflow="fold") for name in names))  # complete in a narrow terminal, too
    for answer in answers:
        state = Text(answer.health.value, _HEALTH_STYLES[answer.health]) + (f": {answer.reason}" if answer.reason else "")
        trip = "" if answer.milliseconds is None else f"{answer.milliseconds:.1f} ms"
        incarnation = "" if answer.incarnation is None else f"{answer.incarnation:016x}"
        table.add_row(str(answer.task), answer.address, state, ", ".join(answer.devices), incarnation, trip)
    return table
