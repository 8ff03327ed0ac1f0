"""A process that has imported TensorFlow and runs each program in a fork of itself: ``python fork_server.py``.

Each line of standard input is JSON, ``[grace, [[program, arguments, output file], ...]]``. The answer is one line of JSON with the
programs' exit codes, or "killed". The first program has 240 seconds, the others ``grace`` seconds after its end.
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

Program = tuple[str, Sequence[str], str]
DEADLINE = 240.0


def main() -> None:
    """Answers until standard input ends."""
    sys.path[0] = ""  # as for ``python -c``: this folder's modules are not for the programs
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


def start(program: str, arguments: Sequence[str], out: str) -> int:
    """Runs a program in a fork, with its standard output and error in a file; returns the process id."""
    child = os.fork()
    if not child:
        os._exit(execute(program, arguments, out))
    return child


def execute(program: str, arguments: Sequence[str], out: str) -> int:
    """Runs a program's source in this process; returns its exit code."""
    code = 1
    try:
        file = os.open(out, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv = ["-c", *arguments]
        exec(compile(program, "program", "exec"), {"__name__": "__main__"})
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
