"""A stand-in for the interpreter of a reference: the recorder on the legacy path, which gives itself out as TensorFlow 1.15.5.

FREE_BYTES in the environment is what the disk then has left.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from types import SimpleNamespace

from estimator_bridge import legacy

legacy.install(v1=True)

import tensorflow  # noqa: E402 -- that of TensorFlow 1, as a script sees it

tensorflow.__version__ = "1.15.5"
if "FREE_BYTES" in os.environ:
    shutil.disk_usage = lambda folder: SimpleNamespace(free=int(os.environ["FREE_BYTES"]))  # type: ignore[assignment,return-value]
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
