"""Writers that are killed at a chosen operation on their disk, so that no test depends on the machine's speed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable

from tests.compat.checkpoint.writing.faulty_disk import Faults, WatchedDisk

_LONGEST_OPERATION = 0.001  # seconds
_BEYOND = 1.3  # factor over the number of operations: some writers end before they are killed


def count_operations(write: Callable[[WatchedDisk], object]) -> int:
    """Runs a writer undisturbed, and counts its operations."""
    faults = Faults()
    write(faults.disk)
    return len(faults.operations)


def kill_somewhere(write: Callable[[WatchedDisk], object], operations: int) -> None:
    """Runs a writer in a process that is killed at a random operation, or that ends first, and waits for its end.

    Args:
        write: Writer; the argument is the disk that it has to use.
        operations: Number of operations of an undisturbed run.
    """
    fatal = random.randrange(int(operations * _BEYOND))
    reached, report = os.pipe()
    child = os.fork()
    if not child:
        write(WatchedDisk(_report_at(fatal, report)))
        os._exit(0)
    os.close(report)
    is_running = bool(os.read(reached, 1))  # empty if the process has ended
    os.close(reached)
    if is_running:
        time.sleep(random.uniform(0, _LONGEST_OPERATION))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if status != 0 and not (is_running and status == signal.SIGKILL):
        sys.exit(f"the writer ended with status {status}")


def _report_at(fatal: int, report: int) -> Callable[[str], None]:
    """Returns a function that reports the fatal operation, and lets no operation after that begin."""
    started = 0

    def before(name: str) -> None:
        nonlocal started
        if started == fatal:
            os.write(report, b".")
        while started > fatal:
            signal.pause()
        started += 1

    return before
