"""The ``estimator`` namespace of ``tensorflow.python.util.tf_export``.

What was removed: the ``estimator`` API name, its attribute tables, its reserved namespace and its part in the look-ups
``get_v1_names``, ``get_v2_names``, ``get_v1_constants`` and ``get_v2_constants``, with TensorFlow 2.16 (March 2024).

Needed by: ``estimator_export``, the decorator of every public class and function of tensorflow-estimator.
"""

import functools
from typing import Any

from tensorflow.python.util import tf_export

_NAME = "estimator"


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
    tf_export.ESTIMATOR_API_NAME = _NAME
    tf_export.SUBPACKAGE_NAMESPACES.append(_NAME)
    for version, suffix, attributes in ((1, "_v1", tf_export.API_ATTRS_V1), (2, "", tf_export.API_ATTRS)):
        names, constants = f"_estimator_api_names{suffix}", f"_estimator_api_constants{suffix}"
        attributes[_NAME] = tf_export._Attributes(names, constants)
        _extend(f"get_v{version}_names", names, inherited=False)
        _extend(f"get_v{version}_constants", constants, inherited=True)


def _extend(lookup: str, attribute: str, *, inherited: bool) -> None:
    original = getattr(tf_export, lookup)

    @functools.wraps(original)
    def extended(symbol: Any) -> list[Any]:
        # Only the symbol's own names: a subclass is not exported under its parent's name.
        found = getattr(symbol, attribute, ()) if inherited else getattr(symbol, "__dict__", {}).get(attribute, ())
        return [*original(symbol), *found]

    setattr(tf_export, lookup, extended)
