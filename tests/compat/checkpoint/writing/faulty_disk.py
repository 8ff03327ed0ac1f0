"""A disk that is watched, or on which the n-th operation fails."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from estimator_bridge.compat.checkpoint.writing.staging import Disk

OPERATIONS = [name for name in vars(Disk) if not name.startswith("_")]


class WatchedDisk(Disk):
    """Calls a function with the name of each operation before it is carried out.

    Attributes:
        before: Function that is called.
    """

    def __init__(self, before: Callable[[str], None]) -> None:
        self.before = before

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in OPERATIONS:
            return method

        def call(*args: Any) -> Any:
            self.before(name)
            return method(*args)

        return call


class Faults:
    """Lets the n-th operation fail, and all that follow if the disk stays broken.

    Args:
        fail_at: Number of the operation that fails; None for none.
        number: Number of the error.
        lasting: Whether the disk stays broken, so that not even cleaning up works.
    """

    def __init__(self, fail_at: int | None = None, number: int = errno.EIO, lasting: bool = False) -> None:
        self.operations: list[str] = []
        self._fail_at, self._number, self._lasting = fail_at, number, lasting
        self.disk = WatchedDisk(self._before)

    def _before(self, name: str) -> None:
        self.operations.append(name)
        at = len(self.operations) - 1
        if self._fail_at is not None and (at == self._fail_at or (self._lasting and at > self._fail_at)):
            raise OSError(self._number, "injected", name)
