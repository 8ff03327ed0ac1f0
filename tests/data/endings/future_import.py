"""Annotates with a name that is not there."""

from __future__ import annotations
x: Undefined = 1
print(x, __annotations__)
