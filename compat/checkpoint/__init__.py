"""Checkpoints of both kinds, name-based and object-based, read and rewritten at the level of their index."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.index import Index, read_index

__all__ = ["Index", "read_index"]
