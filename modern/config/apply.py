"""Puts a ModernConfig in force, and reads back what is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.process import serves
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.connect import connect, input_options, make_server
from estimator_bridge.modern.config.evaluator import sidecar_evaluator
from estimator_bridge.modern.config.fit import Fit, prepare_fit
from estimator_bridge.modern.config.make_strategy import make_strategy
from estimator_bridge.modern.config.read_back import read_connection, read_evaluation, read_server, read_strategy
from estimator_bridge.modern.config.runtime_settings import check, set_runtime
from estimator_bridge.modern.config.unused import without_effect
from estimator_bridge.runtime.autograph import leave_tf_keras_alone


@dataclasses.dataclass(frozen=True)
class Applied:
    """What is in force before there is a model, and what makes the rest.

    Attributes:
        config: that was applied.
        strategy: to build and train the model under.
        in_force: setting -> value, read back from TensorFlow.
        without_effect: settings that nothing here acts on, with the reason.
        input_options: for ``strategy.distribute_datasets_from_function``, where the configuration says something of it.
        server: of a ps or worker under ParameterServerStrategy: ``server.join()`` is all that such a process does.
        pending: settings that ``fit`` and ``evaluator`` put in force, once there is a model.
    """

    config: ModernConfig
    strategy: Any
    in_force: Mapping[str, Any]
    without_effect: Mapping[str, str]
    input_options: Any
    server: Any
    pending: frozenset[str]

    def fit(self, model: Any, checkpoint: Any = None, validation_data: Any = None) -> Fit:
        """What ``model.fit`` gets beside the dataset, read back field by field.

        Args:
            model: compiled with ``compile_arguments`` under the strategy, and restored.
            checkpoint: a ``tf.train.Checkpoint`` to save; without one nothing is saved.
            validation_data: a dataset to evaluate on; without one nothing is evaluated.

        Returns:
            Arguments, callbacks, and what they hold.

        Raises:
            BridgeError: for a setting that the model, the manager or a callback does not hold.
        """
        return prepare_fit(self.config, self.pending, model, checkpoint, validation_data)

    def evaluator(self, model: Any, data: Any) -> Any:
        """What an evaluator's process starts: ``start()`` evaluates each checkpoint in model_dir, up to max_steps.

        Args:
            model: compiled, under the strategy.
            data: a dataset.

        Returns:
            A ``tf_keras.utils.SidecarEvaluator``, read back field by field.

        Raises:
            BridgeError: without a model_dir, and for a setting that the evaluator does not hold.
        """
        return sidecar_evaluator(self.config, model, data)


def apply(config: ModernConfig) -> Applied:
    """Sets what a configuration says, and reads it back.

    Call it before anything else uses TensorFlow: most settings cannot change once its devices are initialised.

    Args:
        config: what to set.

    Returns:
        The strategy, every setting as TensorFlow gives it back, and what is left for ``fit``.

    Raises:
        BridgeError: for a setting that TensorFlow refused, or took and ignored, and where the job would compute something else.

    Example:
        >>> from estimator_bridge.compat.config.model import Devices
        >>> apply(ModernConfig(devices=Devices(soft_placement=True))).in_force
        {'devices.soft_placement': True}
    """
    settings = flatten(config)
    unused = without_effect(config, settings)
    asked = {name: value for name, value in settings.items() if name not in unused}
    in_force = set_runtime(asked)
    leave_tf_keras_alone()
    if "strategy.remote_cluster" in asked:
        connect(config)
    server, strategy, options = make_server(config) if serves(config) else None, _strategy(config), input_options(config)
    told = {name: value for name, value in _told(config, strategy, server, options, asked).items() if name in asked}
    check(asked, told)
    left = frozenset(set(asked) - set(in_force) - set(told))
    return Applied(config, strategy, in_force | told, unused, options, server, left)


def _told(config: ModernConfig, strategy: Any, server: Any, options: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the objects say that this process made."""
    told = (
        {} if options is None else {"strategy.input_per_replica": options.experimental_replication_mode.name == "PER_REPLICA"}
    )
    told |= read_connection(config) if "strategy.remote_cluster" in asked else {}
    if config.cluster.task_type == "evaluator":
        return told | {"cluster.task_type": "evaluator"} | read_evaluation(strategy, config.strategy.evaluation)
    return (read_strategy(strategy, asked) if server is None else read_server(server)) | told


def _strategy(config: ModernConfig) -> Any:
    try:
        return make_strategy(config)
    except (RuntimeError, ValueError, TypeError, AttributeError, OSError, AssertionError) as error:
        raise BridgeError(f"tf.distribute.{config.strategy.name} cannot be made.", received=error) from error
