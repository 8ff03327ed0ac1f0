"""What a step counts: one value of it is saved, so all replicas must have the same."""

from __future__ import annotations

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.distribution.worker_checks import differing
from estimator_bridge.modern.graph.variables import Copies
from estimator_bridge.modern.step.transplant import Transplant


class EqualCounts(Callback):
    """Compares the variables that steps write to and that have no mean; before anything is saved where it comes first.

    Args:
        distribution: of the training.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution

    def begin(self, transplant: Transplant, step: int) -> None:
        """Chooses them; the global step is the loop's own, and an ``aggregation`` is a script's word that one value is to be saved."""
        undeclared = tf.VariableAggregation.NONE
        declared = {one.op.name for one in transplant.model.variables() if one.aggregation != undeclared}
        self._counts = {
            name: variable
            for name, variable in transplant.variables.items()
            if _of_the_first(variable) and variable is not transplant.global_step and name not in declared
        }

    def after(self, progress: Progress) -> bool:
        """Compares.

        Raises:
            NotSupportedError: where they differ, on all workers.
        """
        apart = differing(self._counts, self._distribution) if self._counts else []
        if apart:
            raise NotSupportedError(
                f"Steps wrote other values to {', '.join(map(repr, apart))} on each replica, and integers have no mean to save.",
                expected="values that do not depend on a replica's own batch",
                received=f"differences at global step {progress.step}",
                fix="Count in floating point, whose mean is saved, or give the variable "
                "aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA.",
            )
        return False


def _of_the_first(variable: object) -> bool:
    if isinstance(variable, Copies):
        return not variable.values[0].dtype.is_floating
    return bool(getattr(variable, "aggregation", None) == tf.VariableAggregation.ONLY_FIRST_REPLICA)
