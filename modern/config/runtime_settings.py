"""Sets TensorFlow's runtime, and compares the settings asked for with those in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.runtime_table import RUNTIME, RuntimeSetting


def set_runtime(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Sets the runtime's settings and reads them back; a value that is already in force is never too late.

    Args:
        settings: Setting -> value; settings that are not the runtime's are ignored.

    Returns:
        Setting -> value in force.

    Raises:
        BridgeError: TensorFlow refused or ignored a setting.

    Example:
        >>> set_runtime({"devices.soft_placement": True, "training.max_steps": 5})
        {'devices.soft_placement': True}
    """
    wanted = list(_wanted(settings))
    for setting, name, key in wanted:
        _set(setting, name, key, settings[name])
    in_force = {name: setting.read(*key) for setting, name, key in wanted}
    check(settings, in_force)
    return in_force


def check(settings: Mapping[str, Any], in_force: Mapping[str, Any]) -> None:
    """Refuses a value in force that differs from the value asked for.

    Args:
        settings: Setting -> value asked for.
        in_force: Setting -> value read back.

    Raises:
        BridgeError: A setting differs; the error names the first.
    """
    for name, value in in_force.items():
        wanted = held_value(name, settings[name])
        if value != wanted:
            raise BridgeError(
                f"TensorFlow took {name} and ignored it.",
                expected=f"{name}={wanted!r}",
                received="nothing is in force" if value is None else f"{value!r} is in force",
                fix="Drop the setting, or find what overrides it; the values in force decide how the job runs.",
            )


def held_value(name: str, value: Any) -> Any:
    """Returns a value as TensorFlow holds it: visible GPUs in the machine's order, and no more GPUs than there are."""
    if name == "devices.gpu_count":
        import tensorflow as tf

        return min(value, len(tf.config.list_physical_devices("GPU")))
    return tuple(sorted(value)) if name == "devices.visible_gpus" else value


def find_gpu_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Finds the settings for GPUs on a machine without one; they had no effect in a session either.

    Args:
        settings: Setting -> value.

    Returns:
        Setting -> reason; empty on a machine with a GPU.
    """
    import tensorflow as tf

    names = {setting.name for setting in RUNTIME if setting.gpu} & set(settings)
    return (
        dict.fromkeys(sorted(names), "this machine has no GPU") if names and not tf.config.list_physical_devices("GPU") else {}
    )


def _wanted(settings: Mapping[str, Any]) -> Iterator[tuple[RuntimeSetting, str, tuple[str, ...]]]:
    for setting in RUNTIME:
        for name in settings:
            if name == setting.name:
                yield setting, name, ()
            elif setting.name.endswith(".") and name.startswith(setting.name):
                yield setting, name, (name.removeprefix(setting.name),)


def _set(setting: RuntimeSetting, name: str, key: tuple[str, ...], value: Any) -> None:
    try:
        setting.set(value, *key)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        if setting.read(*key) == held_value(name, value):
            return
        raise BridgeError(
            f"TensorFlow does not take {name}.",
            expected="a value that this machine has, before anything else uses TensorFlow",
            received=f"{value!r}: {error}",
            fix="Set it first in the program, or drop the setting.",
        ) from error
