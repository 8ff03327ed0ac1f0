"""Short ways to say the common rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.rules import Conversion, Fidelity, Rule

API = "https://www.tensorflow.org/api_docs/python/"


def exact(name: str, setting: str, target: str, *examples: Any, note: str = "") -> Rule:
    """A value that is carried over as it is, both ways."""
    return _same(Fidelity.EXACT, name, setting, target, examples, note)


def approximate(name: str, setting: str, target: str, *examples: Any, note: str) -> Rule:
    """A value that is carried over as it is, to something that is not quite the same."""
    return _same(Fidelity.APPROXIMATE, name, setting, target, examples, note)


def manual(name: str, target: str, note: str) -> Rule:
    """A value that a human has to carry over; the target is where to."""
    return Rule(name, target, Fidelity.MANUAL, reference=reference(target), note=note)


def dropped(name: str, note: str) -> Rule:
    """A value that nothing takes the place of."""
    return Rule(name, "", Fidelity.DROPPED, note=note)


def mapped(
    name: str,
    target: str,
    fidelity: Fidelity,
    convert: Callable[[Any], Conversion],
    invert: Callable[[Mapping[str, Any]], Any] | None,
    *examples: Any,
    note: str = "",
) -> Rule:
    """A value that is carried over by functions of its own."""
    return Rule(name, target, fidelity, convert, invert, reference(target), note, examples)


def reference(target: str) -> str:
    """The address of the first ``tf.`` name of a target in TensorFlow's documentation; empty where it names none.

    Args:
        target: such as ``tf.config.set_visible_devices(gpus[:n])``.

    Returns:
        An address.

    Example:
        >>> reference("tf.config.set_visible_devices(gpus[:n])").removeprefix(API)
        'tf/config/set_visible_devices'
    """
    start = target.find("tf.")
    if start < 0:
        return ""
    name = target[start:].split("(", maxsplit=1)[0].split(maxsplit=1)[0].rstrip(".,;:")
    return API + name.replace(".", "/")


def _same(fidelity: Fidelity, name: str, setting: str, target: str, examples: tuple[Any, ...], note: str) -> Rule:
    def convert(value: Any) -> Conversion:
        return Conversion({setting: value})

    def invert(settings: Mapping[str, Any]) -> Any:
        return settings.get(setting)

    return Rule(name, target, fidelity, convert, invert, reference(target), note, examples)
