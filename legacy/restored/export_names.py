"""The ``estimator`` namespace of ``tensorflow.python.util.tf_export``.

What was removed: the ``estimator`` API name, its attribute tables, its reserved namespace and its part in the look-ups
``get_v1_names``, ``get_v2_names``, ``get_v1_constants`` and ``get_v2_constants``, with TensorFlow 2.16 (March 2024).

Needed by: ``estimator_export``, the decorator of every public class and function of tensorflow-estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.python.util import tf_export

_NAME = "estimator"
_Lookup = Callable[[Any], list[Any]]


def restore() -> None:
    """Registers the ``estimator`` namespace with tf_export, unless it is registered.

    Example:
        >>> restore()
        >>> from tensorflow.python.util import tf_export
        >>> tf_export.ESTIMATOR_API_NAME
        'estimator'
    """
    if hasattr(tf_export, "ESTIMATOR_API_NAME"):
        return
    attributes = {
        1: tf_export._Attributes("_estimator_api_names_v1", "_estimator_api_constants_v1"),
        2: tf_export._Attributes("_estimator_api_names", "_estimator_api_constants"),
    }
    tf_export.ESTIMATOR_API_NAME = _NAME
    tf_export.API_ATTRS_V1[_NAME] = attributes[1]
    tf_export.API_ATTRS[_NAME] = attributes[2]
    tf_export.SUBPACKAGE_NAMESPACES.append(_NAME)
    for version, names in attributes.items():
        _extend(f"get_v{version}_names", _own(names.names))
        _extend(f"get_v{version}_constants", _inherited(names.constants))


def _extend(lookup: str, also: _Lookup) -> None:
    original: _Lookup = getattr(tf_export, lookup)

    def extended(symbol: Any) -> list[Any]:
        return [*original(symbol), *also(symbol)]

    extended.__name__, extended.__doc__ = lookup, original.__doc__
    setattr(tf_export, lookup, extended)


def _own(attribute: str) -> _Lookup:
    # Only the symbol's own names: a subclass is not exported under its parent's name.
    return lambda symbol: list(getattr(symbol, "__dict__", {}).get(attribute, ()))


def _inherited(attribute: str) -> _Lookup:
    return lambda module: list(getattr(module, attribute, ()))
