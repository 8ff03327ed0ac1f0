"""Printer of a ModernConfig as a standalone Python script, with plain TensorFlow and tf_keras."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.output.python_strategy import strategy_lines
from estimator_bridge.compat.config.output.python_training import classes_needed, training_lines
from estimator_bridge.compat.config.process import find_unread_settings, is_server
from estimator_bridge.compat.config.settings import flatten

_SOURCES = ("callback_rules.py", "callbacks/base.py", "callbacks/training.py", "callbacks/evaluation.py")

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
    sections = [_imports(config), "\n".join(_runtime(config)), "\n".join(strategy_lines(config)), "\n".join(_unread(config))]
    if not is_server(config):
        sections += [_classes(config), "\n".join(training_lines(config)).strip("\n")]
    return "\n\n".join(section for section in sections if section) + "\n"


def _imports(config: ModernConfig) -> str:
    kinds = [] if is_server(config) else classes_needed(config)
    lines = ["import math", "import time", "from typing import Any", ""] if kinds else []
    if config.devices.gpu_allocator == "cuda_malloc_async":
        lines = [
            "import os",
            *lines,
            "os.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'  # read when the GPUs are initialised",
            "",
        ]
    keras = ["import tf_keras"] if kinds else []
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


def _unread(config: ModernConfig) -> Iterator[str]:
    for name, reason in find_unread_settings(config).items():
        yield f"# {name} is not used: {reason}."


def _classes(config: ModernConfig) -> str:
    """Returns the source of the classes that the script needs, each after those that it uses."""
    source = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in _SOURCES)
    found = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    needed: set[str] = set()
    left = set(classes_needed(config))
    while left:
        needed |= left
        used = {inner.id for name in left for inner in ast.walk(found[name]) if isinstance(inner, ast.Name)}
        left = (used & found.keys()) - needed
    parts = [str(ast.get_source_segment(source, node)) for name, node in found.items() if name in needed]
    return "\n" + "\n\n\n".join(parts) + "\n" if parts else ""
