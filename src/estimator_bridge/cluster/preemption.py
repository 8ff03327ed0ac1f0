"""Preemption: a scheduler sends SIGTERM to a task, the cluster saves and ends, and a later start goes on from there."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

EXIT_CODE = 128 + signal.SIGTERM


@contextlib.contextmanager
def handle_signals(handler: Callable[[int], object], *numbers: int) -> Iterator[None]:
    """While active, signals call a function and do nothing else. Only the main thread may call this.

    Args:
        handler: Function that takes the number of a signal that has arrived.
        numbers: Numbers of the signals.

    Example:
        >>> import os, signal
        >>> arrived = []
        >>> with handle_signals(arrived.append, signal.SIGTERM):
        ...     os.kill(os.getpid(), signal.SIGTERM)
        >>> arrived == [signal.SIGTERM]
        True
    """
    before = {number: signal.signal(number, lambda arrived, frame: handler(arrived)) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former or signal.SIG_DFL)  # None: a handler in C, which Python cannot put back


class Preemption:
    """A request to end this task.

    Attributes:
        is_requested: True once SIGTERM has arrived.
    """

    is_requested = False


@contextlib.contextmanager
def catch_preemption(active: bool) -> Iterator[Preemption]:
    """While active, SIGTERM does not end the process but is recorded.

    Args:
        active: False changes nothing; nor does a call outside of the main thread, which is the only one that receives signals.

    Example:
        >>> import os, signal
        >>> with catch_preemption(True) as preemption:
        ...     os.kill(os.getpid(), signal.SIGTERM)
        ...     print(preemption.is_requested)
        True
    """
    preemption = Preemption()
    if not active or threading.current_thread() is not threading.main_thread():
        yield preemption
        return

    def record(number: int) -> None:
        preemption.is_requested = True

    with handle_signals(record, signal.SIGTERM):
        yield preemption
