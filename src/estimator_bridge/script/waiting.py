"""Says what a session waits for, if one call of it does not return for a minute."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterator
from typing import Any

from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.user_code import is_users

SECONDS = 60
_POLLS = 12  # in that time
_IDLE = 0.05  # largest share of one core that a waiting process uses
_BLOCKING = ("tensorflow/python/client/session.py", "tensorflow/python/eager/execute.py")
_SHOWN = 3


@contextlib.contextmanager
def say_what_is_awaited(seconds: float = SECONDS) -> Iterator[None]:
    """While active, logs once what a call of a session or function waits for, if it takes long.

    Another thread looks at this thread's stack every few seconds; steps do not become slower.

    Args:
        seconds: Seconds after which a call is reported.
    """
    ended = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(threading.get_ident(), seconds, ended), daemon=True, name="estimator-bridge waits"
    )
    watch.start()
    try:
        yield
    finally:
        ended.set()


def _watch(thread: int, seconds: float, ended: threading.Event) -> None:
    seen: types.FrameType | None = None
    since = used = 0.0
    reported = False
    while not ended.wait(seconds / _POLLS):
        frame = sys._current_frames().get(thread)
        if frame is None or not frame.f_code.co_filename.replace("\\", "/").endswith(_BLOCKING):
            frame = None
        if frame is None or frame is not seen:
            seen, since, used, reported = frame, time.monotonic(), time.process_time(), False
        elif not reported and time.monotonic() - since >= seconds:
            is_idle = time.process_time() - used < _IDLE * (time.monotonic() - since)
            with contextlib.suppress(Exception):  # an explanation must not end anything
                _report(frame, is_idle, seconds)
            reported = True


def _report(frame: types.FrameType, is_idle: bool, seconds: float) -> None:
    stack = traceback.extract_stack(frame)
    where = next((f"{one.filename}:{one.lineno}" for one in reversed(stack) if is_users(one.filename)), "the script")
    state = "It waits for" if is_idle else "It is computing, and needs"
    awaited = "; ".join(_awaited(frame)[:_SHOWN]) or "an operation that does not end"
    running = "".join(f" {place} runs at the moment." for place in _user_threads(frame)[:_SHOWN])
    warn_once(f"a call of TensorFlow has not returned for {seconds:g} s. {state} {awaited}.{running}", where)


def _awaited(frame: types.FrameType) -> list[str]:
    """Returns what a session's fetches can wait for; empty for a function, whose inputs are not in its stack."""
    current: types.FrameType | None = frame
    while current is not None and current.f_code.co_name != "_do_run":  # of BaseSession
        current = current.f_back
    if current is None:
        return ["the next batch of its input"] if frame.f_code.co_filename.endswith("execute.py") else []
    known = current.f_locals
    operations = _upstream([*(tensor.op for tensor in known["fetch_list"]), *known["target_list"]])
    return [text for operation in operations if (text := _wait_of(operation, known["self"]))]


def _upstream(operations: list[Any]) -> list[Any]:
    """Returns the operations that must run for others, nearest first."""
    pending, found = list(operations), dict[Any, None]()
    while pending:
        operation = pending.pop(0)
        if operation not in found:
            found[operation] = None
            pending += [one.op for one in operation.inputs] + list(operation.control_inputs)
    return list(found)


def _wait_of(operation: Any, session: Any) -> str:
    if operation.type.startswith("IteratorGetNext"):
        return f"the next batch of a dataset ({operation.name})"
    if operation.type.startswith(("QueueDequeue", "ReaderRead")):
        queue = operation.inputs[-1 if operation.type.startswith("ReaderRead") else 0].op
        return f"the queue {queue.name} ({_filling(queue, session)})"
    if operation.type in {"BarrierTakeMany", "MapUnstage", "StackPopV2", "Unstage", "_Recv"}:
        return f"{operation.type} ({operation.name})"
    return ""


def _filling(queue: Any, session: Any) -> str:
    runners = [one for one in session.graph.get_collection("queue_runners") if one.queue.queue_ref.op is queue]
    if not runners:
        return "no queue runner fills it"
    if not any(one._runs_per_session.get(session) for one in runners):  # it has no public state
        return "its queue runner was not started: call tf.train.start_queue_runners"
    return "its queue runner runs"


def _user_threads(frame: types.FrameType) -> list[str]:
    """Returns the lines of the user's code that other threads execute, e.g. a generator of a dataset."""
    found = []
    for other in sys._current_frames().values():
        if other is not frame:
            lines = [one for one in traceback.extract_stack(other) if is_users(one.filename)]
            found += [f"{one.filename}:{one.lineno} ({one.name})" for one in lines[-1:]]
    return found
