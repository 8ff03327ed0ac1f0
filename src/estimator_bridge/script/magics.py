"""``%load_ext estimator_bridge``: TensorFlow 1's names for the cells of a notebook, and ``%compare``, which shows its report in the notebook."""

from __future__ import annotations

import html
import importlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from estimator_bridge.errors import BridgeError

_REPORT = "Report: "


def register(shell: Any) -> None:
    """Makes a shell of IPython ready for cells that were written for TensorFlow 1.

    Names of the shell that already mean TensorFlow get TensorFlow 1's module in its place.

    Args:
        shell: IPython's shell, as ``load_ipython_extension`` gets it.

    Raises:
        BridgeError: As ``legacy.install(v1=True)``.
    """
    from estimator_bridge.legacy.installation import install
    from estimator_bridge.script.quiet import quiet_deprecations, quiet_start_up

    with quiet_start_up():
        install(v1=True)
    import tensorflow as tf

    from estimator_bridge.legacy.interactive import show_tf1, until_the_end

    until_the_end.enter_context(quiet_deprecations())
    shell.user_ns.update({name: show_tf1() for name, value in shell.user_ns.items() if value in (tf, tf.compat.v1)})
    shell.register_magic_function(compare, "line_cell", "compare")


def compare(line: str, cell: str | None = None) -> None:
    """Compares both paths on a script, or on the code of this cell, and shows the report below it.

    ``%compare [OPTIONS] train.py [ARGUMENTS]`` compares a script, ``%%compare [OPTIONS]`` the cell, which is a whole script: names of other cells
    are not known in it. Options are those of ``estimator-bridge compare``.

    Args:
        line: Text behind the name of the magic.
        cell: Text below it; None for ``%compare``.

    Raises:
        BridgeError: The quotes of the line do not match.
    """
    try:
        arguments = shlex.split(line)
    except ValueError as error:
        raise BridgeError(
            "The options of %compare cannot be read.",
            expected="%compare [OPTIONS] train.py [ARGUMENTS]",
            received=f"{line}: {error}",
            fix="Close every quote.",
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        if cell is not None:
            script = Path(folder) / "cell.ipynb"  # a notebook may have lines for IPython
            script.write_text(
                json.dumps({"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": cell}]}), encoding="utf-8"
            )
            arguments.append(str(script))
        report = _compare(arguments)
    if report:
        _show(Path(report))


def _compare(arguments: list[str]) -> str:
    """Runs the command, prints what it prints, and returns the path of its report; empty if it wrote none."""
    report = ""
    path = os.pathsep.join(
        ["", *filter(None, [os.environ.get("PYTHONPATH")])]
    )  # the cell imports what lies in the notebook's folder
    environment = {name: value for name, value in os.environ.items() if "COLOR" not in name} | {
        "PYTHONPATH": path,
        "TERM": "dumb",
    }
    command = [sys.executable, "-m", "estimator_bridge", "compare", *arguments]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        lines: Any = process.stdout
        while True:
            try:
                for text in lines:
                    sys.stdout.write(text)
                    report = text.removeprefix(_REPORT).rstrip("\n") if text.startswith(_REPORT) else report
                break
            except KeyboardInterrupt:  # the first ends the recording, and what there is so far is compared
                process.send_signal(signal.SIGINT)
    return report


def _show(report: Path) -> None:
    page = html.escape(report.read_text(encoding="utf-8"))
    frame = f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'
    importlib.import_module("IPython.display").display({"text/html": frame, "text/plain": str(report)}, raw=True)
