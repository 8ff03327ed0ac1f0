"""Runs scripts through the whole command line, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import estimator_bridge

_NOISE = (
    "WARNING: All log messages",
    "I0000 ",
    "To enable the following instructions",
)  # of TensorFlow's C++, before its logging


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> Any:
        """What the script printed last, as JSON."""
        assert self.out, self.err[-4000:]
        return json.loads(self.out.splitlines()[-1])


def estimator_bridge_command(*arguments: object, cwd: Path, stdin: str = "", **environment: str) -> Ended:
    """Runs ``python -m estimator_bridge``.

    Args:
        arguments: of its command line.
        cwd: where.
        stdin: what it can read.
        environment: on top of ours.
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
        timeout=150,
        check=False,
    )
    err = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith(_NOISE))
    return Ended(done.returncode, done.stdout, err)


def write(path: Path, source: str) -> Path:
    """Writes a source file, its folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path
