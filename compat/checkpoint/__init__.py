"""Checkpoints of both kinds, name-based and object-based, read and rewritten at the level of their index."""

from __future__ import annotations

import importlib
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
    from estimator_bridge.compat.checkpoint.request import ConversionRequest
    from estimator_bridge.compat.checkpoint.writing.report import ConversionReport

__all__ = [
    "CheckpointError",
    "ConversionReport",
    "ConversionRequest",
    "CorruptError",
    "Index",
    "NamingError",
    "NotFoundError",
    "TargetError",
    "UnsupportedError",
    "convert",
    "read_index",
]


# Importing them takes more than reading an index needs.
_LATE = {
    "ConversionReport": "writing.report",
    "ConversionRequest": "request",
    "convert": "conversion.convert",
}


def __getattr__(name: str) -> Any:
    """Imports a name of the conversion on first use."""
    if name in _LATE:
        return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
    raise AttributeError(name)
