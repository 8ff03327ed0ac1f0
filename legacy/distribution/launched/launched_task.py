"""Patches of a task that ``estimator-bridge launch`` started: all tasks begin together, and none waits in vain.

Each module beside this one has ``patches(rendezvous)``, which are in force while the script runs.
"""

import contextlib
from collections.abc import Iterator

from estimator_bridge.cluster.rendezvous import Rendezvous


@contextlib.contextmanager
def join_launcher() -> Iterator[None]:
    """While active, Estimator's tasks report to the launcher of this process; without a launcher nothing changes."""
    with contextlib.ExitStack() as stack:
        if rendezvous := Rendezvous.of_this_process():
            # They import TensorFlow, which has been restored by now.
            from estimator_bridge.legacy.distribution.launched import audit_hook, server_waits, task_hook

            for part in (server_waits, task_hook, audit_hook):
                for patch in part.patches(rendezvous):  # may wrap an earlier patch
                    stack.enter_context(patch)
        yield
