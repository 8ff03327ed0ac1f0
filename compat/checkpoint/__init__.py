"""Checkpoints of both kinds, name-based and object-based, read and rewritten at the level of their index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from estimator_bridge.compat.checkpoint.errors import (
    CheckpointError,
    CorruptError,
    NamingError,
    NotFoundError,
    TargetError,
    UnsupportedError,
)
from estimator_bridge.compat.checkpoint.reading.index import Index, read_index

if TYPE_CHECKING:
    from estimator_bridge.compat.checkpoint.conversion.convert import convert
    from estimator_bridge.compat.checkpoint.writing.report import ConversionReport

__all__ = [
    "CheckpointError",
    "ConversionReport",
    "CorruptError",
    "Index",
    "NamingError",
    "NotFoundError",
    "TargetError",
    "UnsupportedError",
    "convert",
    "read_index",
]


def __getattr__(name: str) -> Any:
    """``convert`` comes with more than reading an index needs."""
    if name == "convert":
        from estimator_bridge.compat.checkpoint.conversion.convert import convert

        return convert
    if name == "ConversionReport":
        from estimator_bridge.compat.checkpoint.writing.report import ConversionReport

        return ConversionReport
    raise AttributeError(name)
