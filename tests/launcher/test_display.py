"""The table of tasks, and streams that cannot be written."""

from __future__ import annotations

import errno
import io
import os
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.display import open_display, task_table
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.launcher.processes.task import Task


def made(job: str = "chief") -> Task:
    return Task(TaskId(job, 0), [], {}, Path("x"), lambda name, text: None)


def test_steps_per_second_are_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 steps in the first 10 s, 10 in each of the next 20: over the last 10 s it is 1/s."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    task = made()
    assert task.steps_per_second is None
    for second in range(31):
        now = float(second)
        task.record_step(second * 10 if second <= 10 else 100 + (second - 10))
    assert task.steps_per_second == pytest.approx(1.0)


def test_the_table() -> None:
    task, other = made(), made("ps")
    task.record_step(1234)
    out = io.StringIO()
    Console(file=out, width=100).print(task_table([other, task]))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.getvalue().splitlines() if "│" in line]
    assert rows == [["chief 0", "training", "1,234", "", "0"], ["ps 0", "starting", "", "", "0"]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_lines_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with open_display(out) as (say, show):
        say("chief 0", "[bold]:smile:")
        show([made()])
    text = Text.from_ansi(out.getvalue()).plain
    assert "chief 0     | [bold]:smile:" in text
    assert "│ chief 0 │ starting │" in text


class Full(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_stream_that_cannot_be_written_is_reported_once_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with open_display(Full()) as (say, _):
        say("chief 0", "hello")
        say("chief 0", "goodbye")

    assert caplog.text.count("the output cannot be written: No space left on device") == 1


def test_free_ports_are_below_those_of_outgoing_connections() -> None:
    """Linux gives those from 32768 on, unless it is configured otherwise."""
    assert all(1024 < port < 32768 for port in free_ports(20))
