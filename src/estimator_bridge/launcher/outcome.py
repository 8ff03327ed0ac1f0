"""How a launch may go on and how it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from estimator_bridge.errors import BridgeError


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a cluster ended.

    Attributes:
        code: exit code.
        problem: what went wrong; None where nothing did, or where the user ended it.
        port_taken: it never came up, since a port was in use.
    """

    code: int
    problem: BridgeError | None = None
    port_taken: bool = False


@dataclasses.dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds, and how often.

    Attributes:
        ready: from the start until every server answers; 0 means that none is asked.
        finish: from the end of the chief, and of each task after it, until the next one has ended.
        grace: from SIGTERM to SIGKILL.
        stall: from the last step of any task until something is done about it; 0 means nothing ever.
        restarts: of a task, after failures.
        lost: from the last sign of life of a launcher on another machine until it is given up.
    """

    ready: float = 120.0
    finish: float = 600.0
    grace: float = 20.0
    stall: float = 120.0
    restarts: int = 3
    lost: float = 45.0


Judge = Callable[[bool], BridgeError | None]
"""Gets whether training is over, so that nothing more will be reported; returns what is wrong, which ends everything, or None."""
