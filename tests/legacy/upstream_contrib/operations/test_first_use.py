"""An operation's module is imported when the operation is called, so that starting stays quick."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("importing_operations.py")


def test_importing_operations_imports_no_module() -> None:
    subprocess.run([sys.executable, str(PROGRAM)], check=True)
