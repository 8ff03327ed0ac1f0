"""Fields of a ConfigProto as modern settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.legacy import JobFacts
from estimator_bridge.compat.config.report import Row
from estimator_bridge.compat.config.steps import Step, convert_value
from estimator_bridge.compat.config.tables import session_rule
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError

_GROWTH = "gpu_options.allow_growth"
_FRACTION = "gpu_options.per_process_gpu_memory_fraction"


def session_settings(fields: Mapping[str, Any], facts: JobFacts | None = None) -> Iterator[Step]:
    """Converts the fields of a ConfigProto, one by one.

    Args:
        fields: Dotted path -> value, as ``proto.fields.set_fields`` gives them.
        facts: Facts about the job; the memory of a GPU turns a fraction of it into a limit.

    Yields:
        A row and its settings for each field, in the order of ``fields``.

    Raises:
        BridgeError: A field has no row in the tables.

    Example:
        >>> [(row, settings)] = session_settings({"gpu_options.allow_growth": True})
        >>> row.fidelity.value, settings
        ('exact', {'devices.memory_growth': True})
    """
    known = facts or JobFacts()
    for path, value in fields.items():
        rule = session_rule(path)
        name = f"session_config.{path}"
        if rule is None:
            raise BridgeError(f"{name} has no row in the tables.", expected="a field of TensorFlow 2.15 to 2.21", received=path)
        if path == _FRACTION and known.gpu_memory_mb and 0 < value < float("inf"):
            limits, note = _limits(value, known, fields)
            yield Row(name, value, Fidelity.APPROXIMATE, rule.target, note), {"devices.gpu_memory_limits": limits}
        elif path == _GROWTH and known.gpu_memory_mb and _FRACTION in fields:
            note = "no effect with a limit: TensorFlow does not combine growth and limits, and takes the memory at the start"
            yield Row(name, value, Fidelity.APPROXIMATE, rule.target, note), {}
        else:
            yield convert_value(rule, name, value)


def _limits(fraction: float, facts: JobFacts, fields: Mapping[str, Any]) -> tuple[tuple[tuple[float, ...], ...], str]:
    megabytes = facts.gpu_memory_mb or 0.0
    visible = fields.get("gpu_options.visible_device_list")
    count = len(visible.split(",")) if visible else facts.gpus or 1
    note = f"{fraction:g} of {megabytes:g} MB, of {count} GPU{'' if count == 1 else 's'}; each visible GPU needs a limit"
    return ((float(round(fraction * megabytes)),),) * count, note
