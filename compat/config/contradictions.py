"""Contradicting fields: they are refused before anything is converted."""

from collections.abc import Mapping

from estimator_bridge.compat.config.model import LegacyConfig, job_sizes
from estimator_bridge.errors import BridgeError


class ContradictionError(BridgeError):
    """Fields that contradict each other; a reader of files finds their positions by ``names``."""

    def __init__(self, names: tuple[str, ...], why: str, fix: str) -> None:
        super().__init__(f"{' and '.join(names)} contradict each other: {why}.", expected="one of them", fix=fix)
        self.names = names


def refuse_contradictions(legacy: LegacyConfig) -> None:
    """Refuses fields that contradict each other.

    Args:
        legacy: Legacy configuration.

    Raises:
        ContradictionError: Two fields contradict each other; the error names both, with the reason.

    Example:
        >>> refuse_contradictions(LegacyConfig(run_config={"save_checkpoints_steps": 50}))
    """
    for check in (_run_config, _session, _filters, _hooks):
        check(legacy)


def _run_config(legacy: LegacyConfig) -> None:
    run, both = legacy.run_config or {}, ("save_checkpoints_steps", "save_checkpoints_secs")
    if all(run.get(name) is not None for name in both):
        raise ContradictionError(both, "an Estimator saves by steps or by time", "Set one of them to null.")


def _session(legacy: LegacyConfig) -> None:
    session = legacy.session_config or {}
    virtual, growth = "gpu_options.experimental.virtual_devices", "gpu_options.allow_growth"
    fraction, visible = "gpu_options.per_process_gpu_memory_fraction", "gpu_options.visible_device_list"
    for other in (growth, fraction):
        if session.get(virtual) and session.get(other):
            raise ContradictionError(_named(virtual, other), "logical GPUs have fixed limits", "Drop one of them.")
    gpus = [gpu.strip() for gpu in str(session.get(visible, "")).split(",")]
    if len(set(gpus)) < len(gpus):
        raise ContradictionError(_named(visible, visible), f"{session[visible]!r} names a GPU twice", "Name each GPU once.")
    if visible in session and session.get("device_count", {}).get("GPU") == 0:
        why = "device_count hides all GPUs, visible_device_list makes some visible"
        raise ContradictionError(_named("device_count", visible), why, "Drop one of them.")
    if session.get(visible) and len(session.get(virtual, ())) > len(gpus):
        why = f"limits for {len(session[virtual])} GPUs, of which {len(gpus)} are visible"
        raise ContradictionError(_named(virtual, visible), why, "Give as many limits as visible GPUs.")


def _filters(legacy: LegacyConfig) -> None:
    jobs = job_sizes(legacy)
    for device in (legacy.session_config or {}).get("device_filters", ()) if jobs else ():
        job = next((part.removeprefix("job:") for part in device.split("/") if part.startswith("job:")), None)
        if job is not None and ("chief" if job == "master" else job) not in jobs:
            names = ("session_config.device_filters", "TF_CONFIG.cluster")
            raise ContradictionError(names, f"{device!r} matches no job of the cluster", "Name a job of the cluster.")


def _hooks(legacy: LegacyConfig) -> None:
    pairs: Mapping[str, tuple[str, str]] = {
        "StopAtStepHook": ("num_steps", "last_step"),
        "LoggingTensorHook": ("every_n_iter", "every_n_secs"),
        "CheckpointSaverHook": ("save_steps", "save_secs"),
        "SummarySaverHook": ("save_steps", "save_secs"),
    }
    for index, hook in enumerate(legacy.hooks):
        both = pairs.get(hook.kind.rpartition(".")[2])
        if both and all(hook.arguments.get(name) is not None for name in both):
            raise ContradictionError(
                tuple(f"hooks[{index}].{name}" for name in both), f"{hook.kind} takes one of them", "Drop one of them."
            )


def _named(*paths: str) -> tuple[str, ...]:
    return tuple(f"session_config.{path}" for path in paths)
