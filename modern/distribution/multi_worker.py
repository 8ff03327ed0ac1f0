"""MultiWorkerMirroredStrategy of this process: made once, and kept to this machine where the launcher says so."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended

from estimator_bridge.cluster.loopback import keep_to_loopback, keep_to_loopback_or_warn
from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.compat.config.model import Cluster, ModernConfig, Strategy
from estimator_bridge.compat.config.strategy_objects import settings_of_strategy
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.make_strategy import make_strategy

_JOBS = {"master": "chief", "chief": "chief", "worker": "worker"}
"""Jobs that train; a master is a chief under the name that it had before TensorFlow 1.4."""
_OPTIONS = ("communication", "bytes_per_pack", "timeout_seconds")
_LOOK_SECONDS = 0.01

Jobs = tuple[tuple[str, tuple[str, ...]], ...]


def number_of_workers(strategy: Any) -> int:
    """How many processes train in step under a strategy."""
    return int(strategy.extended._num_workers) if isinstance(strategy.extended, CollectiveAllReduceExtended) else 1


def multi_worker(config: Any) -> Any:
    """The strategy over all workers of a RunConfig's cluster; waits until they are there.

    Args:
        config: a RunConfig that knows its task. ``train_distribute`` says how workers communicate; without it TensorFlow chooses.

    Returns:
        A ``tf.distribute.MultiWorkerMirroredStrategy``, the same at each call: a process connects once.

    Raises:
        BridgeError: where the devices are in use already.
    """
    asked = config.train_distribute
    extended = getattr(asked, "extended", None)
    if getattr(extended, "_std_server_started", False):  # a script that runs eagerly has connected already
        return asked
    said = settings_of_strategy(asked) if asked is not None else {}
    jobs = tuple((_JOBS[job], tuple(tasks)) for job, tasks in sorted(config.cluster_spec.as_dict().items()) if job in _JOBS)
    return _connected(tuple(said.get(f"strategy.{name}") for name in _OPTIONS), jobs, _JOBS[config.task_type], config.task_id)


@functools.cache
def _connected(options: tuple[Any, ...], jobs: Jobs, job: str, index: int) -> Any:
    own = Strategy("MultiWorkerMirroredStrategy", **dict(zip(_OPTIONS, options, strict=True)))
    port = int(dict(jobs)[job][index].rpartition(":")[2])
    with kept_to_loopback(port):
        try:
            return make_strategy(ModernConfig(strategy=own, cluster=Cluster(dict(jobs), job, index)))
        except RuntimeError as error:
            raise BridgeError(
                "The workers cannot connect, since this process uses TensorFlow's devices already.",
                expected="nothing that runs eagerly, and no MirroredStrategy() without devices, before the Estimator trains",
                received=str(error),
                fix="Use MultiWorkerMirroredStrategy, or name the devices: MirroredStrategy(['/cpu:0']).",
            ) from error


@contextlib.contextmanager
def kept_to_loopback(port: int) -> Iterator[None]:
    """Where the launcher says so, keeps the server that is started inside to this machine: it listens on every interface at once."""
    meeting = Rendezvous.of_this_process()
    if meeting is None or not meeting.has_flag(Flag.LOOPBACK):
        yield
        return
    over = threading.Event()
    kept = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_SECONDS):
            if keep_to_loopback(port):
                kept.set()
                return

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()
    if not kept.is_set():
        keep_to_loopback_or_warn(port)
