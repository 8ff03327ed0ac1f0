"""Ends of a launch by the clock, by an audit, or because training is complete."""

import time

from estimator_bridge.cluster.rendezvous import Flag
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.audit.audit import Audit
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.monitors.heartbeats import Heartbeats
from estimator_bridge.launcher.monitors.remote_tasks import RemoteTasks
from estimator_bridge.launcher.outcome import Outcome


def judge_finish(cluster: LocalCluster) -> Outcome | None:
    """Returns the end if a task still runs long after the chief, or after the first worker of a cluster without a chief.

    Args:
        cluster: Cluster whose ``finish`` is the limit.
    """
    seconds = cluster.timeouts.finish
    late = [task for task in cluster.tasks if not task.state.has_ended and task.name.job != "ps"]
    last = max(task.ended_at for task in cluster.tasks)
    leader = next(iter(cluster.trainers), None)
    if leader is None or not leader.state.has_ended or not late or time.monotonic() - last < seconds:
        return None
    problem = BridgeError(
        f"{', '.join(str(task.name) for task in late)}: still running {seconds:g} s after the end of the training.",
        expected=f"an end soon after that of {leader.name}",
        fix="Read the logs of these tasks, or give them time with --finish-timeout SECONDS.",
    )
    return Outcome(1, problem)


def judge_audit(cluster: LocalCluster, audit: Audit | None) -> Outcome | None:
    """Returns the end if the audit finds a fault in the records of the tasks.

    Args:
        cluster: Cluster that is audited.
        audit: Audit of the cluster; None if the user did not ask for one.
    """
    is_over = bool(cluster.trainers) and cluster.have_trainers_ended
    problem = audit.check(is_over) if audit else None
    return Outcome(1, problem) if problem else None


class Completion:
    """The end of a successful training.

    Args:
        cluster: Cluster that trains.
        remote_tasks: Tasks on other machines.
        heartbeats: Heartbeats of other launchers.
    """

    def __init__(self, cluster: LocalCluster, remote_tasks: RemoteTasks, heartbeats: Heartbeats) -> None:
        self._cluster = cluster
        self._remote_tasks = remote_tasks
        self._heartbeats = heartbeats
        self._is_over = False

    def judge(self) -> Outcome | None:
        """Ends the parameter servers once training is over, and returns the end when no task is left.

        A parameter server never ends by itself. An evaluator ends after the last checkpoint, once it knows that no more follow.
        """
        cluster = self._cluster
        if not cluster.have_trainers_ended:
            return None
        if not self._is_over and (
            cluster.rendezvous.has_flag(Flag.TRAINED) or self._remote_tasks.is_training_over(self._heartbeats.given_up)
        ):
            self._is_over = True
            cluster.rendezvous.set_flag(Flag.TRAINED)
            for task in cluster.tasks:
                if task.name.job == "ps":
                    task.terminate()
        awaited = [task for task in cluster.tasks if task.name.job != "ps" or not cluster.trainers]
        return Outcome(0) if all(task.state.has_ended for task in awaited) else None
