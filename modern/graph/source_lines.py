"""The line of a script that made an operation, for error messages."""

from __future__ import annotations

from typing import Any, TypeVar

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.user_code import is_users

Refusal = TypeVar("Refusal", bound=BridgeError)


def located(error: Refusal, op: Any) -> Refusal:
    """Adds to an error the innermost line of the user's code that led to ``op``.

    Args:
        error: Error about an operation.
        op: Operation of a graph.

    Returns:
        ``error``, unchanged if no line of the user's made the operation.
    """
    lines = [f"{frame.filename}:{frame.lineno}" for frame in op.traceback if is_users(frame.filename)]
    error.asked_by = lines[-1] if lines else None
    return error
