"""Imported by the process from which ``estimator-bridge launch`` forks its tasks: what each of them would import by itself."""

import os

import numpy as np

from estimator_bridge.legacy.distribution.launched import launched_task  # noqa: F401 -- imported is all that they have to be
from estimator_bridge.legacy.installation import install
from estimator_bridge.script import run  # noqa: F401 -- imported is all that they have to be
from estimator_bridge.script.quiet import quiet_start_up

with quiet_start_up():
    install()
# Python's own generator is seeded anew in a forked process, numpy's is not: all tasks would draw the same numbers.
os.register_at_fork(after_in_child=np.random.seed)
