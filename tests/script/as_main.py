"""Runs a script or ``-m`` module through the runner alone, without TensorFlow: quick enough to try each way a script can end."""

import sys

from estimator_bridge.script.run import Script, run_as_main
from estimator_bridge.script.tracebacks import run_as_python_does

_, *arguments = sys.argv
is_module = arguments[0] == "-m"
target, *args = arguments[1:] if is_module else arguments
sys.exit(run_as_python_does(lambda: run_as_main(Script(target, tuple(args), is_module))))
