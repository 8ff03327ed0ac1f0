"""Short forms for the common rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
    def convert(value: Any) -> Conversion:
        return Conversion({setting: value})

    def invert(settings: Mapping[str, Any]) -> Any:
        return settings.get(setting)

    return ConversionRule(name, target, fidelity, convert, invert, reference(target), note, examples)
