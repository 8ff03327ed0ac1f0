"""Patches of a task that ``estimator-bridge launch`` started: all tasks begin together, and none waits in vain.

Each module of this package has ``patches(rendezvous)``, which are in force while the script runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.legacy.distribution.launched import auditing, reporting, server_waits

_PARTS = (server_waits, reporting, auditing)


@contextlib.contextmanager
def join_launcher() -> Iterator[None]:
    """While active, Estimator's tasks report to the launcher of this process; without a launcher nothing changes."""
    rendezvous = Rendezvous.of_this_process()
    with contextlib.ExitStack() as stack:
        for part in _PARTS if rendezvous else ():
            for patch in part.patches(rendezvous):  # may wrap an earlier patch
                stack.enter_context(patch)
        yield
