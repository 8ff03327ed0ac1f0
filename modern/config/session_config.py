"""ConfigProto of a session on the modern path: its fields are set through ``tf.config`` and read back."""

from typing import Any

from estimator_bridge.compat.config.proto.fields import set_fields
from estimator_bridge.compat.config.report import Row
from estimator_bridge.compat.config.to_modern import merge_steps, note_unread, session_settings
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.config.runtime_settings import RUNTIME, find_gpu_settings, set_runtime

_LOGICAL_CPUS = "devices.logical_cpus"
_RUN_CONFIGS_OWN = frozenset({"graph_options.rewrite_options.meta_optimizer_iterations", "device_filters"})
"""Fields that a RunConfig adds to its session_config by itself; no note is given for them."""
_LIMITS_ONLY_TIME = frozenset({"operation_timeout_in_ms"})
"""Fields that need a human, but change no result."""
_REMOTE = frozenset({"cluster_def.job"})
"""Fields that send work to other processes, which this path does not do."""


def apply(config: Any) -> list[str]:
    """Sets the fields of a ConfigProto and reads them back; call it before TensorFlow initialises its devices.

    Args:
        config: A ``tf.compat.v1.ConfigProto``, or None.

    Returns:
        A sentence for each field that has no effect, or a different one, on the modern path, with the reason.

    Raises:
        NotSupportedError: A field would change results and cannot be carried over.
        BridgeError: TensorFlow no longer takes a value, or ignores it.
    """
    if config is None:
        return []
    fields = set_fields(config)
    steps = [note_unread(step, None) for step in session_settings(fields)]
    rows = {path: row for path, (row, _) in zip(fields, steps, strict=True)}
    for path, row in rows.items():
        _refuse(path, row)
    _set(merge_steps(steps), fields)
    return [_note(row) for path, row in rows.items() if row.fidelity is not Fidelity.EXACT and path not in _RUN_CONFIGS_OWN]


def _refuse(path: str, row: Row) -> None:
    if path in _REMOTE or (row.fidelity is Fidelity.MANUAL and path not in _LIMITS_ONLY_TIME):
        raise NotSupportedError(
            f"{row.name} is not carried over on the modern path: {row.note}",
            expected=row.target or "nothing",
            received=f"{path}={row.value}",
            fix="Drop the field, or use --path legacy.",
        )


def _set(settings: dict[str, Any], fields: dict[str, Any]) -> None:
    unused = find_gpu_settings(settings)
    wanted = {name: value for name, value in settings.items() if name not in unused}
    made = next(setting for setting in RUNTIME if setting.name == _LOGICAL_CPUS).read()
    if wanted.get(_LOGICAL_CPUS, made) <= made:  # replicas may have needed more
        wanted.pop(_LOGICAL_CPUS, None)
    try:
        set_runtime(wanted)
    except BridgeError as error:
        raise BridgeError(
            f"session_config cannot be put in force: {error.what}",
            expected="nothing that runs eagerly before the Estimator's first call",
            received=", ".join(f"{path}={value}" for path, value in fields.items()) + f": {error.__cause__ or error}",
            fix="Move eager code behind the training, or drop the setting.",
        ) from error


def _note(row: Row) -> str:
    what = "is not quite the same" if row.fidelity.automatic else "has no effect"
    return f"{row.name} {what} on the modern path: {row.note}"
