"""Multiplies a variable by a number, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.writing.draft import Draft


def scale(draft: Draft, name: str, factor: float) -> Tensor:
    """Multiplies a variable by a number in the variable's own precision.

    Args:
        draft: Draft that has the variable; later changes of the draft have no effect.
        name: Name of the variable.
        factor: Number to multiply by.

    Returns:
        The tensor.

    Raises:
        UnsupportedError: The dtype is neither float32 nor float64.
    """
    stored = draft.entries[name]
    kind = dtypes.dtype(stored.dtype)
    if kind.name not in {"float32", "float64"}:
        raise UnsupportedError(f"{name!r} cannot be scaled.", expected="float32 or float64", received=kind.name)
    chunks = draft.reader(name)

    def multiplied() -> Iterator[bytes]:
        import numpy as np

        number = np.dtype(kind.numpy).type(factor)
        buffer: Any = np.empty(0, np.uint8)
        for data in chunks():
            if len(data) > len(buffer):
                buffer = np.empty(len(data), np.uint8)
            product = buffer[: len(data)]  # to allocate memory for each chunk takes longer than to multiply
            np.multiply(np.frombuffer(data, kind.numpy), number, out=product.view(kind.numpy))
            yield product

    return Tensor(stored.dtype, stored.shape, dtypes.num_bytes(stored.dtype, stored.shape), multiplied)
