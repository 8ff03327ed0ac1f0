"""``tensorflow.python.distribute.estimator_training``: the Estimator's side of distributed training.

What was removed: the module, with TensorFlow 2.16 (March 2024). The distribute coordinator that it drives is still there.

Needed by: every ``RunConfig`` with a strategy (``train_distribute``, ``eval_distribute``, ``experimental_distribute``), and
every ``train``, ``evaluate`` and ``train_and_evaluate`` of an Estimator with such a RunConfig. A RunConfig asks for one of
three ways of running, which ``run_config`` tells apart:

- no coordinator: one process, or a TF_CONFIG cluster without a strategy; the Estimator trains without changes;
- independent workers: a strategy and a TF_CONFIG cluster; each process runs its own task;
- standalone client: ``experimental_distribute.remote_cluster``; this process drives servers that are already running.
"""

import sys

from estimator_bridge.legacy.restored.estimator_training.coordination import (
    estimator_evaluate,
    estimator_train,
    train_and_evaluate,
)
from estimator_bridge.legacy.restored.estimator_training.run_config import init_run_config, should_run_distribute_coordinator
from estimator_bridge.legacy.restored.estimator_training.tasks import CHIEF, EVALUATOR, PS, WORKER
from estimator_bridge.legacy.restored.placement import place

__all__ = [
    "CHIEF",
    "EVALUATOR",
    "PS",
    "WORKER",
    "estimator_evaluate",
    "estimator_train",
    "init_run_config",
    "restore",
    "should_run_distribute_coordinator",
    "train_and_evaluate",
]


def restore() -> None:
    """Puts the module back, unless this TensorFlow has it.

    Example:
        >>> restore()
        >>> from tensorflow.python.distribute import estimator_training
        >>> estimator_training.PS
        'ps'
    """
    place("tensorflow.python.distribute.estimator_training", sys.modules[__name__])
