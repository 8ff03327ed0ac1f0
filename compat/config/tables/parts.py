"""Rows from an object's constructor arguments to a callback or an exporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.model import ConfigPart
from estimator_bridge.compat.config.tables.build import mapped
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity

Names = Mapping[str, str]


def part_rule(
    name: str,
    kind: str,
    target: str,
    names: Names,
    example: Mapping[str, Any],
    *,
    fidelity: Fidelity = Fidelity.APPROXIMATE,
    constants: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    covered: tuple[str, ...] = (),
    inverse: bool = True,
    where: str = "callbacks",
    note: str = "",
) -> ConversionRule:
    """Returns a row that converts an object by renaming its arguments.

    Args:
        name: Legacy class or factory.
        kind: Class of the modern part.
        target: Code that a user would write.
        names: Legacy argument -> argument of the part; other arguments are reported by name.
        example: Legacy arguments of an example.
        fidelity: Fidelity of the row.
        constants: Further arguments of the part.
        defaults: Arguments of the part that are defaults of the legacy object's constructor.
        covered: Legacy arguments that the note explains.
        inverse: False if another row converts back.
        where: ``callbacks`` or ``exporters``.
        note: Reason, and what differs.
    """
    fixed = dict(constants or {})

    def convert(arguments: Mapping[str, Any]) -> Conversion:
        given = {key: value for key, value in arguments.items() if value is not None}
        lost = sorted(set(given) - set(names) - set(covered))
        kept = {names[key]: value for key, value in given.items() if key in names}
        said = {key: value for key, value in (defaults or {}).items() if key != "every_steps" or "every_secs" not in kept}
        settings = {where: (ConfigPart(kind, fixed | said | kept),)}
        if lost:
            return Conversion(settings, Fidelity.MANUAL, f"{', '.join(lost)}: what the object was given is not carried over")
        return Conversion(settings)

    def invert(settings: Mapping[str, Any]) -> Any:
        part = next((one for one in settings.get(where, ()) if _made_by(one)), None)
        return None if part is None else {key: part.arguments[to] for key, to in names.items() if to in part.arguments}

    def _made_by(part: ConfigPart) -> bool:
        return part.kind == kind and all(part.arguments.get(key) == value for key, value in fixed.items())

    return mapped(name, target, fidelity, convert, invert if inverse else None, example, note=note)
