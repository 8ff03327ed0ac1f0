"""The state of TensorFlow's servers, asked for over gRPC with a deadline.

A server answers an empty request to ``/tensorflow.WorkerService/GetStatus`` with its devices (worker.proto and
device_attributes.proto of TensorFlow). TensorFlow's generated classes are not used: importing one imports all of TensorFlow.
"""

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
_DEVICES, _NAME, _INCARNATION = tag(1, BYTES), tag(1, BYTES), tag(6, FIXED64)  # fields of the answer, and of each device in it
_DEVICE = re.compile(r"/job:(?P<job>[^/]+)/replica:\d+/task:(?P<task>\d+)/device:(?P<device>.+)")
_DIRECT = (("grpc.enable_http_proxy", 0),)  # a proxy for the web does not lead to the cluster


class Health(enum.Enum):
    """The state of a server, by its answer."""

    READY = "ready"
    MISSING = "missing"
    """No TensorFlow server answered within the deadline."""
    MISTAKEN = "another task"
    """The server of another job or index answered."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of one server.

    Attributes:
        task: Task that was asked.
        address: Address that was asked.
        health: State of the server.
        devices: Names of its devices, e.g. ``CPU:0``.
        incarnation: Number that the server drew when it started; a different one means that it was restarted.
        milliseconds: Time of a round trip over the open connection.
        reason: Reason why the server is not ready.

    Example:
        >>> print(Answer(TaskId("ps", 0), "127.0.0.1:1", Health.MISSING, reason="no connection"))
        ps 0 at 127.0.0.1:1: missing, no connection
    """

    task: TaskId
    address: str
    health: Health
    devices: tuple[str, ...] = ()
    incarnation: int | None = None
    milliseconds: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        start = f"{self.task} at {self.address}: {self.health.value}, "
        if self.health is not Health.READY:
            return start + self.reason
        return f"{start}{', '.join(self.devices)}, incarnation {self.incarnation:016x}, {self.milliseconds:.1f} ms"


def ask(servers: Mapping[TaskId, str], timeout: float) -> list[Answer]:
    """Asks every server at the same time.

    Args:
        servers: Address (``host:port``) of each task.
        timeout: Seconds within which each server has to answer.

    Returns:
        An answer for each server, in their order.

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
            get_status(b"", timeout=timeout)  # opens the connection, which does not count as part of a round trip
            started = time.monotonic()
            data = get_status(b"", timeout=max(deadline - started, 0.001))
            milliseconds = (time.monotonic() - started) * 1000
            return _judge(task, address, milliseconds, list(_devices(data)))
        except grpc.RpcError as error:
            return Answer(task, address, Health.MISSING, reason=_reason(error, timeout))
        except (BridgeError, UnicodeDecodeError, AttributeError):  # bytes that are no devices
            return Answer(task, address, Health.MISSING, reason="another kind of server answered")


def _reason(error: Any, timeout: float) -> str:
    texts = {"UNAVAILABLE": "no connection", "DEADLINE_EXCEEDED": f"no answer within {timeout:g} s"}
    return texts.get(error.code().name, f"another kind of server answered ({error.code().name})")


def _devices(data: bytes) -> Iterator[tuple[str, int]]:
    """Yields the full name and the incarnation of each device."""
    for key, device in fields(data):
        if key == _DEVICES:
            parts: dict[int, Any] = dict(fields(device))  # type: ignore[arg-type]
            yield parts[_NAME].decode(), parts.get(_INCARNATION, 0)


def _judge(task: TaskId, address: str, milliseconds: float, devices: list[tuple[str, int]]) -> Answer:
    found = [match for name, _ in devices if (match := _DEVICE.fullmatch(name))]
    if not found:
        return Answer(task, address, Health.MISSING, milliseconds=milliseconds, reason="the answer names no device")
    answered_as = TaskId(found[0]["job"], int(found[0]["task"]))
    health, reason = (Health.READY, "") if answered_as == task else (Health.MISTAKEN, f"{answered_as} answers here")
    return Answer(task, address, health, tuple(match["device"] for match in found), devices[0][1], milliseconds, reason)
