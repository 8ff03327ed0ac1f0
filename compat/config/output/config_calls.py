"""Calls that a ModernConfig amounts to: its strategy and resolver, the callbacks of ``fit``, the evaluator."""

from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.config.decisions import CLUSTERED
from estimator_bridge.compat.config.model import Arguments, Cluster, ConfigPart, ModernConfig, Strategy
from estimator_bridge.compat.config.output.calls import Call, Name, given
from estimator_bridge.compat.config.settings import checkpoint_folder

_DISTRIBUTE = "tf.distribute"
_EXPERIMENTAL = f"{_DISTRIBUTE}.experimental"
RESOLVER = Name("cluster_resolver")
DATA, CHECKPOINT, MODEL, MAX_STEPS = map(Name, ("validation_data", "checkpoint", "model", "max_steps"))
TO_FOLDER = ("WriteSummaries", "StepsPerSecond", "Profile")
"""Kinds of callbacks that write to model_dir unless they have a folder of their own."""


def strategy_call(strategy: Strategy, has_cluster: bool) -> Call:
    """Returns the call that makes a strategy.

    Args:
        strategy: Section with a name other than TPUStrategy.
        has_cluster: True if the script has a ``cluster_resolver``.

    Example:
        >>> strategy_call(Strategy(name="MirroredStrategy", devices=("GPU:0",)), has_cluster=False)
        tf.distribute.MirroredStrategy(devices=['GPU:0'])
    """
    assert strategy.name is not None
    module, arguments = _CALLS[strategy.name]
    resolver = {"cluster_resolver": RESOLVER} if has_cluster and strategy.name in CLUSTERED else {}
    return Call(f"{module}.{strategy.name}", resolver | arguments(strategy))


def resolver_call(cluster: Cluster) -> Call:
    """Returns the call that makes the cluster resolver of a process.

    Args:
        cluster: Jobs, and this process's task.
    """
    rpc_layer = cluster.rpc_layer or "grpc"
    master = (cluster.session_master or "").removeprefix(f"{rpc_layer}://")  # the resolver adds the layer again
    gpus = Call("tf.config.list_physical_devices", {}, ("GPU",))
    arguments = {
        "cluster_spec": Call("tf.train.ClusterSpec", {}, ({job: list(tasks) for job, tasks in cluster.jobs.items()},)),
        "master": master,
        "task_type": cluster.task_type,
        "task_id": cluster.task_id,
        "environment": cluster.environment or "",
        "num_accelerators": {"GPU": Call("len", {}, (gpus,))},  # the resolver does not count them itself
        "rpc_layer": rpc_layer,
    }
    return Call(f"{_DISTRIBUTE}.cluster_resolver.SimpleClusterResolver", arguments)


def partitioner_call(arguments: Mapping[str, Any]) -> Call | None:
    """Returns the call that makes a variable partitioner; None without arguments.

    Args:
        arguments: Class of the partitioner under ``kind``, and its arguments.
    """
    if not arguments:
        return None
    own = {name: value for name, value in arguments.items() if name != "kind"}
    return Call(f"{_EXPERIMENTAL}.partitioners.{arguments['kind']}", own)


def _devices(strategy: Strategy) -> list[str] | None:
    return list(strategy.devices) if strategy.devices else None


def _mirrored(strategy: Strategy) -> dict[str, Any]:
    ops = strategy.cross_device_ops
    call = Call(f"{_DISTRIBUTE}.{ops}", given(num_packs=strategy.num_packs)) if ops else None
    return given(devices=_devices(strategy), cross_device_ops=call)


def _multi_worker(strategy: Strategy) -> dict[str, Any]:
    implementation = Name(f"{_EXPERIMENTAL}.CommunicationImplementation.{strategy.communication or 'AUTO'}")
    options = given(bytes_per_pack=strategy.bytes_per_pack, timeout_seconds=strategy.timeout_seconds)
    call = Call(f"{_EXPERIMENTAL}.CommunicationOptions", {**options, "implementation": implementation})
    return {"communication_options": call}


_CALLS: Mapping[str, tuple[str, Callable[[Strategy], dict[str, Any]]]] = {
    "MirroredStrategy": (_DISTRIBUTE, _mirrored),
    "MultiWorkerMirroredStrategy": (_DISTRIBUTE, _multi_worker),
    "ParameterServerStrategy": (_DISTRIBUTE, lambda own: given(variable_partitioner=partitioner_call(own.partitioner))),
    "CentralStorageStrategy": (
        _EXPERIMENTAL,
        lambda own: given(compute_devices=_devices(own), parameter_device=own.parameter_device),
    ),
    "OneDeviceStrategy": (_DISTRIBUTE, lambda own: {"device": (own.devices or ("/cpu:0",))[0]}),
}
"""Strategy -> its module, and its arguments by the section's values."""


def callback_calls(config: ModernConfig) -> dict[str, Call]:
    """Returns the callbacks of a configuration.

    Args:
        config: Modern configuration; without a model_dir, callbacks that need it are left out.

    Returns:
        Origin -> call, in the order in which they have to run: evaluation before what stops or exports. Names in the calls are
        ``checkpoint``, ``validation_data`` and ``max_steps``.

    Example:
        >>> from estimator_bridge.compat.config.model import Training
        >>> callback_calls(ModernConfig(training=Training(max_steps=5)))["stop"]
        StopAtStep(last_step=max_steps)
    """
    own, folder = config.evaluation, config.training.model_dir
    calls = {"evaluate": _evaluate(config, {"steps": own.steps, "name": own.name})}
    calls |= {f"callbacks[{index}]": _part(part, config) for index, part in enumerate(config.callbacks)}
    if folder is not None:
        calls |= {f"exporters[{index}]": _export(part, config, folder) for index, part in enumerate(config.exporters)}
        if config.checkpoint.interval_steps or config.checkpoint.interval_secs:
            timed = given(every_steps=config.checkpoint.interval_steps, every_secs=config.checkpoint.interval_secs)
            calls["save"] = Call("SaveCheckpoint", {"manager": _manager(config, folder), **timed})
    if config.training.max_steps is not None:
        calls["stop"] = Call("StopAtStep", {"last_step": MAX_STEPS})
    for origin, steps in (("events", config.summaries.update_freq), ("speed", config.summaries.speed_freq)):
        if steps and folder is not None:
            calls[origin] = Call("WriteSummaries", {"log_dir": folder, "every_steps": steps, "speed": origin == "speed"})
    return calls


def evaluator_call(config: ModernConfig, folder: str) -> Call:
    """Returns the evaluator of a configuration: it evaluates each checkpoint in model_dir, up to max_steps.

    Args:
        config: Modern configuration of an evaluator's process.
        folder: model_dir.

    Returns:
        A call with the names ``model`` and ``validation_data``; the last of its callbacks is the Sidecar.
    """
    own, last = config.evaluation, config.training.max_steps
    exports = [_export(part, config, folder) for part in config.exporters]
    log_dir = event_folder(config, own.name)
    sidecar = Call("Sidecar", {"log_dir": log_dir, "throttle_secs": own.throttle_secs or 0.0, "last_step": last})
    arguments = {
        "model": MODEL,
        "data": DATA,
        "checkpoint_dir": folder,
        "steps": None if own.steps == "all" else own.steps,
        "max_evaluations": last,  # a checkpoint's number is its step
        "callbacks": [*exports, sidecar],
        "start_delay_secs": own.start_delay_secs or 0.0,
    }
    return Call("DelayedEvaluator", arguments)


def event_folder(config: ModernConfig, name: str | None) -> str | None:
    """Returns the folder of an evaluation's events, named as an Estimator names it; None without a model_dir."""
    return f"{config.training.model_dir}/eval{'_' + name if name else ''}" if config.training.model_dir else None


def _manager(config: ModernConfig, folder: str) -> Call:
    own = config.checkpoint
    kept = None if own.max_to_keep == "all" else own.max_to_keep or 5
    arguments = {
        "directory": checkpoint_folder(config, folder),
        "max_to_keep": kept,
        **given(keep_checkpoint_every_n_hours=own.keep_every_n_hours),
        "checkpoint_name": "model.ckpt",
    }
    return Call("tf.train.CheckpointManager", arguments, (CHECKPOINT,))


def _evaluate(config: ModernConfig, asked: Arguments) -> Call:
    """A hook without steps and name evaluates the whole input, and its events have no name."""
    own, steps = config.evaluation, asked.get("steps")
    arguments = given(steps=None if steps == "all" else steps, every_steps=asked.get("every_steps"))
    arguments |= {"start_delay_secs": own.start_delay_secs or 0.0, "throttle_secs": own.throttle_secs or 0.0}
    return Call("Evaluate", arguments | given(log_dir=event_folder(config, asked.get("name"))), (DATA,))


def _export(part: ConfigPart, config: ModernConfig, folder: str) -> Call:
    when = part.kind.removeprefix("Export").removeprefix("At").lower()
    directory = f"{checkpoint_folder(config, folder)}/export/{part.arguments['name']}"
    keep = None if when == "end" else part.arguments.get("exports_to_keep", 5)
    more = given(exports_to_keep=keep, last_step=config.training.max_steps)
    return Call("Export", {"directory": directory, "when": when, **more})


def _part(part: ConfigPart, config: ModernConfig) -> Call:
    asked: dict[str, Any] = dict(part.arguments)
    if part.kind == "EvaluateEvery":
        return _evaluate(config, asked)
    if part.kind == "SaveCheckpoint":
        asked = {"manager": _manager(config, asked.pop("directory")), **asked}
    if part.kind in TO_FOLDER:
        asked = {"log_dir": config.training.model_dir or ".", **asked}
    if part.kind in {"StopAtThreshold", "StopWithoutImprovement"}:
        asked = {**given(eval_dir=event_folder(config, config.evaluation.name)), **asked}
    if part.kind == "StepsPerSecond":
        return Call("WriteSummaries", {**asked, "speed": True})
    return Call(part.kind, asked)
