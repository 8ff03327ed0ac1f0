"""Lines of the printed script that come once there is a model: arguments of compile and fit, callbacks, or an evaluator."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.output.callback_calls import callback_calls, evaluator_call
from estimator_bridge.compat.config.output.calls import Call, source_lines


def classes_needed(config: ModernConfig) -> list[str]:
    """Returns the names of our classes that the lines use.

    Args:
        config: Modern configuration to print.
    """
    if config.cluster.task_type != "evaluator":
        return [call.function for call in _callbacks(config)]
    if config.training.model_dir is None:
        return []
    calls = evaluator_call(config, config.training.model_dir).nested()
    return [call.function for call in calls if isinstance(call, Call)]


def training_lines(config: ModernConfig) -> Iterator[str]:
    """Prints the lines.

    Args:
        config: Modern configuration to print.

    Yields:
        Lines of Python.
    """
    steps = config.training.steps_per_execution
    if steps is not None:
        yield f"compile_arguments = {{'steps_per_execution': {steps}}}  # model.compile(loss, optimizer, **compile_arguments)"
    if config.cluster.task_type == "evaluator":
        yield from _evaluator(config)
        return
    if config.training.global_batch_size is not None or config.training.per_replica_batch_size is not None:
        yield f"global_batch_size = {config.training.global_batch_size}  # of the dataset; {config.training.per_replica_batch_size} a replica"
    yield from _fit(config)
    made = _callbacks(config)
    if made:
        yield from ["", "", "def make_callbacks(checkpoint, validation_data):", "    return ["]
        for call in made:
            yield from source_lines(call, "        ", ",")
        yield "    ]"


def _evaluator(config: ModernConfig) -> Iterator[str]:
    if config.training.model_dir is None:
        yield "# This process evaluates checkpoints: set training.model_dir to their folder."
        return
    yield from ["", "", "def make_evaluator(model, validation_data):  # its start() evaluates each checkpoint as it comes"]
    yield from source_lines(evaluator_call(config, config.training.model_dir), "    return ")


def _callbacks(config: ModernConfig) -> list[Call]:
    own = config.evaluation
    evaluates = any(value is not None for value in (own.steps, own.name, own.start_delay_secs, own.throttle_secs))
    return [call for origin, call in callback_calls(config).items() if origin != "evaluate" or evaluates]


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
