"""Asks for XLA on two replicas, and prints the refusal."""

import pathlib
import sys

from estimator_bridge.errors import NotSupportedError
from tests.modern.step.test_xla import train

try:
    train(pathlib.Path(sys.argv[1]), replicas=2, jit_compile=True)
except NotSupportedError as error:
    sys.stdout.write(str(error))
