"""A ModernConfig as a Python script that can be pasted: plain TensorFlow and tf_keras, nothing of ours to import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig, Part
from estimator_bridge.compat.config.settings import checkpoint_folder, flatten

CALLBACKS = Path(__file__).parents[1] / "callbacks.py"

_LINES = {
    "threads.intra_op": "tf.config.threading.set_intra_op_parallelism_threads({0!r})",
    "threads.inter_op": "tf.config.threading.set_inter_op_parallelism_threads({0!r})",
    "devices.visible_gpus": "tf.config.set_visible_devices([gpus[index] for index in {0!r}], 'GPU')",
    "devices.gpu_count": "tf.config.set_visible_devices(tf.config.get_visible_devices('GPU')[:{0!r}], 'GPU')",
    "devices.memory_growth": "for gpu in tf.config.get_visible_devices('GPU'):\n    tf.config.experimental.set_memory_growth(gpu, {0!r})",
    "devices.gpu_memory_limits": "for gpu, limits in zip(tf.config.get_visible_devices('GPU'), {0!r}):\n"
    "    devices = [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in limits]\n"
    "    tf.config.set_logical_device_configuration(gpu, devices)",
    "devices.logical_cpus": "cpu = tf.config.list_physical_devices('CPU')[0]\n"
    "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * {0!r})",
    "devices.soft_placement": "tf.config.set_soft_device_placement({0!r})",
    "devices.log_placement": "tf.debugging.set_log_device_placement({0!r})",
    "graph.jit": "tf.config.optimizer.set_jit({0!r})",
    "training.random_seed": "tf.random.set_seed({0!r})",
}


def to_python(config: ModernConfig) -> str:
    """Prints a configuration as a script.

    Args:
        config: what to print.

    Returns:
        Source that sets the runtime, makes the strategy, and leaves the arguments of compile and fit in variables.

    Example:
        >>> from estimator_bridge.compat.config.model import Threads
        >>> print(to_python(ModernConfig(threads=Threads(intra_op=2))))
        import tensorflow as tf
        <BLANKLINE>
        # Before anything else uses TensorFlow.
        tf.config.threading.set_intra_op_parallelism_threads(2)
        <BLANKLINE>
        strategy = tf.distribute.get_strategy()
        <BLANKLINE>
    """
    sections = [_imports(config), "\n".join(_runtime(config)), "\n".join(_strategy(config))]
    sections += [_classes(config), "\n".join(_training(config)).strip("\n")]
    return "\n\n".join(section for section in sections if section) + "\n"


def _imports(config: ModernConfig) -> str:
    kinds = _kinds(config)
    lines = ["import math", "import time", "from typing import Any", ""] if kinds else []
    if config.devices.gpu_allocator == "cuda_malloc_async":
        lines = [
            "import os",
            *lines,
            "os.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'  # read when the GPUs are initialised",
            "",
        ]
    keras = ["import tf_keras"] if kinds or _early(config) else []
    return "\n".join([*lines, "import tensorflow as tf", *keras])


def _runtime(config: ModernConfig) -> Iterator[str]:
    settings = flatten(config)
    lines = [template.format(settings[name]) for name, template in _LINES.items() if name in settings]
    if "graph.mlir_bridge" in settings:
        lines.append(f"tf.config.experimental.{'enable' if settings['graph.mlir_bridge'] else 'disable'}_mlir_bridge()")
    if settings.get("graph.deterministic"):
        lines.append("tf.config.experimental.enable_op_determinism()")
    if config.graph.options:
        lines.append(f"tf.config.optimizer.set_experimental_options({dict(config.graph.options)!r})")
    if lines:
        yield "# Before anything else uses TensorFlow."
    if config.devices.visible_gpus is not None:
        yield "gpus = tf.config.list_physical_devices('GPU')"
    yield from lines
    if config.devices.gpu_memory_fraction is not None:
        yield f"# {config.devices.gpu_memory_fraction:g} of each GPU's memory: say it in megabytes, with LogicalDeviceConfiguration."


def _strategy(config: ModernConfig) -> Iterator[str]:
    if config.cluster.jobs:
        yield from _resolver(config)
    if config.strategy.remote_cluster:
        yield from _remote(config)
    name = config.strategy.name
    if name is None or config.cluster.task_type == "evaluator":
        yield "strategy = tf.distribute.get_strategy()"
    else:
        yield from _STRATEGIES[name](config)


def _resolver(config: ModernConfig) -> Iterator[str]:
    cluster = config.cluster
    jobs = {job: list(tasks) for job, tasks in cluster.jobs.items()}
    yield "cluster_resolver = tf.distribute.cluster_resolver.SimpleClusterResolver("
    yield f"    tf.train.ClusterSpec({jobs!r}),"
    yield f"    task_type={cluster.task_type!r},"
    yield f"    task_id={cluster.task_id!r},"
    yield f"    rpc_layer={cluster.rpc_layer or 'grpc'!r},"
    yield ")"


def _remote(config: ModernConfig) -> Iterator[str]:
    jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
    filters = config.devices.filters
    if filters and config.cluster.task_type:
        yield "filters = tf.config.experimental.ClusterDeviceFilters()"
        yield f"filters.set_device_filters({config.cluster.task_type!r}, {config.cluster.task_id or 0}, {list(filters)!r})"
    extra = ", cluster_device_filters=filters" if filters and config.cluster.task_type else ""
    yield f"tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({jobs!r}){extra})"


def _mirrored(config: ModernConfig) -> Iterator[str]:
    own = config.strategy
    arguments = [repr(list(own.devices))] if own.devices else []
    arguments += [f"cross_device_ops=tf.distribute.{own.cross_device_ops}()"] if own.cross_device_ops else []
    yield f"strategy = tf.distribute.MirroredStrategy({', '.join(arguments)})"


def _multi_worker(config: ModernConfig) -> Iterator[str]:
    own = f"tf.distribute.experimental.CommunicationImplementation.{config.strategy.communication or 'AUTO'}"
    yield "strategy = tf.distribute.MultiWorkerMirroredStrategy("
    yield f"    {'cluster_resolver' if config.cluster.jobs else 'None'},"
    yield f"    tf.distribute.experimental.CommunicationOptions(implementation={own}),"
    yield ")"


def _parameter_server(config: ModernConfig) -> Iterator[str]:
    given = dict(config.strategy.partitioner)
    if given:
        arguments = ", ".join(f"{key}={value!r}" for key, value in given.items() if key != "kind")
        yield f"partitioner = tf.distribute.experimental.partitioners.{given['kind']}({arguments})"
    if config.cluster.task_type in {"ps", "worker"}:
        yield "# A ps or a worker only serves; the chief's process coordinates."
        yield "server = tf.distribute.Server("
        yield "    cluster_resolver.cluster_spec(),"
        yield "    job_name=cluster_resolver.task_type,"
        yield "    task_index=cluster_resolver.task_id,"
        yield ")"
        yield "server.join()"
    yield f"strategy = tf.distribute.ParameterServerStrategy(cluster_resolver{', variable_partitioner=partitioner' if given else ''})"


def _central_storage(config: ModernConfig) -> Iterator[str]:
    devices = list(config.strategy.devices) if config.strategy.devices else None
    yield f"strategy = tf.distribute.experimental.CentralStorageStrategy({devices!r}, {config.strategy.parameter_device!r})"


def _one_device(config: ModernConfig) -> Iterator[str]:
    yield f"strategy = tf.distribute.OneDeviceStrategy({(config.strategy.devices or ('/cpu:0',))[0]!r})"


def _tpu(config: ModernConfig) -> Iterator[str]:
    job = f", job_name={config.strategy.tpu_job_name!r}" if config.strategy.tpu_job_name else ""
    yield f"resolver = tf.distribute.cluster_resolver.TPUClusterResolver({config.strategy.tpu!r}{job})"
    yield "tf.config.experimental_connect_to_cluster(resolver)"
    yield "tf.tpu.experimental.initialize_tpu_system(resolver)"
    yield "strategy = tf.distribute.TPUStrategy(resolver)"


_STRATEGIES = {
    "MirroredStrategy": _mirrored,
    "MultiWorkerMirroredStrategy": _multi_worker,
    "ParameterServerStrategy": _parameter_server,
    "CentralStorageStrategy": _central_storage,
    "OneDeviceStrategy": _one_device,
    "TPUStrategy": _tpu,
}

_CLASSES = {
    "StopAtStep": "StopAtStep",
    "LogValues": "LogValues",
    "StopOnNan": "StopOnNan",
    "SaveCheckpoint": "SaveCheckpoint",
    "WriteSummaries": "WriteSummaries",
    "StepsPerSecond": "WriteSummaries",
    "Profile": "Profile",
    "EvaluateEvery": "Evaluate",
    "StopAtThreshold": "StopAtThreshold",
}


def _saves(config: ModernConfig) -> bool:
    return bool(config.checkpoint.interval_steps or config.checkpoint.interval_secs) and config.training.model_dir is not None


def _evaluates(config: ModernConfig) -> bool:
    own = config.evaluation
    return any(value is not None for value in (own.steps, own.name, own.start_delay_secs, own.throttle_secs))


def _summaries(config: ModernConfig) -> list[tuple[int, bool]]:
    own = config.summaries
    written = [(own.update_freq, False), (own.speed_freq, True)] if config.training.model_dir is not None else []
    return [(steps, speed) for steps, speed in written if steps]


def _early(config: ModernConfig) -> bool:
    return any(part.kind == "EarlyStopping" for part in config.callbacks)


def _kinds(config: ModernConfig) -> list[str]:
    """The callback classes that the script has to carry."""
    kinds = [_CLASSES[part.kind] for part in config.callbacks if part.kind in _CLASSES]
    kinds += ["Export"] if config.exporters and config.training.model_dir is not None else []
    kinds += ["SaveCheckpoint"] if _saves(config) else []
    kinds += ["Evaluate"] if _evaluates(config) else []
    kinds += ["WriteSummaries"] if _summaries(config) else []
    kinds += ["StopAtStep"] if config.training.max_steps is not None else []
    return list(dict.fromkeys(kinds))


def _classes(config: ModernConfig) -> str:
    kinds = _kinds(config)
    if not kinds:
        return ""
    source = CALLBACKS.read_text(encoding="utf-8")
    classes = {
        node.name: ast.get_source_segment(source, node) for node in ast.parse(source).body if isinstance(node, ast.ClassDef)
    }
    return "\n" + "\n\n\n".join(str(classes[name]) for name in ("Timer", "StepCallback", *kinds)) + "\n"


def _training(config: ModernConfig) -> Iterator[str]:
    steps = config.training.steps_per_execution
    if steps is not None:
        yield f"compile_arguments = {{'steps_per_execution': {steps}}}  # model.compile(loss, optimizer, **compile_arguments)"
    if config.training.global_batch_size is not None:
        yield f"global_batch_size = {config.training.global_batch_size}  # of the dataset; {config.training.per_replica_batch_size} a replica"
    yield from _fit(config)
    made = [*_callback_lines(config)]
    if made:
        yield from ["", "", "def make_callbacks(checkpoint, validation_data):", "    return ["]
        yield from (f"        {line}," for line in made)
        yield "    ]"


def _fit(config: ModernConfig) -> Iterator[str]:
    last, interval = config.training.max_steps, config.checkpoint.interval_steps
    if last is not None:
        yield f"max_steps = {last}  # absolute: a restored model trains for what is left"
        yield ""
        yield ""
        yield "def fit_arguments(restored_step):"
        yield "    left = max(max_steps - restored_step, 0)"
        yield f"    steps = {f'min({interval}, left)' if interval else 'left'}"
        yield "    return {'steps_per_epoch': max(steps, 1), 'epochs': -(-left // steps) if steps else 0}"
    elif interval:
        yield f"fit_arguments = {{'steps_per_epoch': {interval}}}"


def _callback_lines(config: ModernConfig) -> Iterator[str]:
    folder = config.training.model_dir
    if _evaluates(config):
        yield _evaluate_line(config, Part("EvaluateEvery"))
    for part in config.callbacks:
        yield from _part_line(part, config)
    for part in config.exporters if folder is not None else ():
        when = part.kind.removeprefix("Export").removeprefix("At").lower()
        keep = None if when == "end" else part.arguments.get("exports_to_keep", 5)
        yield _export_line(part, folder, when, keep)
    if _saves(config):
        yield f"SaveCheckpoint({_manager(config, folder)}, {config.checkpoint.interval_steps}, {config.checkpoint.interval_secs})"
    if config.training.max_steps is not None:
        yield "StopAtStep(last_step=max_steps)"
    for steps, speed in _summaries(config):
        yield f"WriteSummaries({folder!r}, {steps}, speed={speed})"


def _export_line(part: Part, folder: str | None, when: str, keep: int | None) -> str:
    directory = f"{folder}/export/{part.arguments['name']}"
    return f"Export({directory!r}, {when!r}, {keep})"


def _manager(config: ModernConfig, folder: str | None, keep: Any = None) -> str:
    own = config.checkpoint
    kept = None if own.max_to_keep == "all" else own.max_to_keep or keep or 5
    hours = f", keep_checkpoint_every_n_hours={own.keep_every_n_hours}" if own.keep_every_n_hours else ""
    own_folder = checkpoint_folder(config, folder or ".")
    return f"tf.train.CheckpointManager(checkpoint, {own_folder!r}, max_to_keep={kept}{hours}, checkpoint_name='model.ckpt')"


def _evaluate_line(config: ModernConfig, part: Part) -> str:
    own, given = config.evaluation, dict(part.arguments)
    steps, name = given.get("steps", own.steps), given.get("name", own.name)
    folder = f"{config.training.model_dir}/eval{'_' + name if name else ''}" if config.training.model_dir else None
    limits = f"start_delay_secs={own.start_delay_secs or 0}, throttle_secs={own.throttle_secs or 0}"
    return f"Evaluate(validation_data, {None if steps == 'all' else steps}, {given.get('every_steps')}, {limits}, log_dir={folder!r})"


def _part_line(part: Part, config: ModernConfig) -> Iterator[str]:
    given = dict(part.arguments)
    if part.kind == "EvaluateEvery":
        yield _evaluate_line(config, part)
    elif part.kind == "SaveCheckpoint":
        folder = given.pop("directory")
        yield f"SaveCheckpoint({_manager(config, folder)}, {given.get('every_steps')}, {given.get('every_secs')})"
    elif part.kind == "EarlyStopping":
        yield _early_line(given, config)
    else:
        if part.kind in {"WriteSummaries", "StepsPerSecond", "Profile"}:
            given.setdefault("log_dir", config.training.model_dir or ".")
        if part.kind == "StepsPerSecond":
            given["speed"] = True
        if "monitor" in given:
            given["monitor"] = f"val_{given['monitor']}"
        yield f"{_CLASSES[part.kind]}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def _early_line(given: dict[str, Any], config: ModernConfig) -> str:
    between = config.checkpoint.interval_steps or given["max_steps"]
    patience, start = max(-(-given["max_steps"] // between), 1), -(-given.get("min_steps", 0) // between)
    return (f"tf_keras.callbacks.EarlyStopping(monitor={'val_' + given['monitor']!r}, mode={given['mode']!r}, patience={patience}, "
            f"start_from_epoch={start})")  # fmt: skip
