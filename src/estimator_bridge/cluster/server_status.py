"""Asks TensorFlow's servers how they are, over gRPC and with a deadline.

An empty request to ``/tensorflow.WorkerService/GetStatus`` is answered with the devices of the server (worker.proto and
device_attributes.proto of TensorFlow). TensorFlow's generated classes are not used: importing one imports all of TensorFlow.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.protobuf.wire import BYTES, FIXED64, fields, tag

_GET_STATUS = "/tensorflow.WorkerService/GetStatus"
_DEVICES, _NAME, _INCARNATION = tag(1, BYTES), tag(1, BYTES), tag(6, FIXED64)  # of the answer, and of each device in it
_DEVICE = re.compile(r"/job:(?P<job>[^/]+)/replica:\d+/task:(?P<task>\d+)/device:(?P<device>.+)")
_DIRECT = (("grpc.enable_http_proxy", 0),)  # a proxy for the web does not lead to the cluster


class Health(enum.Enum):
    """What asking a server brought."""

    READY = "ready"
    MISSING = "missing"
    """Nobody answered within the deadline, or nobody that is a TensorFlow server."""
    MISTAKEN = "another task"
    """A server answered that is another job or index."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Of one server.

    Attributes:
        task: who was asked.
        address: where.
        health: in one word.
        devices: such as ``CPU:0``.
        incarnation: a number that the server drew when it started; another one means that it was restarted.
        milliseconds: of a round trip over the open connection.
        reason: why it is not ready.
    """

    task: TaskId
    address: str
    health: Health
    devices: tuple[str, ...] = ()
    incarnation: int | None = None
    milliseconds: float | None = None
    reason: str = ""


def ask(servers: Mapping[TaskId, str], timeout: float) -> list[Answer]:
    """Asks every server at the same time.

    Args:
        servers: task -> ``host:port``.
        timeout: seconds within which each has to answer.

    Returns:
        An answer for each, in their order.

    Example:
        >>> [answer] = ask({TaskId("worker", 0): "127.0.0.1:1"}, timeout=1)
        >>> answer.health
        <Health.MISSING: 'missing'>
    """
    with ThreadPoolExecutor(max_workers=max(len(servers), 1)) as pool:
        return list(pool.map(lambda task: _ask_one(task, servers[task], timeout), servers))


def _ask_one(task: TaskId, address: str, timeout: float) -> Answer:
    import grpc

    with grpc.insecure_channel(address, options=_DIRECT) as channel:
        get_status = channel.unary_unary(_GET_STATUS)
        deadline = time.monotonic() + timeout
        try:
            get_status(b"", timeout=timeout)  # opens the connection, which is no part of a round trip
            started = time.monotonic()
            data = get_status(b"", timeout=max(deadline - started, 0.001))
            milliseconds = (time.monotonic() - started) * 1000
            return _judged(Answer(task, address, Health.READY, milliseconds=milliseconds), list(_devices(data)))
        except grpc.RpcError as error:
            return Answer(task, address, Health.MISSING, reason=_reason(error, timeout))
        except (BridgeError, UnicodeDecodeError, AttributeError):  # as many bytes as you like, that are no devices
            return Answer(task, address, Health.MISSING, reason="what answered is no TensorFlow server")


def _reason(error: Any, timeout: float) -> str:
    told = {"UNAVAILABLE": "no connection", "DEADLINE_EXCEEDED": f"no answer within {timeout:g} s"}
    return told.get(error.code().name, f"what answered is no TensorFlow server ({error.code().name})")


def _devices(data: bytes) -> Iterator[tuple[str, int]]:
    """Full name and incarnation of each device."""
    for key, device in fields(data):
        if key == _DEVICES:
            held: dict[int, Any] = dict(fields(device))  # type: ignore[arg-type]
            yield held[_NAME].decode(), held.get(_INCARNATION, 0)


def _judged(answer: Answer, devices: list[tuple[str, int]]) -> Answer:
    found = [match for name, _ in devices if (match := _DEVICE.fullmatch(name))]
    if not found:
        return dataclasses.replace(answer, health=Health.MISSING, reason="what answered names no device")
    answered_as = TaskId(found[0]["job"], int(found[0]["task"]))
    right = answered_as == answer.task
    return dataclasses.replace(
        answer,
        health=Health.READY if right else Health.MISTAKEN,
        devices=tuple(match["device"] for match in found),
        incarnation=devices[0][1],
        reason="" if right else f"{answered_as} answers here",
    )
