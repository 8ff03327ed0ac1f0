"""The progress bar on a terminal that a small emulator stands for, and its silence elsewhere."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from estimator_bridge.modern.callbacks import base, progress
from estimator_bridge.modern.callbacks.at_steps import StopAtStep


class Terminal(io.StringIO):
    """Keeps what is written to it and can tell what one would see."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """The lines, after carriage returns, line feeds, cursor up, erase line; colours and the cursor's look left out."""
        lines, row, column = [""], 0, 0
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", self.getvalue()):
            if part == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif part == "\r":
                column = 0
            elif part == "\x1b[1A":
                row -= 1
            elif part == "\x1b[2K":
                lines[row] = ""
            elif not part.startswith("\x1b"):
                lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + 1 :]
                column += 1
        return lines


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stands for stderr from now on; no fixture, since pytest puts its own stderr in place after those."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    for name, value in {"TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """With a handler that took hold of stderr before the bar came, as TensorFlow's does."""
    made = logging.Logger("estimator_bridge.test")
    logging.root.manager.loggerDict[made.name] = made
    yield made
    del logging.root.manager.loggerDict[made.name]


def ran(step: int, loss: float) -> base.Progress:
    return base.Progress(step, np.array([loss], np.float32), np.zeros(1, np.int64), {})


def started(callbacks: list[base.Callback], stop: StopAtStep, step: int = 0) -> base.Callback:
    nothing: Any = None
    for callback in (stop, *callbacks):
        callback.begin(nothing, step)
    return callbacks[0]


def test_step_total_and_loss_are_shown_and_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    stop = StopAtStep(steps=400, last=None)
    with progress.show_progress(stop) as callbacks:
        bar = started(callbacks, stop, step=100)
        bar.after(ran(101, 0.25))
        (line,) = terminal.screen()
        assert re.search(r"^train .* 101/500 loss 0.25 ", line)
    assert "".join(terminal.screen()) == ""


def test_an_unknown_total_is_a_question_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    stop = StopAtStep(None, None)
    with progress.show_progress(stop) as callbacks:
        started(callbacks, stop).after(ran(7, 1.0))
        assert " 7/? loss 1 " in terminal.screen()[0]


def test_speed_and_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("rich.console.monotonic", lambda: clock[0])
    stop = StopAtStep(None, last=1001)
    with progress.show_progress(stop) as callbacks:
        bar = started(callbacks, stop)
        for step in (1, 201, 401):
            bar.after(ran(step, 1.0))
            clock[0] += 2.0
        line = terminal.screen()[0]
    assert " 401/1001 " in line
    assert " 100 steps/s 0:00:04 0:00:06" in line  # 400 steps in four seconds, 600 more to go


def test_it_is_redrawn_twice_a_second_at_most_and_asks_for_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("rich.console.monotonic", lambda: clock[0])
    stop = StopAtStep(None, last=1000)
    with progress.show_progress(stop) as callbacks:
        bar = started(callbacks, stop)
        assert bar.next_stop(0) is None
        bar.after(ran(1, 1.0))
        clock[0] += 0.4
        bar.after(ran(2, 1.0))
        assert " 1/1000 " in terminal.screen()[0]
        clock[0] += 0.1
        bar.after(ran(3, 1.0))
        assert " 3/1000 " in terminal.screen()[0]


def test_lines_of_the_log_go_above_it_unbroken(monkeypatch: pytest.MonkeyPatch, logger: logging.Logger) -> None:
    terminal = a_terminal(monkeypatch)
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    long = "Saving checkpoint for step 1: " + "a folder with a long name/" * 8
    stop = StopAtStep(None, last=10)
    with progress.show_progress(stop) as callbacks:
        bar = started(callbacks, stop)
        bar.after(ran(1, 1.0))
        logger.warning("%s", long)
        logger.warning("[bold]loss[/bold] = :smile:")
        above = terminal.screen()
        assert above[:2] == [long, "[bold]loss[/bold] = :smile:"]
        assert " 1/10 " in above[2]
    assert handler.stream is terminal
    logger.warning("after")
    assert terminal.screen()[:3] == [long, "[bold]loss[/bold] = :smile:", "after"]


def test_batches_of_an_evaluation_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with progress.show_batches(total=12) as tell:
        tell(7)
        assert re.search(r"^evaluate .* 7/12 ", terminal.screen()[0])
    assert "".join(terminal.screen()) == ""


def test_an_exception_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)

    def fail() -> None:
        stop = StopAtStep(None, last=10)
        with progress.show_progress(stop) as callbacks:
            started(callbacks, stop).after(ran(1, 1.0))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert sys.stderr is terminal
    assert "".join(terminal.screen()) == ""
    assert terminal.getvalue().rfind("\x1b[?25h") > terminal.getvalue().rfind("\x1b[?25l")  # the cursor is back


@pytest.mark.parametrize("why", ["no terminal", "dumb"])
def test_nothing_at_all_where_no_bar_can_be_drawn(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    if why == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    else:
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    with progress.show_progress(StopAtStep(None, None)) as callbacks:
        assert callbacks == []
    with progress.show_batches(12) as tell:
        tell(7)
    assert terminal.getvalue() == ""
