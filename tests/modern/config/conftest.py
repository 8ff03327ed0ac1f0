"""Fixtures: programs that need a TensorFlow of their own."""

from __future__ import annotations

from tests.forked_programs import run, together

__all__ = ["run", "together"]
