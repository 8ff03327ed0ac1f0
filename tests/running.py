"""Runs scripts through the whole command line, each in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import estimator_bridge

ROOT = Path(__file__).parents[1]
_NOISE = (
    "WARNING: All log messages",
    "I0000 ",
    "To enable the following instructions",
)  # from TensorFlow's C++ code, before its logging starts


class Ended(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> Any:
        """The last line that the script printed, parsed as JSON."""
        assert self.out, self.err[-4000:]
        return json.loads(self.out.splitlines()[-1])


def estimator_bridge_command(*arguments: object, cwd: Path, stdin: str = "", **environment: str) -> Ended:
    """Runs ``python -m estimator_bridge``.

    Args:
        arguments: Command-line arguments.
        cwd: Working directory.
        stdin: Text that the process can read.
        environment: Environment variables that are added to ours.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in {"TF_USE_LEGACY_KERAS", "TF_CONFIG"}}
    done = subprocess.run(
        [sys.executable, "-m", "estimator_bridge", *map(str, arguments)],
        cwd=cwd,
        env=inherited
        | {"PYTHONPATH": str(Path(estimator_bridge.__file__).parents[1]), "TF_CPP_MIN_LOG_LEVEL": "3"}
        | environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    err = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith(_NOISE))
    return Ended(done.returncode, done.stdout, err)


def python_output(python: str, *arguments: object) -> str:
    """Runs a Python process that can import the package and its tests; returns its standard output.

    Args:
        python: Interpreter.
        arguments: Command-line arguments.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    done = subprocess.run(
        [python, *map(str, arguments)],
        env=inherited | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout


def write(path: Path, source: str) -> Path:
    """Writes a source file, its folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path
