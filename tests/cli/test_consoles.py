"""Tables where there is no terminal."""

from __future__ import annotations

import io
import sys

import pytest
from rich.table import Table

from estimator_bridge.cli.consoles import make_console

NAME = "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel/" * 4


def test_names_are_whole_and_lines_end_where_their_text_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    table = Table("variable", "shape", "", box=None, show_edge=False)
    table.add_row(NAME, "3", "")
    table.add_row("bias", "3", "note")
    make_console().print(table)
    make_console(stderr=True).print(f"Note: {NAME}", highlight=False)
    out, err = capsys.readouterr()
    assert NAME in out
    assert err == f"Note: {NAME}\n"
    assert all(line == line.rstrip() for line in out.splitlines())


def test_a_terminal_keeps_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    assert make_console().width == 40
