"""Rows whose legacy value is an object's constructor arguments, and whose modern one is a callback or an exporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.model import Part
from estimator_bridge.compat.config.tables.build import mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, Rule

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
) -> Rule:
    """A row that makes a part of an object by renaming its arguments.

    Args:
        name: the legacy class or factory.
        kind: the modern part's.
        target: what a reader would write.
        names: legacy argument -> the part's argument; arguments that are not named are reported by name.
        example: legacy arguments that show it.
        fidelity: of the row.
        constants: further arguments of the part.
        defaults: the part's arguments where the legacy object's constructor says them by default.
        covered: legacy arguments of which the note says what becomes.
        inverse: False where another row owns the way back.
        where: ``callbacks`` or ``exporters``.
        note: the reason.

    Returns:
        The row.
    """
    fixed = dict(constants or {})

    def convert(arguments: Mapping[str, Any]) -> Conversion:
        given = {key: value for key, value in arguments.items() if value is not None}
        lost = sorted(set(given) - set(names) - set(covered))
        kept = {names[key]: value for key, value in given.items() if key in names}
        said = {key: value for key, value in (defaults or {}).items() if key != "every_steps" or "every_secs" not in kept}
        settings = {where: (Part(kind, fixed | said | kept),)}
        if lost:
            return Conversion(
                settings, Fidelity.MANUAL, f"{', '.join(lost)}: what the object was given stays with whoever made it"
            )
        return Conversion(settings)

    def invert(settings: Mapping[str, Any]) -> Any:
        part = next((one for one in settings.get(where, ()) if _made_by(one)), None)
        return None if part is None else {key: part.arguments[to] for key, to in names.items() if to in part.arguments}

    def _made_by(part: Part) -> bool:
        return part.kind == kind and all(part.arguments.get(key) == value for key, value in fixed.items())

    return mapped(name, target, fidelity, convert, invert if inverse else None, example, note=note)
