"""A stand-in for the interpreter of a reference: the recorder on the legacy path, which gives itself out as TensorFlow 1.15.5."""

from __future__ import annotations

import runpy
import sys

from estimator_bridge import legacy

legacy.install(v1=True)

import tensorflow  # noqa: E402 -- that of TensorFlow 1, as a script sees it

tensorflow.__version__ = "1.15.5"
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
