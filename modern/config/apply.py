"""Puts a ModernConfig in force, and reads its settings back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.decisions import CLUSTERED
from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.process import find_unread_settings, is_server
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.fit import Fit, prepare_fit, sidecar_evaluator
from estimator_bridge.modern.config.make_strategy import connect, input_options, make_server, make_strategy
from estimator_bridge.modern.config.read_back import read_connection, read_evaluation, read_server, read_strategy
from estimator_bridge.modern.config.runtime_settings import check, find_gpu_settings, set_runtime
from estimator_bridge.runtime.autograph import leave_tf_keras_alone


@dataclasses.dataclass(frozen=True)
class Applied:
    """Settings in force before there is a model; makes the arguments of ``fit``, or an evaluator, once there is one.

    Attributes:
        config: Modern configuration that was applied.
        strategy: Strategy under which to build and train the model.
        in_force: Setting -> value, read back from TensorFlow.
        without_effect: Setting that nothing here acts on -> reason.
        input_options: Options of ``strategy.distribute_datasets_from_function``; None if the configuration has none.
        server: Server of a ps or worker under ParameterServerStrategy; such a process only calls ``server.join()``.
        pending: Settings that ``fit`` and ``evaluator`` put in force once there is a model.
    """

    config: ModernConfig
    strategy: Any
    in_force: Mapping[str, Any]
    without_effect: Mapping[str, str]
    input_options: Any
    server: Any
    pending: frozenset[str]

    def fit(self, model: Any, checkpoint: Any = None, validation_data: Any = None) -> Fit:
        """Makes the arguments of ``model.fit`` other than the dataset, and reads their settings back.

        Args:
            model: Model, compiled with ``compile_arguments`` under the strategy, and restored.
            checkpoint: A ``tf.train.Checkpoint`` to save; without one nothing is saved.
            validation_data: Dataset to evaluate on; without one nothing is evaluated.

        Returns:
            Arguments, callbacks, and the settings that they have in force.

        Raises:
            BridgeError: The model, the manager or a callback does not have a setting in force.
        """
        return prepare_fit(self.config, self.pending, model, checkpoint, validation_data)

    def evaluator(self, model: Any, data: Any) -> Any:
        """Makes the evaluator of an evaluator's process: ``start()`` evaluates each checkpoint in model_dir, up to max_steps.

        Args:
            model: Model, compiled under the strategy.
            data: A dataset.

        Returns:
            A ``tf_keras.utils.SidecarEvaluator``, whose settings were read back.

        Raises:
            BridgeError: There is no model_dir, or the evaluator does not have a setting in force.
        """
        return sidecar_evaluator(self.config, model, data)


def apply(config: ModernConfig) -> Applied:
    """Sets a configuration, and reads it back.

    Call it before anything else uses TensorFlow: most settings cannot change once its devices are initialised.

    Args:
        config: Modern configuration.

    Returns:
        The strategy, every setting as TensorFlow gives it back, and the settings that wait for ``fit``.

    Raises:
        BridgeError: TensorFlow refused or ignored a setting, or the job would compute something else.

    Example:
        >>> from estimator_bridge.compat.config.model import Devices
        >>> apply(ModernConfig(devices=Devices(soft_placement=True))).in_force
        {'devices.soft_placement': True}
    """
    settings = flatten(config)
    unused = find_unused(config, settings)
    asked = {name: value for name, value in settings.items() if name not in unused}
    in_force = set_runtime(asked)
    leave_tf_keras_alone()
    if "strategy.remote_cluster" in asked:
        connect(config)
    server, strategy, options = make_server(config) if is_server(config) else None, _strategy(config), input_options(config)
    found = {name: value for name, value in _read_objects(config, strategy, server, options, asked).items() if name in asked}
    check(asked, found)
    pending = frozenset(set(asked) - set(in_force) - set(found))
    return Applied(config, strategy, in_force | found, unused, options, server, pending)


def _read_objects(config: ModernConfig, strategy: Any, server: Any, options: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the settings of the objects that this process made."""
    found = (
        {} if options is None else {"strategy.input_per_replica": options.experimental_replication_mode.name == "PER_REPLICA"}
    )
    found |= read_connection(config) if "strategy.remote_cluster" in asked else {}
    if config.cluster.task_type == "evaluator":
        return found | {"cluster.task_type": "evaluator"} | read_evaluation(strategy, config.strategy.evaluation)
    return (read_strategy(strategy, asked) if server is None else read_server(server)) | found


def _strategy(config: ModernConfig) -> Any:
    try:
        return make_strategy(config)
    except (RuntimeError, ValueError, TypeError, AttributeError, OSError, AssertionError) as error:
        raise BridgeError(
            f"tf.distribute.{config.strategy.name} cannot be made.",
            received=error,
            fix="Correct the section strategy or cluster of the config.",
        ) from error


def find_unused(config: ModernConfig, settings: Mapping[str, Any]) -> dict[str, str]:
    """Finds the settings that nothing here acts on.

    Args:
        config: Modern configuration.
        settings: Its settings by name.

    Returns:
        Setting -> reason.

    Raises:
        BridgeError: A setting must not be ignored: the job would compute something else.

    Example:
        >>> from estimator_bridge.compat.config.model import Strategy
        >>> find_unused(ModernConfig(strategy=Strategy(tpu="x")), {"strategy.tpu": "x"})
        {'strategy.tpu': 'only TPUStrategy reads it'}
    """
    _refuse_lonely_tasks(config)
    _refuse_evaluation(config)
    if "devices.gpu_memory_fraction" in settings:
        raise BridgeError(
            "devices.gpu_memory_fraction cannot be set: tf.config takes megabytes.",
            fix="Set devices.gpu_memory_limits instead.",
        )
    return find_gpu_settings(settings) | find_unread_settings(config)


def _refuse_lonely_tasks(config: ModernConfig) -> None:
    own = config.cluster
    training = sum(len(tasks) for job, tasks in own.jobs.items() if job in {"chief", "worker"})
    if training > 1 and own.task_type != "evaluator" and config.strategy.name not in {*CLUSTERED, "TPUStrategy"}:
        raise BridgeError(
            f"The cluster has {training} tasks that train, and {config.strategy.name or 'one device'} belongs to one process: each would "
            "train a model of its own.",
            expected=f"strategy.name of {' or '.join(sorted(CLUSTERED))}",
            received=config.strategy.name,
            fix="Set strategy.name, or drop cluster.jobs.",
        )


def _refuse_evaluation(config: ModernConfig) -> None:
    kind = config.strategy.evaluation.get("kind")
    if config.cluster.task_type == "evaluator" and kind in CLUSTERED:
        raise BridgeError(
            f"strategy.evaluation: {kind} spans several processes, and an evaluator is one.",
            expected="MirroredStrategy, CentralStorageStrategy or OneDeviceStrategy",
            received=kind,
        )
