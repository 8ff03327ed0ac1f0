"""The line of a script that made an operation, for refusals."""

from __future__ import annotations

from typing import Any, TypeVar

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.user_code import is_users

Refusal = TypeVar("Refusal", bound=BridgeError)


def located(error: Refusal, op: Any) -> Refusal:
    """The same error, which now names the innermost line of the user's code on the way to ``op``.

    Args:
        error: a refusal.
        op: the operation of the graph that it is about.

    Returns:
        ``error``; as it was where the operation comes from no line of the user's.
    """
    lines = [f"{frame.filename}:{frame.lineno}" for frame in op.traceback if is_users(frame.filename)]
    error.asked_by = lines[-1] if lines else None
    return error
