"""The end of a launch, and its limits."""

import dataclasses
import enum
from collections.abc import Callable, Collection

from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError

SIGNALLED = 128
"""Exit codes above it are of signals."""


class NoRestart(enum.Enum):
    """Why a failed task is not restarted; the values are texts for the message."""

    DISABLED = "--max-restarts is 0"
    LIMIT_REACHED = "it was restarted {task.restarts} times already (--max-restarts)"
    NO_STEP_SINCE_FAILURE = "it ended in the same way before, and came no further than step {task.last_failure[1]}"
    NO_PROGRESS = "it made no progress after its start, so a restart would fail the same way"
    NO_PROGRESS_AGAIN = "it was restarted already, and made no progress after that"
    PORT_TAKEN = "the port of {address} was taken"
    FINAL = "{final}"
    """The task itself said why a restart would not help."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The end of a cluster.

    Attributes:
        code: Exit code.
        problem: Message for the user; None after a success, and if the user ended the cluster.
        no_restart: Reason not to restart the task whose failure ended the cluster.
        workers: Number of workers with which the training begins again; None if it has ended.
        lost: Tasks of other machines without which it ended; an elastic training goes on without them.
    """

    code: int
    problem: BridgeError | None = None
    no_restart: NoRestart | None = None
    workers: int | None = None
    lost: Collection[TaskId] = ()


Judge = Callable[[], Outcome | None]
"""Function that returns the end of a launch for one reason, or None while the launch goes on."""


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """Time limits of a launch in seconds, and its limit of restarts.

    Attributes:
        ready: Time from the start until every server answers; 0 skips the check.
        finish: Time from the end of the chief, and of each later task, until the next one has ended.
        grace: Time from SIGTERM to SIGKILL.
        stall: Time from the last step of any task until it counts as a stall; 0 skips the check.
        restarts: Number of restarts of a task after failures.
        lost: Time from the last heartbeat of another machine's launcher until its task counts as lost for good.
        may_idle: True if what has no steps (an evaluation, an export, a training that reports none) may last for as long as it likes;
            False for ten times ``stall`` at most.
    """

    ready: float = 120.0
    finish: float = 600.0
    grace: float = 20.0
    stall: float = 120.0
    restarts: int = 3
    lost: float = 45.0
    may_idle: bool = True
