"""A session's ConfigProto on the modern path: compat's tables say what each field amounts to, TensorFlow what is in force."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.config.legacy import LegacyConfig
from estimator_bridge.compat.config.proto.fields import set_fields
from estimator_bridge.compat.config.proto.reading import read_binary
from estimator_bridge.compat.config.report import Row
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.compat.config.to_modern import to_modern
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.config.runtime_settings import set_runtime, without_gpu
from estimator_bridge.modern.config.runtime_table import RUNTIME

_LOGICAL_CPUS = "devices.logical_cpus"
_RUN_CONFIGS_OWN = frozenset({"graph_options.rewrite_options.meta_optimizer_iterations", "device_filters"})
"""What a RunConfig puts into its session_config by itself: nobody asked for it, so nobody is told."""
_LIMITS_ONLY_TIME = frozenset({"operation_timeout_in_ms"})
"""Fields that need a human and yet change no result."""
_ELSEWHERE = frozenset({"cluster_def.job"})
"""Fields that would send the work to other processes, which this path does not do."""


def apply(config: Any) -> list[str]:
    """Sets what a ConfigProto asks for, and reads it back; call it before TensorFlow has initialised its devices.

    Args:
        config: a ``tf.compat.v1.ConfigProto``, or None.

    Returns:
        A sentence for each field that has no effect on the modern path or another one, with the reason.

    Raises:
        NotSupportedError: for a field that would change results and that no program can carry over.
        BridgeError: where TensorFlow does not take a value any more, or takes and ignores it.
    """
    if config is None:
        return []
    fields = set_fields(read_binary(config.SerializeToString(), "session_config"))
    modern, report = to_modern(LegacyConfig(session_config=fields))
    rows = {path: next(row for row in report.rows if row.name == f"session_config.{path}") for path in fields}
    for path, row in rows.items():
        _refuse(path, row)
    _set(flatten(modern), fields)
    return [_note(row) for path, row in rows.items() if row.fidelity is not Fidelity.EXACT and path not in _RUN_CONFIGS_OWN]


def _refuse(path: str, row: Row) -> None:
    if path in _ELSEWHERE or (row.fidelity is Fidelity.MANUAL and path not in _LIMITS_ONLY_TIME):
        raise NotSupportedError(
            f"{row.name} is not carried over on the modern path: {row.note}",
            expected=row.target or "nothing",
            received=f"{path}={row.value}",
            fix="Drop the field, or use --path legacy.",
        )


def _set(settings: dict[str, Any], fields: dict[str, Any]) -> None:
    unused = without_gpu(settings)
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
