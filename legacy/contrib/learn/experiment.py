"""Experiment: an Estimator with its inputs, and the ways to train and evaluate it; ``tf.estimator.train_and_evaluate`` followed."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.util.deprecation import deprecated

from estimator_bridge.legacy.contrib.learn.evaluation import EvaluateAndExportSaved, EvaluateNewCheckpoints
from estimator_bridge.legacy.contrib.learn.export import ExportStrategy
from estimator_bridge.legacy.contrib.learn.run_config import Environment, RunConfig

_Predicate = Callable[..., Any]
_SECONDS_BETWEEN_WARNINGS = 600


class Experiment:
    """All that it takes to train and evaluate an Estimator.

    Args:
        estimator: a ``tf.estimator.Estimator``.
        train_input_fn: of training.
        eval_input_fn: of evaluation.
        eval_metrics: must be None: a model_fn names its metrics in ``eval_metric_ops``.
        train_steps: the global step at which training ends; None for the end of the input.
        eval_steps: batches of an evaluation; None for the end of the input.
        train_monitors: hooks of training.
        eval_hooks: hooks of evaluation.
        local_eval_frequency: ``min_eval_frequency`` of ``local_run``.
        eval_delay_secs: how long the first evaluation waits.
        continuous_eval_throttle_secs: from one continuous evaluation's start to the next one's, at least.
        min_eval_frequency: steps between looks for a new checkpoint to evaluate in ``train_and_evaluate``; 0 for none, 1 unless
            given.
        delay_workers_by_global_step: workers wait for a global step instead of for some seconds.
        export_strategies: one or more ExportStrategy.
        train_steps_per_iteration: of ``continuous_train_and_eval``; a tenth of ``train_steps``, or 1000, unless given.
        checkpoint_and_export: evaluate and export each checkpoint as it is saved.
        saving_listeners: of training's checkpoints.
        check_interval_secs: seconds between looks for a new checkpoint, at least.

    Raises:
        ValueError: not such an Estimator, or an argument that does not go with it.
    """

    @deprecated(
        None,
        "Please switch to tf.estimator.train_and_evaluate. You will also have to convert to a tf.estimator.Estimator.",
    )
    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Iterable[Any] | None = None,
        eval_hooks: Iterable[Any] | None = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
        check_interval_secs: float | None = 5,
    ) -> None:
        if not isinstance(estimator, tf.estimator.Estimator):
            raise ValueError("`estimator` must implement `tf.estimator.Estimator`.")  # noqa: TRY004 -- as TensorFlow 1 has it
        if eval_metrics is not None:
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`. "
                "Use `eval_metric_ops` in `tf.estimator.EstimatorSpec` instead."
            )
        if not isinstance(train_steps_per_iteration, (int, type(None))):
            raise ValueError("`train_steps_per_iteration` must be an integer.")  # noqa: TRY004 -- as TensorFlow 1 has it
        self.estimator, self.eval_metrics, self.train_steps, self.eval_steps = estimator, None, train_steps, eval_steps
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._train_hooks, self._eval_hooks = list(train_monitors or []), list(eval_hooks or [])
        self._local_eval_frequency = local_eval_frequency
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._eval_delay_secs, self._throttle_secs = eval_delay_secs, continuous_eval_throttle_secs
        self._delay_workers_by_global_step = delay_workers_by_global_step
        self._steps_per_iteration = train_steps_per_iteration
        self._checkpoint_and_export = checkpoint_and_export
        self._saving_listeners, self._check_interval_secs = saving_listeners, check_interval_secs
        self._export_strategies = _strategies(export_strategies)

    def extend_train_hooks(self, additional_hooks: Iterable[Any]) -> None:
        """More hooks for training."""
        self._train_hooks.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> tuple[ExportStrategy, ...]:
        """Other export strategies; returns those that there were."""
        old, self._export_strategies = self._export_strategies, _strategies(new_export_strategies)
        return old

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains up to ``train_steps``; a task of a cluster starts its server first.

        Args:
            delay_secs: how long to wait first; 5 seconds for each worker before this one, 60 at most, unless given.

        Raises:
            ValueError: a cluster with a ``tf.estimator.RunConfig``.
        """
        config = self.estimator.config
        if config.cluster_spec and config.master:
            self._join_cluster(config)
        hooks = [*self._train_hooks]
        if delay_secs is None and self._delay_workers_by_global_step:
            hooks.append(tf.train.GlobalStepWaiterHook(int(8000.0 * math.log(config.task_id + 1))))
        elif delay_secs is None:
            delay_secs = min(60, config.task_id * 5)
        _wait(delay_secs, "training")
        return self._train(hooks, max_steps=self.train_steps)

    def _join_cluster(self, config: Any) -> None:
        if not isinstance(config, RunConfig):
            raise ValueError(  # noqa: TRY004 -- as TensorFlow 1 has it
                "For distributed runtime, Experiment class only works with tf.contrib.learn.RunConfig for now, "
                f"but provided {type(config)}"
            )
        if config.environment == Environment.LOCAL:
            tf.logging.warning(
                "ClusterSpec and master are provided, but environment is set to 'local'. Set environment to 'cloud' if you intend "
                "to use the distributed runtime."
            )
        elif config.environment != Environment.GOOGLE:
            self._start_server()

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """Evaluates the latest checkpoint.

        Args:
            delay_secs: how long to wait first; ``eval_delay_secs`` unless given.
            name: of the evaluation's folder; ``one_pass`` unless given.
        """
        _wait(self._eval_delay_secs if delay_secs is None else delay_secs, "eval")
        return self._evaluate(name=name or "one_pass")

    @deprecated("2016-10-23", "local_run will be renamed to train_and_evaluate.")
    def local_run(self) -> Any:
        """``train_and_evaluate``, looking for a checkpoint every ``local_eval_frequency`` steps."""
        before, self._min_eval_frequency = self._min_eval_frequency, self._local_eval_frequency or 0
        try:
            return self.train_and_evaluate()
        finally:
            self._min_eval_frequency = before

    def train_and_evaluate(self) -> tuple[Any, Any]:
        """Trains in this process, evaluating new checkpoints on the way and the last one at the end.

        Returns:
            The last evaluation and the results of its exports.
        """
        before = [*self._train_hooks]
        config = self.estimator.config
        listener = None
        if self._checkpoint_and_export and (config.save_checkpoints_secs or config.save_checkpoints_steps):
            listener = EvaluateAndExportSaved(self._evaluate, self._export, self.estimator.model_dir)
            self._train_hooks.append(
                tf.train.CheckpointSaverHook(
                    self.estimator.model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps, listeners=[listener]
                )
            )
        elif self._min_eval_frequency and config.is_chief:
            self._train_hooks.append(
                EvaluateNewCheckpoints(
                    self._evaluate, self.estimator.model_dir, self._min_eval_frequency, self._check_interval_secs
                )
            )
        try:
            self.train(delay_secs=0)
        finally:
            self._train_hooks = before
        if listener is not None:
            return listener.eval_result, listener.export_results
        result = self._evaluate()
        return result, self._export(result)

    def continuous_train_and_eval(self, continuous_eval_predicate_fn: _Predicate | None = None) -> tuple[Any, Any]:
        """Trains and evaluates in turn up to ``train_steps``.

        Args:
            continuous_eval_predicate_fn: goes on while it is true, of the last result and perhaps of ``checkpoint_path``.

        Returns:
            The last evaluation and the results of its exports.
        """
        goes_on = _standard(continuous_eval_predicate_fn)
        steps = self._steps_per_iteration or (1000 if self.train_steps is None else int(self.train_steps / 10))
        result, exports, checkpoint = None, None, None
        while goes_on(result, checkpoint) and not self._is_trained(result):
            self._train(self._train_hooks, steps=steps)
            checkpoint = tf.train.latest_checkpoint(self.estimator.model_dir)
            result = self._evaluate(name="one_pass", checkpoint_path=checkpoint)
            exports = self._export(result)
        return result, exports

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: _Predicate | None = None,
        name: str = "continuous",
    ) -> None:
        """Evaluates and exports each new checkpoint until one is at ``train_steps``.

        Args:
            delay_secs: how long to wait first; ``eval_delay_secs`` unless given.
            throttle_delay_secs: instead of ``continuous_eval_throttle_secs``.
            evaluate_checkpoint_only_once: else the same one again, as long as it is the latest.
            continuous_eval_predicate_fn: goes on while it is true, of the last result and perhaps of ``checkpoint_path``.
            name: of the evaluation's folder.
        """
        self._evaluate_continuously(
            self._eval_input_fn,
            name,
            delay_secs,
            throttle_delay_secs,
            continuous_eval_predicate_fn,
            self._export,
            evaluate_checkpoint_only_once,
        )

    def continuous_eval_on_train_data(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        continuous_eval_predicate_fn: _Predicate | None = None,
        name: str = "continuous_on_train_data",
    ) -> None:
        """``continuous_eval`` of the training input, without exports."""
        self._evaluate_continuously(
            self._train_input_fn, name, delay_secs, throttle_delay_secs, continuous_eval_predicate_fn, lambda *_, **__: None
        )

    def _evaluate_continuously(
        self,
        input_fn: Callable[..., Any],
        name: str,
        delay_secs: float | None,
        throttle_secs: float | None,
        predicate: _Predicate | None,
        export: Callable[..., Any],
        only_once: bool = True,
    ) -> None:
        goes_on = _standard(predicate)
        _wait(self._eval_delay_secs if delay_secs is None else delay_secs, "eval")
        throttle_secs = self._throttle_secs if throttle_secs is None else throttle_secs
        last_path, last_warning = None, -math.inf
        result: Any = None
        while goes_on(result, last_path) and not self._is_trained(result):
            start = time.time()
            path = tf.train.latest_checkpoint(self.estimator.model_dir)
            if path and not (only_once and path == last_path):
                result = self._evaluate(name=name, checkpoint_path=path, input_fn=input_fn) or {}
                export(result, checkpoint_path=path)
                last_path, last_warning = path, -math.inf
            else:
                result = {}
                if start - last_warning > _SECONDS_BETWEEN_WARNINGS:
                    tf.logging.warning("No new checkpoint ready for evaluation.")
                    last_warning = start
            time.sleep(max(0.0, throttle_secs - (time.time() - start)))

    def run_std_server(self) -> None:
        """Serves this task's share of the cluster, for ever."""
        self._start_server().join()

    def test(self) -> Any:
        """One step of training, one of evaluation, and the exports; returns the evaluation."""
        self._train(self._train_hooks, steps=1)
        result = self.estimator.evaluate(self._eval_input_fn, steps=1, name="one_pass")
        self._export(result)
        return result

    def _is_trained(self, result: Any) -> bool:
        step = (result or {}).get(tf.GraphKeys.GLOBAL_STEP)
        return bool(step and self.train_steps and step >= self.train_steps)

    def _train(self, hooks: list[Any], **until: int | None) -> Any:
        return self.estimator.train(self._train_input_fn, hooks=hooks, saving_listeners=self._saving_listeners, **until)

    def _evaluate(
        self, name: str | None = None, checkpoint_path: str | None = None, input_fn: Callable[..., Any] | None = None
    ) -> Any:
        return self.estimator.evaluate(
            input_fn or self._eval_input_fn,
            steps=self.eval_steps,
            name=name,
            checkpoint_path=checkpoint_path,
            hooks=self._eval_hooks,
        )

    def _export(self, eval_result: Any, checkpoint_path: str | None = None) -> list[Any]:
        return [
            strategy.export(
                self.estimator, f"{self.estimator.model_dir}/export/{strategy.name}".encode(), checkpoint_path, eval_result
            )
            for strategy in self._export_strategies
        ]

    def _start_server(self) -> Any:
        config = self.estimator.config
        if not (config.cluster_spec and config.task_type and config.master) or config.task_id is None:
            raise ValueError(
                "Could not start server; be sure to specify cluster_spec, task_type, master, and task in RunConfig or set the "
                "TF_CONFIG environment variable."
            )
        return tf.train.Server(config.cluster_spec, config.task_type, config.task_id, config=config.tf_config)


def _strategies(given: Any) -> tuple[ExportStrategy, ...]:
    strategies = (given,) if isinstance(given, ExportStrategy) else tuple(given or ())
    for strategy in strategies:
        if not isinstance(strategy, ExportStrategy):
            raise ValueError(  # noqa: TRY004 -- as TensorFlow 1 has it
                f"`export_strategies` must be an ExportStrategy, an iterable of ExportStrategy, or `None`, found {strategy}."
            )
    return strategies


def _standard(predicate: _Predicate | None) -> Callable[[Any, Any], Any]:
    """The predicate, of the result and the checkpoint's path, whether it asks for the path or not."""
    if predicate is None:
        return lambda result, path: True
    if not callable(predicate):
        raise ValueError("`continuous_eval_predicate_fn` must be a callable, or None.")  # noqa: TRY004 -- as TensorFlow 1
    takes_path = "checkpoint_path" in inspect.signature(predicate).parameters
    return lambda result, path: predicate(result, checkpoint_path=path if result else None) if takes_path else predicate(result)


def _wait(seconds: float | None, what: str) -> None:
    if seconds:
        tf.logging.info("Waiting %d secs before starting %s.", seconds, what)
        time.sleep(seconds)
