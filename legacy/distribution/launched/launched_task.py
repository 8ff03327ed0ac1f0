"""What is different in a task that ``estimator-bridge launch`` started: nobody trains before all are there, and nobody waits in vain.

Each module of this package has ``patches(meeting)``, which are in force while the script runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.legacy.distribution.launched import auditing, reporting, server_waits

_PARTS = (server_waits, reporting, auditing)


@contextlib.contextmanager
def join_launcher() -> Iterator[None]:
    """While active, tasks of Estimator meet the launcher that started this process; without one nothing is changed."""
    meeting = Rendezvous.of_this_process()
    with contextlib.ExitStack() as stack:
        for part in _PARTS if meeting else ():
            for patch in part.patches(meeting):  # of what is patched by now
                stack.enter_context(patch)
        yield
