"""Runs a script as where neither this package nor Estimators are installed: ``python alone.py SCRIPT [ARGS...]``."""

import runpy
import sys

sys.modules["estimator_bridge"] = sys.modules["tensorflow_estimator"] = None  # type: ignore[assignment]
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
