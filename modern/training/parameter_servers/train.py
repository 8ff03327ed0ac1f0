"""Estimator.train in a cluster with parameter servers: the chief leads, and the workers serve it."""

import contextlib
import dataclasses
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.audit_records import AuditPlan
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.distribution.input_sharding import with_context
from estimator_bridge.modern.distribution.parameter_servers import coordinator, feed
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.distribution.worker_feed import end
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.fragments import Fragment, upstream
from estimator_bridge.modern.graph.input_pipeline import read_ahead
from estimator_bridge.modern.graph.model_graph import v1
from estimator_bridge.modern.training import train as training
from estimator_bridge.modern.training.parameter_servers.shared_transplant import SharedTransplant
from estimator_bridge.modern.training.parameter_servers.step_pool import SERVER, StepPool, is_lost
from estimator_bridge.modern.training.parameter_servers.synchronous_steps import SynchronousSteps
from estimator_bridge.modern.training.step_loop import Loop
from estimator_bridge.runtime.estimator_calls import TrainCall

logging = v1.logging
_POLL_SECONDS = 5.0
_FAREWELL_SECONDS = 10.0
_OURS = {error.__name__: error for error in (BridgeError, NotSupportedError)}
_REFUSAL = re.compile(rf"estimator_bridge\.errors\.({'|'.join(_OURS)}): (.+?)\n\n", re.DOTALL)
"""An error of a ``Feed`` at the end of the Python traceback that TensorFlow's error holds."""


class ParameterServers(Distribution):
    """Variables on parameter servers; each trainer is one replica on its own."""

    workers = 1
    worker = 0
    together = True
    replicas = 1

    def describe(self, batch_size: int | None = None) -> str:
        """Returns one sentence for the log."""
        workers, servers = self.strategy.extended._num_workers, self.strategy.extended._num_ps
        return (
            f"ParameterServerStrategy: the chief and {workers} workers train, each on the batches of its own input_fn and without "
            f"waiting for the others; variables are on {servers} parameter servers."
        )


def train(estimator: Any, call: TrainCall, distribution: Distribution, **options: Any) -> None:
    """Trains over parameter servers as ``training.train`` does on other strategies.

    Args:
        estimator: Estimator with the model_fn, config and model_dir.
        call: Arguments of ``Estimator.train``.
        distribution: Distribution of the chief; a worker has none.
        options: Keyword arguments of ``training.train``: callbacks and audited.

    Raises:
        NotSupportedError: The job cannot be trained in this way, or this process has trained before; nothing has been trained. Or the
            input of a worker differs from the chief's.
        BridgeError: A parameter server is lost.
    """
    config = estimator.config
    own = feed(config)
    own.check_unused()
    input_fn = with_context(call.input_fn, config.num_worker_replicas, config.global_id_in_cluster, config.num_worker_replicas)
    call = dataclasses.replace(call, input_fn=input_fn)
    if config.task_type == "worker":
        _serve(estimator, call)
        return
    auditing = AuditPlan.read(Rendezvous.of_this_process())

    with _leader(config) as leader, failures_named():

        def pool(transplant: Any, batches: Any, one_by_one: bool) -> Loop:
            own.publish(batches)
            if transplant.model.synchronous:
                _refuse_audit(auditing)
                return SynchronousSteps(transplant, leader)
            return StepPool.of_cluster(transplant, leader, auditing, one_by_one)

        shared = ParameterServers(distribution.strategy)
        training.train(estimator, call, shared, make_transplant=SharedTransplant, make_loop=pool, **options)
        _say_farewell([worker.device_name for worker in leader._cluster.workers])


def _refuse_audit(auditing: AuditPlan | None) -> None:
    if auditing is not None:
        raise NotSupportedError(
            "The audit does not cover SyncReplicasOptimizer on the modern path.",
            expected="launch without --audit",
            fix="Leave out --audit, or use --path legacy, where it covers synchronous replicas.",
        )


@contextlib.contextmanager
def _leader(config: Any) -> Iterator[Any]:
    """Yields a coordinator and stops it in a thread, since its own end may wait without limit for a worker that comes back."""
    leader = coordinator(config)
    stopping = threading.Thread(target=leader._cluster.stop, daemon=True)
    leader._cluster.stop = lambda: None  # its destructor calls this
    try:
        yield leader
    finally:
        stopping.start()
        stopping.join(_FAREWELL_SECONDS)


def _serve(estimator: Any, call: TrainCall) -> None:
    """Serves the batches of this worker's own input_fn to the steps that the chief sends, until training ends."""
    own = feed(estimator.config)
    pipeline = model_graph.input_pipeline(estimator, call.input_fn, model_graph.TRAIN)
    filling = list(pipeline.leaves[0].graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS))
    Fragment.cut(upstream(filling), []).function([])([], [])
    own.publish(iter(read_ahead(pipeline.dataset())))
    if call.hooks:
        names = ", ".join(type(hook).__name__ for hook in call.hooks)
        logging.warn(
            "Session hooks run only on the chief, and see only its steps. On TF1 they ran on this worker, too: %s.", names
        )
    logging.info("Worker %d trains with its own input on parameter servers, led by the chief.", estimator.config.task_id)
    while not (own.ended.wait(_POLL_SECONDS) or _has_trained(estimator.model_dir, call.max_steps)):
        pass


def _has_trained(model_dir: str, max_steps: int | None) -> bool:
    """Returns True if the chief ended while this worker was away."""
    with contextlib.suppress(tf.errors.OpError):  # an older checkpoint may be deleted meanwhile
        return max_steps is not None and training.saved_step(model_dir) >= max_steps
    return False


def _say_farewell(devices: Sequence[str]) -> None:
    """Tells the workers that training has ended; workers that do not answer are skipped."""

    def say(device: str) -> None:
        with contextlib.suppress(tf.errors.OpError):
            end(f"{device}/device:CPU:0")

    threads = [threading.Thread(target=say, args=[device], daemon=True) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_FAREWELL_SECONDS)


@contextlib.contextmanager
def failures_named() -> Iterator[None]:
    """While active, replaces errors of TensorFlow by those of a task's ``Feed``, or by one that names the lost server.

    Raises:
        BridgeError: A parameter server is lost, or a task's ``Feed`` raised this.
        NotSupportedError: A task's ``Feed`` raised this.
    """
    try:
        yield
    except tf.errors.OpError as error:
        words, server = str(error), SERVER.search(str(error))
        if refusal := _REFUSAL.search(words):
            raise _OURS[refusal[1]](refusal[2]) from error
        if not is_lost(error) or server is None:
            raise
        raise BridgeError(
            f"Parameter server {server[1]} no longer answers, and its variables are lost.",
            expected="parameter servers that run as long as the training",
            received=next((line.strip() for line in words.splitlines() if server[0] in line), None),
            fix="Start it and the chief again. Training goes on from the last checkpoint, and workers can keep running.",
        ) from error
