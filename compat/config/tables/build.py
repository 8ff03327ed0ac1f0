"""Functions for the common rows."""

from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.config.model import ConfigPart
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity

API = "https://www.tensorflow.org/api_docs/python/"


def exact(name: str, setting: str, target: str, *examples: Any, note: str = "") -> ConversionRule:
    """Returns a row for a value that is carried over as it is, in both directions."""
    return _same(Fidelity.EXACT, name, setting, target, examples, note)


def approximate(name: str, setting: str, target: str, *examples: Any, note: str) -> ConversionRule:
    """Returns a row for a value that is carried over as it is, to a setting that is not quite the same."""
    return _same(Fidelity.APPROXIMATE, name, setting, target, examples, note)


def manual(name: str, target: str, note: str) -> ConversionRule:
    """Returns a row for a value that a human has to carry over to the target."""
    return ConversionRule(name, target, Fidelity.MANUAL, reference=reference(target), note=note)


def dropped(name: str, note: str) -> ConversionRule:
    """Returns a row for a value without a counterpart."""
    return ConversionRule(name, "", Fidelity.DROPPED, note=note)


def zero_is_all(name: str, setting: str, target: str, *examples: Any, note: str) -> ConversionRule:
    """Returns a row for a number that is carried over as it is, but whose 0 or None becomes ``"all"``."""

    def invert(settings: Mapping[str, Any]) -> Any:
        value = settings.get(setting)
        return 0 if value == "all" else value

    return mapped(
        name, target, Fidelity.EXACT, lambda value: Conversion({setting: value or "all"}), invert, *examples, note=note
    )


def flag(
    name: str, setting: str, value: Any, target: str, note: str, fidelity: Fidelity = Fidelity.APPROXIMATE, example: Any = True
) -> ConversionRule:
    """Returns a row for a legacy ``example`` that becomes a setting's ``value``; a false legacy value sets nothing."""

    def invert(settings: Mapping[str, Any]) -> Any:
        return example if settings.get(setting) == value else None

    return mapped(name, target, fidelity, lambda on: Conversion({setting: value} if on else {}), invert, example, note=note)


def mapped(
    name: str,
    target: str,
    fidelity: Fidelity,
    convert: Callable[[Any], Conversion],
    invert: Callable[[Mapping[str, Any]], Any] | None,
    *examples: Any,
    note: str = "",
) -> ConversionRule:
    """Returns a row for a value with its own conversion functions."""
    return ConversionRule(name, target, fidelity, convert, invert, reference(target), note, examples)


def reference(target: str) -> str:
    """Returns the documentation's address for the first ``tf.`` name of a target; empty if it has none.

    Args:
        target: Target of a row, e.g. ``tf.config.set_visible_devices(gpus[:n])``.

    Example:
        >>> reference("tf.config.set_visible_devices(gpus[:n])").removeprefix(API)
        'tf/config/set_visible_devices'
    """
    start = target.find("tf.")
    if start < 0:
        return ""
    name = target[start:].split("(", maxsplit=1)[0].split(maxsplit=1)[0].rstrip(".,;:")
    return API + name.replace(".", "/")


def _same(fidelity: Fidelity, name: str, setting: str, target: str, examples: tuple[Any, ...], note: str) -> ConversionRule:
    def invert(settings: Mapping[str, Any]) -> Any:
        return settings.get(setting)

    return mapped(name, target, fidelity, lambda value: Conversion({setting: value}), invert, *examples, note=note)


def part_rule(
    name: str,
    kind: str,
    target: str,
    names: Mapping[str, str],
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
