"""Canned Estimators as Keras models: ``modern.canned(estimator)``.

The package is called like the function that it is for, and importing any of its modules binds it to ``modern.canned``: so it is
callable itself, and both spellings hold whatever was imported first.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from estimator_bridge.modern.canned.conversion import canned

        return canned(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
