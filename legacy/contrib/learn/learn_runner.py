"""``tf.contrib.learn.learn_runner``: makes an Experiment and carries out the part of it that falls to this task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.python.util.deprecation import deprecated

from estimator_bridge.legacy.contrib.learn.experiment import Experiment
from estimator_bridge.legacy.contrib.learn.run_config import RunConfig, TaskType

__all__ = ["run", "tune"]

_SCHEDULES = {
    TaskType.MASTER: "train_and_evaluate",
    TaskType.PS: "run_std_server",
    TaskType.WORKER: "train",
}


@deprecated(None, "Use tf.estimator.train_and_evaluate.")
def run(
    experiment_fn: Callable[..., Any],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Runs an Experiment.

    Args:
        experiment_fn: makes it of ``output_dir``, or of ``run_config`` and ``hparams``.
        output_dir: where to train.
        schedule: the method of the Experiment to call; what falls to this task of the cluster unless given.
        run_config: a RunConfig with a model_dir, instead of ``output_dir``.
        hparams: for ``experiment_fn``.

    Returns:
        What the method returns.

    Raises:
        ValueError: neither or both of ``output_dir`` and ``run_config``, or no such method.
        TypeError: ``experiment_fn`` is no function, or does not return an Experiment.
        RuntimeError: the Experiment's Estimator was not given this ``run_config``.
    """
    if (output_dir is None) == (run_config is None):
        raise ValueError("Must set value for either `output_dir` or `run_config`, and not for both")
    if not callable(experiment_fn):
        raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
    if run_config is not None:
        experiment = _with_checked_config(experiment_fn)(run_config=run_config, hparams=hparams)
    elif hparams is not None:
        raise ValueError("Must set `hparams` as None for `experiment_fn` with `output_dir`.")
    else:
        experiment = _checked(experiment_fn(output_dir=output_dir))
    task = schedule or _schedule(run_config or experiment.estimator.config)
    if not callable(getattr(experiment, task, None)):
        raise ValueError(f"Schedule references non-existent task {task}")  # noqa: TRY004 -- there is no such method
    return getattr(experiment, task)()


@deprecated(None, "Use tf.estimator.train_and_evaluate.")
def tune(experiment_fn: Callable[..., Any], tuner: Any) -> None:
    """Runs an Experiment for each trial of a tuner.

    Args:
        experiment_fn: makes it of ``run_config`` and ``hparams``.
        tuner: has ``next_trial()`` and ``run_experiment(experiment_fn)``.
    """
    while tuner.next_trial():
        tuner.run_experiment(_with_checked_config(experiment_fn, require_hparams=True))


def _with_checked_config(experiment_fn: Callable[..., Any], require_hparams: bool = False) -> Callable[..., Any]:
    def checked(run_config: Any, hparams: Any) -> Any:
        if not isinstance(run_config, RunConfig):
            raise ValueError("`run_config` must be `tf.contrib.learn.RunConfig` instance")  # noqa: TRY004 -- as TensorFlow 1
        if not run_config.model_dir:
            raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
        if require_hparams and hparams is None:
            raise ValueError("`hparams` cannot be `None`.")
        expected = run_config.uid()
        experiment = _checked(experiment_fn(run_config, hparams))
        used = getattr(experiment.estimator.config, "uid", str)()
        if used != expected:
            raise RuntimeError(
                "`RunConfig` instance is expected to be used by the `Estimator` inside the `Experiment`: pass `run_config` of "
                f"`experiment_fn` to it. expected {expected}, but got {used or experiment.estimator.config}"
            )
        return experiment

    return checked


def _checked(experiment: Any) -> Any:
    if not isinstance(experiment, Experiment):
        raise TypeError(f"Experiment builder did not return an Experiment instance, got {type(experiment)} instead.")
    return experiment


def _schedule(config: Any) -> str:
    cluster = config.cluster_spec
    if not cluster or sum(cluster.num_tasks(job) for job in cluster.jobs) <= 1:
        return "train_and_evaluate"
    if config.task_type not in _SCHEDULES:
        raise ValueError(f"Must specify a schedule: there is no default one for task type {config.task_type}")
    return _SCHEDULES[config.task_type]
