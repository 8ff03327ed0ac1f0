"""Servers and connections of a cluster with parameter servers: workers and parameter servers serve, the chief connects to them."""

import functools
import socket
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.cluster.audit_records import AuditPlan
from estimator_bridge.cluster.rendezvous import Recovery, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.compat.config.model import Strategy
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.config import session_config
from estimator_bridge.modern.distribution.multi_worker import Jobs, connected
from estimator_bridge.modern.distribution.parameter_server_audit import BatchReport
from estimator_bridge.modern.distribution.worker_feed import Batch, Feed
from estimator_bridge.runtime.server_waits import await_servers

_CONNECT_SECONDS = 300.0  # schedulers start tasks minutes apart
_REPORT_SECONDS = 1.0
_SERVING = ("worker", "ps")
_servers: dict[str, Any] = {}


def start(start_server: Callable[[Any, Any], Any], executor: Any, config: Any) -> Any:
    """Brings this task into the cluster, at the point where ``train_and_evaluate`` on TF1 starts its server.

    Args:
        start_server: Function of tensorflow-estimator that starts TensorFlow's server.
        executor: Executor of tensorflow-estimator.
        config: RunConfig with its task.

    Returns:
        The server of a worker or of a parameter server. For a chief, None: TensorFlow's eager runtime answers at its address.

    Raises:
        BridgeError: A task of the cluster does not answer in time.
        NotSupportedError: The cluster has no chief or no workers, or this process has trained before.
    """
    feed(config).check_unused()
    meeting = Rendezvous.of_this_process()
    if meeting is not None:
        meeting.report_recovery(Recovery.WORKER)
    if config.task_type in _SERVING:
        if config.master not in _servers:  # a restarted script skips finished trainings and comes here again
            _servers[config.master] = start_server(executor, config)
        return _servers[config.master]
    with context.eager_mode():
        for note in session_config.apply(config.session_config):
            tf.compat.v1.logging.warn("%s", note)
        coordinator(config)
    return None


@functools.cache
def _feed(task: TaskId) -> Feed:
    meeting = Rendezvous.of_this_process()
    auditing = AuditPlan.read(meeting)
    steps = [_reporter(meeting, task)] if meeting is not None and task.job == "worker" else []
    batches = [BatchReport(auditing, task)] if auditing is not None else []
    return Feed(str(task), *steps, *batches)


def feed(config: Any) -> Feed:
    """Returns this task's own input for steps, the same object at each call."""
    return _feed(TaskId.of_config(config))


def coordinator(config: Any) -> Any:
    """Returns the ``ClusterCoordinator`` of a chief, the same at each call, since a process connects once."""
    jobs = config.cluster_spec.as_dict()
    missing = [job for job in ("chief", "worker", "ps") if not jobs.get(job)]
    if missing:
        raise NotSupportedError(
            f"A cluster with parameter servers needs a chief and a worker on the modern path; this cluster has no {missing[0]}.",
            expected="one chief, workers, and ps tasks",
            received=", ".join(f"{len(tasks)} {job}" for job, tasks in jobs.items()),
            fix="Add it to TF_CONFIG (master is the old name of a chief), or use --path legacy.",
        )
    return _coordinator(tuple((job, tuple(jobs[job])) for job in ("chief", "worker", "ps")), config.task_id, config.protocol)


@functools.cache
def _coordinator(jobs: Jobs, index: int, protocol: str | None) -> Any:
    _check_free(dict(jobs)["chief"][index])
    await_servers({job: tasks for job, tasks in jobs if job in _SERVING}, _CONNECT_SECONDS, "TF_CONFIG")
    strategy = connected(Strategy("ParameterServerStrategy"), jobs, "chief", index, protocol)
    if strategy.num_replicas_in_sync > 1:
        raise NotSupportedError(
            "A worker has several GPUs, but an Estimator uses only the first.",
            expected="at most one GPU for each worker",
            received=strategy.num_replicas_in_sync,
            fix="Start one worker for each GPU, with CUDA_VISIBLE_DEVICES set.",
        )
    strategy.extended._allow_run_without_coordinator = True  # since the chief trains, too
    return tf.distribute.coordinator.ClusterCoordinator(strategy)


def _check_free(address: str) -> None:
    """Refuses a port in use before anything is connected."""
    try:
        socket.create_server(("", int(address.rpartition(":")[2]))).close()
    except OSError as error:
        raise BridgeError(
            "The chief cannot listen at its port, which it needs on the modern path to connect to the cluster.",
            expected="a free port, and a script that leaves the servers to train_and_evaluate",
            received=f"{address}: {error.strerror}",
            fix="Drop tf.train.Server from the script, or use --path legacy.",
        ) from error


def _reporter(meeting: Rendezvous, task: TaskId) -> Callable[[int, Batch], None]:
    """Returns a function that reports the global step to the launcher, at most once a second."""
    reported_at = -_REPORT_SECONDS

    def report(step: int, batch: Batch) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= _REPORT_SECONDS:
            reported_at = time.monotonic()
            meeting.report_step(task, step, training=False)  # only the chief reports how long training lasts

    return report
