"""Partitioners in the text of a script: those whose arguments are literals."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from estimator_bridge.compat.config.model import ConfigPart
from estimator_bridge.compat.source.reading import Source

_logger = logging.getLogger(__name__)
_PARAMETERS: Mapping[str, Sequence[str]] = {
    "fixed_size_partitioner": ("num_shards", "axis"),
    "min_max_variable_partitioner": ("max_partitions", "axis", "min_slice_size", "bytes_per_string_element"),
    "variable_axis_size_partitioner": ("max_shard_bytes", "axis", "bytes_per_string_element", "max_shards"),
}
"""Partitioners of TensorFlow 1, with their parameters in order."""


def find_partitioner(sources: Iterable[Source]) -> ConfigPart | None:
    """Returns the partitioner that a script makes, and warns about what its text does not tell.

    Args:
        sources: Script and its own modules.

    Returns:
        The partitioner; None if there is none, if it has other arguments than literals, or if there are several different ones.
    """
    calls = [(name, call, source.place(call.lineno)) for source in sources for name, call in _calls(source.tree)]
    places = ", ".join(place for *_, place in calls)
    parts = [_part(name, call) for name, call, _ in calls]
    if not parts:
        return None
    first = parts[0]
    if first is None or any(part != first for part in parts):
        _logger.warning(
            "%s: the partitioner is not read, since a configuration has one, with literals as arguments. "
            "Write a [[place]] with shards for each group of variables that is cut.",
            places,
        )
        return None
    _logger.warning(
        "%s: tf.%s is read as the partitioner of all variables. If it is for some of them, correct match in [[place]].",
        places,
        first.kind,
    )
    return first


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _PARAMETERS:
                yield name, node


def _part(name: str, call: ast.Call) -> ConfigPart | None:
    """Returns a partitioner; None if not all of its arguments are literals of parameters that it has."""
    parameters = _PARAMETERS[name]
    given = [*zip(parameters, call.args, strict=False), *((one.arg, one.value) for one in call.keywords)]
    if len(call.args) > len(parameters) or not all(key in parameters for key, _ in given):  # the key of **kwargs is None
        return None
    try:
        return ConfigPart(name, {str(key): ast.literal_eval(value) for key, value in given})
    except ValueError:
        return None
