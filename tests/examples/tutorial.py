"""Runs the commands of a tutorial; as a program, writes what they print into its page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.running import ROOT, estimator_bridge_command

PAGE = ROOT / "docs" / "tutorials" / "from-2017-to-keras.md"
_BLOCK = re.compile(r"```console\n\$ (?P<command>.+)\n(?P<output>(?:.*\n)*?)```")


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns each command of a page, and what it says that the command prints.

    Example:
        >>> blocks("```console\\n$ ls\\na\\nb\\n```")
        [('ls', 'a\\nb\\n')]
    """
    return [(found["command"], found["output"]) for found in _BLOCK.finditer(page)]


def printed(command: str, folder: Path) -> str:
    """Returns what a command prints on standard output.

    Args:
        command: Words of a shell, without quotes.
        folder: Working directory, which has the script.

    Raises:
        AssertionError: It ends with another exit code than 0.
    """
    program, *words = shlex.split(command)
    if program == "estimator-bridge":
        ended = estimator_bridge_command(*words, cwd=folder)
        assert ended.code == 0, ended.err
        return ended.out.replace(f"{folder}{os.sep}", "")
    assert program == "python"
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    bar = re.compile(r"^ *\d+/\d+ \[.*\n", re.MULTILINE)  # of fit; it has as many lines as there is time
    return bar.sub("", done.stdout.replace("\b", "").replace("\r", "\n")).replace(f"{folder}{os.sep}", "").lstrip("\n")


def refreshed(page: str, folder: Path) -> str:
    """Returns the page with what its commands print now, one after the other in a folder with the script."""
    shutil.copy(ROOT / "examples" / "digits" / "train.py", folder)
    return _BLOCK.sub(lambda found: f"```console\n$ {found['command']}\n{printed(found['command'], folder)}```", page)


def lines_without_numbers(text: str) -> list[str]:
    """Returns the lines that are the same in each run; lines of a table get the same length."""
    return [re.sub(r"([─━])+", r"\1", line) for line in text.splitlines() if not re.search(r"\d", line)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        PAGE.write_text(refreshed(PAGE.read_text(), Path(made)))
