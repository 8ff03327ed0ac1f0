"""Steps of a conversion: each is a row of the report with the settings that it amounts to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.contradictions import ContradictionError
from estimator_bridge.compat.config.decisions import unread_reason
from estimator_bridge.compat.config.legacy import JobFacts
from estimator_bridge.compat.config.model import LISTS
from estimator_bridge.compat.config.report import Row
from estimator_bridge.compat.config.tables import session_rule
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity
from estimator_bridge.errors import BridgeError

_GROWTH = "gpu_options.allow_growth"
_FRACTION = "gpu_options.per_process_gpu_memory_fraction"

Step = tuple[Row, Mapping[str, Any]]


def convert_value(rule: ConversionRule, name: str, value: Any, *, is_default: bool = False) -> Step:
    """Converts one legacy value by its rule.

    Args:
        rule: Row of a table.
        name: Name of the value in the report.
        value: Legacy value.
        is_default: True for a value that applies because nothing else was given.

    Returns:
        The report's row and the settings.
    """
    done = rule.convert(value) if rule.convert is not None else Conversion({})
    fidelity = Fidelity.worst([rule.fidelity, done.fidelity or Fidelity.EXACT])
    return Row(name, value, fidelity, rule.target, done.note or rule.note, is_default), done.settings


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


def note_unread(step: Step, strategy: str | None) -> Step:
    """Adds to a row which of its settings the strategy does not read; a cluster of one process needs no remark.

    Args:
        step: Row and settings.
        strategy: Class of the strategy; None for one device.

    Returns:
        The same settings, and a row that is approximate at best if the strategy does not read one of them.
    """
    row, settings = step
    reasons = {reason for name in settings if not name.startswith("cluster.") and (reason := unread_reason(name, strategy))}
    if not reasons:
        return step
    fidelity = Fidelity.worst([row.fidelity, Fidelity.APPROXIMATE])
    note = f"{row.note} No effect here: {', '.join(sorted(reasons))}.".strip()
    return dataclasses.replace(row, fidelity=fidelity, note=note), settings


def merge_steps(steps: Iterable[Step]) -> dict[str, Any]:
    """Collects the settings of several steps.

    Args:
        steps: Rows and settings; lists of callbacks and exporters are joined, a default gives way to a value.

    Returns:
        Settings by name.

    Raises:
        ContradictionError: Two rows give one setting different values.
    """
    merged: dict[str, Any] = {}
    sources: dict[str, Row] = {}
    for row, settings in steps:
        for name, value in settings.items():
            if name in LISTS:
                merged[name] = (*merged.get(name, ()), *value)
            elif name not in merged or merged[name] == value:
                merged[name], sources[name] = value, row
            elif not row.default:
                first = sources[name]
                why = f"{first.value!r} and {row.value!r} are both to be {name}"
                fix = "Drop one of the two, or give them the same value."
                raise ContradictionError((first.name, row.name), why, fix)
    return merged
