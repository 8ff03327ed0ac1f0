"""``tf.contrib.learn``: what ran Estimators before ``tf.estimator.train_and_evaluate``.

Offered for the Estimators of ``tf.estimator``. contrib.learn's own Estimator and canned models, which ``fit``, are in the real
tf.contrib alone: ``tf.estimator`` has them under the same names.
"""

from __future__ import annotations

from tensorflow.python.training.basic_session_run_hooks import NanLossDuringTrainingError

from estimator_bridge.legacy.contrib.learn import learn_runner
from estimator_bridge.legacy.contrib.learn.constants import ModeKeys
from estimator_bridge.legacy.contrib.learn.experiment import Experiment
from estimator_bridge.legacy.contrib.learn.export import ExportStrategy, garbage_collect_exports, make_export_strategy
from estimator_bridge.legacy.contrib.learn.run_config import Environment, RunConfig, TaskType

__all__ = [
    "Experiment",
    "ExportStrategy",
    "ModeKeys",
    "NanLossDuringTrainingError",
    "RunConfig",
    "TaskType",
    "learn_runner",
    "make_export_strategy",
]

IN_FILES = {
    "Environment": Environment,
    "garbage_collect_exports": garbage_collect_exports,
    "run": learn_runner.run,
    "tune": learn_runner.tune,
}
