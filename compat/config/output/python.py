"""Printer of a ModernConfig as a standalone Python script, with plain TensorFlow and tf_keras."""

import ast
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.config.decisions import CLUSTERED, find_unread_settings, is_server, process_config
from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.output.calls import Call, source_lines
from estimator_bridge.compat.config.output.config_calls import callback_calls, evaluator_call, resolver_call, strategy_call
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.compat.config.tables.tpu_config import shape_of

_SOURCES = ("callback_rules.py", "callbacks.py")

_LINES = {
    "threads.intra_op": "tf.config.threading.set_intra_op_parallelism_threads({0!r})",
    "threads.inter_op": "tf.config.threading.set_inter_op_parallelism_threads({0!r})",
    "devices.visible_gpus": "if gpus:  # else there is nothing to choose from\n    tf.config.set_visible_devices([gpus[index] for index in {0!r}], 'GPU')",
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

_SERVER = """# This process only serves; the chief coordinates.
server = tf.distribute.Server(
    cluster_resolver.cluster_spec(),
    job_name=cluster_resolver.task_type,
    task_index=cluster_resolver.task_id,
    protocol=cluster_resolver.rpc_layer,
)
server.join()"""


def to_python(config: ModernConfig) -> str:
    """Prints a configuration as a script.

    Args:
        config: Modern configuration.

    Returns:
        Source that sets the runtime, makes the strategy, and defines the arguments of compile and fit.

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
    calls = _calls(config)
    unread = [f"# {name} is not used: {reason}." for name, reason in find_unread_settings(config).items()]
    sections = [_imports(config, calls), *map("\n".join, (_runtime(config), _strategy(config), unread)), _classes(calls)]
    if not is_server(config):
        sections.append("\n".join(_training(config, calls)).strip("\n"))
    return "\n\n".join(section for section in sections if section) + "\n"


def _calls(config: ModernConfig) -> list[Call]:
    """Returns the calls of our classes: the callbacks of fit, or the evaluator of an evaluator's process."""
    own, folder = config.evaluation, config.training.model_dir
    if is_server(config):
        return []
    if config.cluster.task_type == "evaluator":
        return [] if folder is None else [evaluator_call(config, folder)]
    evaluates = any(value is not None for value in (own.steps, own.name, own.start_delay_secs, own.throttle_secs))
    return [call for origin, call in callback_calls(config).items() if origin != "evaluate" or evaluates]


def _imports(config: ModernConfig, calls: list[Call]) -> str:
    lines = ["import math", "import time", "from typing import Any", ""] if calls else []
    if config.devices.gpu_allocator == "cuda_malloc_async":
        variable = "os.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'  # read when the GPUs are initialised"
        lines = ["import os", *lines, variable, ""]
    keras = ["import tf_keras"] if calls else []
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
        yield f"# {config.devices.gpu_memory_fraction:g} of each GPU's memory: set it in megabytes, with LogicalDeviceConfiguration."


def _classes(calls: list[Call]) -> str:
    """Returns the source of the classes that the script needs, each after those that it uses."""
    source = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in _SOURCES)
    found = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    needed: set[str] = set()
    left = {inner.function for call in calls for inner in call.nested() if isinstance(inner, Call)} & found.keys()
    while left:
        needed |= left
        used = {inner.id for name in left for inner in ast.walk(found[name]) if isinstance(inner, ast.Name)}
        left = (used & found.keys()) - needed
    parts = [str(ast.get_source_segment(source, node)) for name, node in found.items() if name in needed]
    return "\n" + "\n\n\n".join(parts) + "\n" if parts else ""


def _strategy(config: ModernConfig) -> Iterator[str]:
    """Prints the strategy, its resolver, connections and input options."""
    own = process_config(config)
    name = own.strategy.name
    if own.cluster.jobs and name in CLUSTERED:
        yield from source_lines(resolver_call(own.cluster), "cluster_resolver = ")
    if own.strategy.remote_cluster:
        yield from _remote(own)
    if is_server(config):
        yield _SERVER
    elif name is None:
        yield "strategy = tf.distribute.get_strategy()"
    elif name == "TPUStrategy":
        yield from _tpu(own)
    else:
        yield from source_lines(strategy_call(own.strategy, bool(own.cluster.jobs)), "strategy = ")
    if own.strategy.input_per_replica is not None:
        mode = "PER_REPLICA" if own.strategy.input_per_replica else "PER_WORKER"
        yield "# strategy.distribute_datasets_from_function(dataset_fn, input_options)"
        yield f"mode = tf.distribute.InputReplicationMode.{mode}"
        yield "input_options = tf.distribute.InputOptions(experimental_replication_mode=mode)"


def _remote(config: ModernConfig) -> Iterator[str]:
    jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
    filters = config.devices.filters
    if filters and config.cluster.task_type:
        yield "filters = tf.config.experimental.ClusterDeviceFilters()"
        yield f"filters.set_device_filters({config.cluster.task_type!r}, {config.cluster.task_id or 0}, {list(filters)!r})"
    extra = ", cluster_device_filters=filters" if filters and config.cluster.task_type else ""
    yield f"tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({jobs!r}){extra})"


def _tpu(config: ModernConfig) -> Iterator[str]:
    own = config.strategy
    job = f", job_name={own.tpu_job_name!r}" if own.tpu_job_name else ""
    yield f"resolver = tf.distribute.cluster_resolver.TPUClusterResolver({own.tpu!r}{job})"
    yield "tf.config.experimental_connect_to_cluster(resolver)"
    yield "topology = tf.tpu.experimental.initialize_tpu_system(resolver)"
    if own.cores_per_replica is None:
        yield "strategy = tf.distribute.TPUStrategy(resolver)"
        return
    yield "device_assignment = tf.tpu.experimental.DeviceAssignment.build("
    yield "    topology,"
    yield f"    computation_shape={shape_of(own.cores_per_replica)},"
    yield f"    num_replicas=topology.num_tasks * topology.num_tpus_per_task // {own.cores_per_replica},"
    yield ")"
    yield "strategy = tf.distribute.TPUStrategy(resolver, device_assignment)"


def _training(config: ModernConfig, calls: list[Call]) -> Iterator[str]:
    """Prints the lines that come once there is a model: arguments of compile and fit, callbacks, or an evaluator."""
    steps = config.training.steps_per_execution
    if steps is not None:
        yield f"compile_arguments = {{'steps_per_execution': {steps}}}  # model.compile(loss, optimizer, **compile_arguments)"
    if config.cluster.task_type == "evaluator":
        if not calls:
            yield "# This process evaluates checkpoints: set training.model_dir to their folder."
        for call in calls:
            yield from [
                "",
                "",
                "def make_evaluator(model, validation_data):  # its start() evaluates each checkpoint as it comes",
            ]
            yield from source_lines(call, "    return ")
        return
    if config.training.global_batch_size is not None or config.training.per_replica_batch_size is not None:
        yield f"global_batch_size = {config.training.global_batch_size}  # of the dataset; {config.training.per_replica_batch_size} a replica"
    yield from _fit(config)
    if calls:
        yield from ["", "", "def make_callbacks(checkpoint, validation_data):", "    return ["]
        for call in calls:
            yield from source_lines(call, "        ", ",")
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
