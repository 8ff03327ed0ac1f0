"""An operation's module is imported when the operation is called, so that starting stays quick."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from estimator_bridge.legacy.upstream_contrib.operations import OPERATIONS
assert "tensorflow" not in sys.modules
assert "GatherTree" in OPERATIONS
assert not [name for name in sys.modules if name.startswith("estimator_bridge.legacy.upstream_contrib.operations.")]
"""


def test_importing_operations_imports_no_module() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
