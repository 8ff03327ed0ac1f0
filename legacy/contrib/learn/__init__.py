"""``tf.contrib.learn``: what ran Estimators before ``tf.estimator.train_and_evaluate``.

Offered for the Estimators of ``tf.estimator``. contrib.learn's own Estimator and canned models, which ``fit``, are refused by name:
``tf.estimator`` has them under the same names.
"""

from __future__ import annotations

from tensorflow.python.training.basic_session_run_hooks import NanLossDuringTrainingError

from estimator_bridge.legacy.contrib import mnist
from estimator_bridge.legacy.contrib.learn import learn_runner
from estimator_bridge.legacy.contrib.learn.constants import MetricKey, ModeKeys, PredictionKey, ProblemType
from estimator_bridge.legacy.contrib.learn.experiment import Experiment
from estimator_bridge.legacy.contrib.learn.export import ExportStrategy, garbage_collect_exports, make_export_strategy
from estimator_bridge.legacy.contrib.learn.input_fns import (
    InputFnOps,
    build_default_serving_input_fn,
    build_parsing_serving_input_fn,
)
from estimator_bridge.legacy.contrib.learn.metric_spec import MetricSpec
from estimator_bridge.legacy.contrib.learn.run_config import Environment, RunConfig, TaskType

__all__ = [
    "Experiment",
    "ExportStrategy",
    "InputFnOps",
    "MetricSpec",
    "ModeKeys",
    "NanLossDuringTrainingError",
    "PredictionKey",
    "ProblemType",
    "RunConfig",
    "TaskType",
    "build_parsing_serving_input_fn",
    "learn_runner",
    "make_export_strategy",
]

IN_FILES = {
    "DataSet": mnist.DataSet,
    "Environment": Environment,
    "MetricKey": MetricKey,
    "build_default_serving_input_fn": build_default_serving_input_fn,
    "garbage_collect_exports": garbage_collect_exports,
    "read_data_sets": mnist.read_data_sets,
    "run": learn_runner.run,
    "tune": learn_runner.tune,
}
