"""Canned Estimators as Keras models: ``modern.canned(estimator)``.

The package has the name of its main function, and importing any of its modules binds the package to ``modern.canned``. The package
is therefore callable, so that ``modern.canned(...)`` works in either order of imports.
"""

import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from estimator_bridge.modern.canned.conversion import canned

        return canned(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
