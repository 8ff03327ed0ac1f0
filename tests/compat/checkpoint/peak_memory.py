"""Converts a checkpoint, and prints the memory that it takes on top of the interpreter: peak_memory.py OLD NEW LIKE link|copy."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def peak() -> int:
    """Of this program: getrusage would begin with the peak of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    before = peak()
    from estimator_bridge.compat.checkpoint import convert

    old, new, like, how = sys.argv[1:]
    report = convert(old, new, like=like or None, copy=how == "copy")
    sys.stdout.write(json.dumps([peak() - before, report.written, sorted({"tensorflow"} & sys.modules.keys())]) + "\n")


if __name__ == "__main__":
    main()
