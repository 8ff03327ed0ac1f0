"""Prints which parts can be imported without their package."""

import importlib.util

print([name for name in ("legacy", "modern", "compat") if importlib.util.find_spec(name)])
