"""Waits, with a deadline, for the servers of a cluster."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from estimator_bridge.errors import BridgeError

READY_SECONDS = 60  # for the slowest server to start


def await_servers(jobs: Mapping[str, Sequence[str]], seconds: float, where: str) -> None:
    """Waits for the servers that a process is about to connect to. TensorFlow itself would wait without end.

    Args:
        jobs: Addresses of the tasks of each job.
        seconds: Seconds to wait.
        where: Place of the addresses, for the message.

    Raises:
        BridgeError: A task accepted no connection; the message names it.
    """
    import grpc

    tasks = [f"/job:{job}/task:{index} at {task}" for job, addresses in jobs.items() for index, task in enumerate(addresses)]
    channels = [grpc.insecure_channel(task.rpartition(" ")[2]) for task in tasks]
    ready = [grpc.channel_ready_future(channel) for channel in channels]
    deadline = time.monotonic() + seconds
    missing = [task for task, future in zip(tasks, ready, strict=True) if not _is_ready(future, deadline - time.monotonic())]
    for channel in channels:
        channel.close()
    if missing:
        raise BridgeError(
            f"{where}: some tasks do not answer.",
            expected=f"a TensorFlow server at each address within {seconds:g} s",
            received="no answer from " + ", ".join(missing),
            fix=f"Start these tasks, or correct their addresses in {where}.",
        )


def _is_ready(future: Any, seconds: float) -> bool:
    import grpc

    try:
        future.result(timeout=max(seconds, 0))
    except grpc.FutureTimeoutError:
        future.cancel()
        return False
    return True
