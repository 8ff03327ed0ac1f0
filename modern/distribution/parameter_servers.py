"""Who a task is in a cluster with parameter servers: they and the workers serve, the chief connects to them."""

from __future__ import annotations

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
from estimator_bridge.compat.config.model import Cluster, ModernConfig, Strategy
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.config import session_config
from estimator_bridge.modern.config.make_strategy import make_strategy
from estimator_bridge.modern.distribution.multi_worker import kept_to_loopback
from estimator_bridge.modern.distribution.parameter_server_audit import BatchReport
from estimator_bridge.modern.distribution.worker_feed import Batch, Feed
from estimator_bridge.runtime.server_waits import await_servers

_CONNECT_SECONDS = 300.0  # schedulers start tasks minutes apart
_REPORT_SECONDS = 1.0
_SERVING = ("worker", "ps")
_servers: dict[str, Any] = {}


def start(start_server: Callable[[Any, Any], Any], executor: Any, config: Any) -> Any:
    """Brings this task into the cluster, where ``train_and_evaluate`` on TF1 starts its server.

    Args:
        start_server: starts TensorFlow's server, as tensorflow-estimator does.
        executor: tensorflow-estimator's.
        config: a RunConfig that knows its task.

    Returns:
        The server of a worker or of a parameter server. A chief connects, and TensorFlow's eager runtime answers at its address.

    Raises:
        BridgeError: where not all of them answer in time.
        NotSupportedError: for a cluster that lacks a chief or workers, and for a second training.
    """
    feed(config).check_unused()
    meeting = Rendezvous.of_this_process()
    if meeting is not None:
        meeting.report_recovery(Recovery.WORKER)
    if config.task_type in _SERVING:
        if config.master not in _servers:  # a script that was started anew skips trainings that are done, and comes here again
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
    """This task's own input for steps, the same at each call."""
    return _feed(TaskId.of_config(config))


def coordinator(config: Any) -> Any:
    """The ``ClusterCoordinator`` of a chief, the same at each call: a process connects once."""
    jobs = config.cluster_spec.as_dict()
    missing = [job for job in ("chief", "worker", "ps") if not jobs.get(job)]
    if missing:
        raise NotSupportedError(
            f"A cluster with parameter servers needs a chief and a worker beside it on the modern path; it has no {missing[0]}.",
            expected="one chief, workers, and ps tasks",
            received=", ".join(f"{len(tasks)} {job}" for job, tasks in jobs.items()),
            fix="Add it to TF_CONFIG (a master is a chief by its old name), or use --path legacy.",
        )
    return _coordinator(tuple((job, tuple(jobs[job])) for job in ("chief", "worker", "ps")), config.task_id, config.protocol)


@functools.cache
def _coordinator(jobs: tuple[tuple[str, tuple[str, ...]], ...], index: int, protocol: str | None) -> Any:
    _check_free(dict(jobs)["chief"][index])
    await_servers({job: tasks for job, tasks in jobs if job in _SERVING}, _CONNECT_SECONDS, "TF_CONFIG")
    config = ModernConfig(strategy=Strategy("ParameterServerStrategy"), cluster=Cluster(dict(jobs), "chief", index, protocol))
    with kept_to_loopback(int(dict(jobs)["chief"][index].rpartition(":")[2])):
        strategy = make_strategy(config)
    if strategy.num_replicas_in_sync > 1:
        raise NotSupportedError(
            "A worker has several GPUs, of which Estimator uses the first.",
            expected="one GPU a worker, or none",
            received=strategy.num_replicas_in_sync,
            fix="Set CUDA_VISIBLE_DEVICES for each worker, and start a worker for each GPU.",
        )
    strategy.extended._allow_run_without_coordinator = True  # the chief trains, too
    return tf.distribute.coordinator.ClusterCoordinator(strategy)


def _check_free(address: str) -> None:
    """Said before anything is connected."""
    try:
        socket.create_server(("", int(address.rpartition(":")[2]))).close()
    except OSError as error:
        raise BridgeError(
            "The chief cannot listen at its port, as TensorFlow does on the modern path when it connects to the cluster.",
            expected="a script that leaves the servers to train_and_evaluate, and a port of its own",
            received=f"{address}: {error.strerror}",
            fix="Drop tf.train.Server from the script, or use --path legacy.",
        ) from error


def _reporter(meeting: Rendezvous, task: TaskId) -> Callable[[int, Batch], None]:
    """Tells the launcher the global step, once a second."""
    reported_at = -_REPORT_SECONDS

    def report(step: int, batch: Batch) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= _REPORT_SECONDS:
            reported_at = time.monotonic()
            meeting.report_step(task, step, training=False)  # how long that lasts is the chief's to say

    return report
