"""Changes of the number of workers of a training: fewer when one is lost, more when the user asks."""

import dataclasses
import time
from collections.abc import Mapping, Sequence

from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.machines import Machines
from estimator_bridge.launcher.outcome import SIGNALLED, Outcome
from estimator_bridge.launcher.processes.task import State

_LOOK_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class ElasticSize:
    """Numbers of workers with which a training can go on.

    Attributes:
        others: Number of tasks of each job that does not train.
        allowed: Numbers of workers, chief included, ascending.

    Example:
        >>> size = ElasticSize({"evaluator": 1}, [1, 2, 4])
        >>> size.below(4), size.above(4)
        (2, None)
    """

    others: Mapping[str, int]
    allowed: Sequence[int]

    def below(self, number: int) -> int | None:
        """Returns the next smaller number of workers, if there is one."""
        return max((one for one in self.allowed if one < number), default=None)

    def above(self, number: int) -> int | None:
        """Returns the next larger number of workers, if there is one."""
        return min((one for one in self.allowed if one > number), default=None)

    def counts(self, number: int) -> Mapping[str, int]:
        """Returns the number of tasks of each job."""
        return {**self.others, "chief": 1, "worker": number - 1}


def elastic_size(counts: Mapping[str, int], given: bool, allowed: Sequence[int]) -> tuple[ElasticSize, int]:
    """Returns the numbers of workers of a training, and the one to begin with.

    Args:
        counts: Number of tasks of each job.
        given: True if the user gave the number of workers; else the largest is taken.
        allowed: Numbers of workers that the plan allows, ascending.

    Raises:
        BridgeError: The tasks are not those of workers that train in step, or are too few or too many.
    """
    number = counts["chief"] + counts["worker"] if given else allowed[-1]
    if counts["ps"] or not counts["chief"] or number not in allowed:
        raise BridgeError(
            "An elastic plan is for a chief and other workers that train in step.",
            expected=" or ".join(f"--worker {one - 1}" for one in allowed) + ", and no --ps",
            received=", ".join(f"{one} {job}" for job, one in counts.items() if one),
            fix="Correct the numbers of tasks, or leave out --worker.",
        )
    return ElasticSize({"evaluator": counts["evaluator"]}, allowed), number


class Resizing:
    """Ends a cluster so that it begins again with another number of workers.

    Args:
        cluster: Cluster that runs.
        size: Numbers of workers with which its training can go on.
        asked: Requests for more workers that have not been met; they are taken out.
    """

    def __init__(self, cluster: LocalCluster, size: ElasticSize, asked: list[int]) -> None:
        self._cluster = cluster
        self._size = size
        self._asked = asked

    def judge(self) -> Outcome | None:
        """Returns the end of the cluster if another number of workers goes on, else None."""
        number = len(self._cluster.trainers)
        lost = [
            task
            for task in self._cluster.trainers
            if task.state is State.FAILED
            and (task.exit_code or 0) > SIGNALLED
            # A task that was asked to end says in the end that its training is over.
            and (task.exit_code == EXIT_CODE or not self._cluster.rendezvous.has_trained(task.name))
        ]
        if lost:
            first = min(lost, key=lambda task: task.ended_at)
            return self._resized(self._size.below(number), f"{first.name} was lost (exit code {first.exit_code})")
        if self._asked:
            self._asked.clear()
            larger = self._size.above(number)
            if larger is None:
                self._cluster.say(f"{number} workers are the most that the plan allows")
            return self._resized(larger, "more workers were asked for")
        return None

    def _resized(self, number: int | None, reason: str) -> Outcome | None:
        if number is None:
            return None
        self._cluster.say(f"{reason}: the training goes on from its last checkpoint with {number} workers")
        return Outcome(0, workers=number)


class Regrouping:
    """Ends the task of this machine so that the training begins again on more or fewer machines.

    Args:
        cluster: Cluster that runs.
        machines: Machines that take part.
    """

    def __init__(self, cluster: LocalCluster, machines: Machines) -> None:
        self._cluster = cluster
        self._machines = machines
        self._looked_at = 0.0

    def judge(self) -> Outcome | None:
        """Returns the end of the round if another one should begin, else None."""
        reason = ""
        if any(task.was_preempted for task in self._cluster.trainers):
            reason = "a task was asked to end"  # its launcher, or another one, ends with it or comes to the next round
        elif time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            reason = self._machines.wanted()
        if not reason:
            return None
        self._cluster.say(f"{reason}: the training goes on from its last checkpoint with the machines that are there")
        return Outcome(0, workers=len(self._machines.members))
