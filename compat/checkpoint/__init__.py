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
from estimator_bridge.compat.checkpoint.request import ConversionReport, ConversionRequest

if TYPE_CHECKING:
    from estimator_bridge.compat.checkpoint.conversion.convert import convert

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


def __getattr__(name: str) -> Any:
    """Imports the conversion on first use: to read an index takes less."""
    if name == "convert":
        return importlib.import_module(f"{__name__}.conversion.convert").convert
    raise AttributeError(name)
