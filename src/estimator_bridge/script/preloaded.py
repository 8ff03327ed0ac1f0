"""Imports of the process from which ``estimator-bridge launch`` forks its tasks, so that no task repeats them."""

import os

import numpy as np

from estimator_bridge.legacy.installation import install
from estimator_bridge.script import run  # noqa: F401 -- for the import only
from estimator_bridge.script.quiet import quiet_start_up

with quiet_start_up():
    install()
# A forked process gets a new seed for Python's generator, but not for numpy's: all tasks would draw the same numbers.
os.register_at_fork(after_in_child=np.random.seed)
