"""A process that has imported TensorFlow and runs each program in a fork of itself: ``python fork_server.py``.

A program is a function of a module of the tests. Each line of standard input is JSON, ``[grace, [[module, function, arguments, output
file], ...]]``. The answer is one line of JSON with the programs' exit codes, or "killed". The first program has 240 seconds, the others
``grace`` seconds after its end. What a function returns is the last line of its output, as JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Program = tuple[str, str, Sequence[Any], str]
ROOT = Path(__file__).parents[1]
DEADLINE = 240.0


def main() -> None:
    """Answers until standard input ends."""
    sys.path[0] = str(ROOT)  # not this folder: the programs' modules are named as the tests name them
    for module in ("tensorflow", "tf_keras"):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        grace, programs = json.loads(line)
        codes = run_together(programs, grace)
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()


def run_together(programs: Sequence[Program], grace: float) -> list[int | str]:
    """Runs programs side by side.

    Args:
        programs: Programs; the first decides how long the others may run.
        grace: Seconds for the others after the end of the first.

    Returns:
        Each program's exit code, or "killed".
    """
    deadline = time.monotonic() + DEADLINE
    running = {start(*program): index for index, program in enumerate(programs)}
    first = next(iter(running))
    codes: list[int | str] = ["killed"] * len(programs)
    while running and time.monotonic() < deadline:
        for child in list(running):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
                if child == first:
                    deadline = min(deadline, time.monotonic() + grace)
        time.sleep(0.002)
    for child in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return codes


def start(module: str, function: str, arguments: Sequence[Any], out: str) -> int:
    """Calls a function in a fork, with its standard output and error in a file; returns the process id."""
    child = os.fork()
    if not child:
        os._exit(execute(module, function, arguments, out))
    return child


def execute(module: str, function: str, arguments: Sequence[Any], out: str) -> int:
    """Calls a function in this process and writes what it returns; returns the exit code."""
    code = 1
    try:
        file = os.open(out, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1)
        os.dup2(file, 2)
        returned = getattr(importlib.import_module(module), function)(*arguments)
        if returned is not None:
            sys.stdout.write("\n" + json.dumps(returned) + "\n")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 -- the fork must end here, whatever happened
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    main()
