"""Callbacks and evaluators made from a ModernConfig's calls, and the settings that they have in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.output.calls import Call, Name, make
from estimator_bridge.errors import BridgeError

_UNREAD = frozenset({"checkpoint_name"})  # arguments that the object does not keep


def scope(**values: Any) -> dict[str, Any]:
    """Returns what the names in a call stand for: TensorFlow, our callbacks and the given values."""
    import tensorflow as tf

    from estimator_bridge.compat.config.output import callbacks

    return {"tf": tf, **{name: getattr(callbacks, name) for name in callbacks.__all__}, **values}


def make_all(calls: Mapping[str, Call], known: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the callbacks whose names are all known.

    Args:
        calls: Origin -> call.
        known: Scope; None for what is not there.

    Returns:
        Origin -> callback, in the same order.
    """
    return {origin: make(call, known) for origin, call in calls.items() if not _lacks(call, known)}


def differences(made: Any, call: Call, known: Mapping[str, Any]) -> dict[str, Any]:
    """Compares a callback with the call that made it.

    Args:
        made: The callback.
        call: Call that made it.
        known: Scope of the call.

    Returns:
        Argument -> value that the callback, its timer or its checkpoint manager holds, if it is not the call's.
    """
    wanted = {name: value for one in call.nested() if isinstance(one, Call) for name, value in one.arguments.items()}
    plain = {name: make(value, known) for name, value in wanted.items() if not isinstance(value, Call | list)}
    found = {name: _held(made, name) for name in plain.keys() - _UNREAD}
    return {name: value for name, value in found.items() if value != plain[name]}


def in_force(origins: Iterable[tuple[str, str]], differing: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that a callback has in force.

    Args:
        origins: Pairs of an argument and the setting that it comes from.
        differing: Arguments that the callback holds with another value.
        settings: Setting -> value that was asked for.
    """
    return {setting: differing.get(argument, settings.get(setting)) for argument, setting in origins}


def model_folder(config: ModernConfig, what: str) -> str:
    """Returns model_dir.

    Args:
        config: Modern configuration.
        what: Thing that needs the folder.

    Raises:
        BridgeError: The configuration has no model_dir.
    """
    if config.training.model_dir is None:
        raise BridgeError(f"{what} needs a folder.", expected="training.model_dir", fix="Set RunConfig(model_dir=...).")
    return config.training.model_dir


def _lacks(call: Call, known: Mapping[str, Any]) -> bool:
    return any(isinstance(one, Name) and one.dotted in known and known[one.dotted] is None for one in call.nested())


def _held(made: Any, name: str) -> Any:
    callbacks = getattr(made, "callbacks", None) or [None]
    for holder in (made, getattr(made, "timer", None), getattr(made, "manager", None), callbacks[-1]):
        for attribute in (name, f"_{name}"):
            if hasattr(holder, attribute):
                return getattr(holder, attribute)
    return None
