"""The MultiWorkerMirroredStrategy of this process, which connects once, and only to this machine if the launcher says so."""

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

from estimator_bridge.cluster.loopback import keep_to_loopback, keep_to_loopback_or_warn
from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.compat.config.live_objects import settings_of_strategy
from estimator_bridge.compat.config.model import Cluster, ModernConfig, Strategy
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.make_strategy import make_strategy

_JOBS = {"master": "chief", "chief": "chief", "worker": "worker"}
"""Jobs that train; a chief was called master before TensorFlow 1.4."""
_OPTIONS = ("communication", "bytes_per_pack", "timeout_seconds")
_POLL_SECONDS = 0.01

Jobs = tuple[tuple[str, tuple[str, ...]], ...]


def multi_worker(config: Any, gpus: int | None = None) -> Any:
    """Connects to all workers of a RunConfig's cluster; waits until they answer.

    Args:
        config: RunConfig with its task. ``train_distribute`` chooses how workers communicate; without it TensorFlow chooses.
        gpus: Number of GPUs of each worker that have a replica; None for all.

    Returns:
        A ``tf.distribute.MultiWorkerMirroredStrategy``, the same at each call, since a process connects once.

    Raises:
        BridgeError: The devices are in use already.
    """
    given = config.train_distribute
    extended = getattr(given, "extended", None)
    if getattr(extended, "_std_server_started", False):  # a script that runs eagerly has connected already
        return given
    settings = settings_of_strategy(given) if given is not None else {}
    jobs = tuple((_JOBS[job], tuple(tasks)) for job, tasks in sorted(config.cluster_spec.as_dict().items()) if job in _JOBS)
    options = tuple(settings.get(f"strategy.{name}") for name in _OPTIONS)
    return _multi_worker(options, jobs, _JOBS[config.task_type], config.task_id, gpus)


@functools.cache
def _multi_worker(options: tuple[Any, ...], jobs: Jobs, job: str, index: int, gpus: int | None) -> Any:
    own = Strategy("MultiWorkerMirroredStrategy", **dict(zip(_OPTIONS, options, strict=True)))
    try:
        return connected(own, jobs, job, index, gpus=gpus)
    except RuntimeError as error:
        raise BridgeError(
            "The workers cannot connect, since this process uses TensorFlow's devices already.",
            expected="no eager operation and no MirroredStrategy() without devices before the Estimator trains",
            received=str(error),
            fix="Use MultiWorkerMirroredStrategy, or name the devices: MirroredStrategy(['/cpu:0']).",
        ) from error


def connected(
    strategy: Strategy, jobs: Jobs, job: str, index: int, protocol: str | None = None, gpus: int | None = None
) -> Any:
    """Makes a strategy that connects this process, a task of a cluster, to the other tasks; see ``multi_worker`` for ``gpus``."""
    cluster = Cluster(dict(jobs), job, index, protocol)
    with _kept_to_loopback(int(cluster.jobs[job][index].rpartition(":")[2])):
        return make_strategy(ModernConfig(strategy=strategy, cluster=cluster), gpus)


@contextlib.contextmanager
def _kept_to_loopback(port: int) -> Iterator[None]:
    """While active, keeps a server that starts at ``port`` to this machine, if the launcher says so.

    TensorFlow's servers listen on every network interface as soon as they start, so a thread watches for that moment.
    """
    rendezvous = Rendezvous.of_this_process()
    if rendezvous is None or not rendezvous.has_flag(Flag.LOOPBACK):
        yield
        return
    over = threading.Event()
    kept = threading.Event()

    def watch() -> None:
        while not over.wait(_POLL_SECONDS):
            if keep_to_loopback(port):
                kept.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    if not kept.is_set():
        keep_to_loopback_or_warn(port)
