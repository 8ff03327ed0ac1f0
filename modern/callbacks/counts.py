"""Checks of counts: replicas agree on integers, since one value is saved, and a step counts as one if that says which batches were used."""

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.distribution.worker_checks import differing
from estimator_bridge.modern.graph.variables import Copies
from estimator_bridge.modern.step.transplant import Transplant


class EqualCounts(Callback):
    """Compares, between replicas, the variables that steps write and that have no mean; must precede savers.

    Args:
        distribution: Distribution of the training.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution

    def begin(self, transplant: Transplant, step: int) -> None:
        """Chooses the variables, without the global step and without those whose ``aggregation`` the script has set."""
        undeclared = tf.VariableAggregation.NONE
        declared = {one.op.name for one in transplant.model.variables() if one.aggregation != undeclared}
        self._counts = {
            name: variable
            for name, variable in transplant.variables.items()
            if _is_from_first_replica(variable) and variable is not transplant.global_step and name not in declared
        }

    def after(self, progress: Progress) -> bool:
        """Compares the variables.

        Raises:
            NotSupportedError: They differ; raised on all workers.
        """
        apart = differing(self._counts, self._distribution) if self._counts else []
        if apart:
            raise NotSupportedError(
                f"Replicas wrote different values to {', '.join(map(repr, apart))}, and integers have no mean to save.",
                expected="values that do not depend on a replica's own batch",
                received=f"differences at global step {progress.step}",
                fix="Count in floating point, whose mean is saved, or give the variable "
                "aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA.",
            )
        return False


class CountedSteps(Callback):
    """Refuses a train_op that counts other than one step at a time, since steps say which batches were used."""

    def begin(self, transplant: Transplant, step: int) -> None:
        """Notes the global step before the training."""
        self._step = step

    def after(self, progress: Progress) -> bool:
        """Compares the steps with their count.

        Raises:
            NotSupportedError: They differ.
        """
        expected, self._step = self._step + len(progress.losses), progress.step
        if progress.step != expected:
            raise NotSupportedError(
                "The train_op does not count each step as one, so the global step does not say which batches were used.",
                expected=f"global step {expected}",
                received=f"global step {progress.step}",
                fix="Train without [elastic] and shares.",
            )
        return False


def _is_from_first_replica(variable: object) -> bool:
    if isinstance(variable, Copies):
        return not variable.values[0].dtype.is_floating
    return bool(getattr(variable, "aggregation", None) == tf.VariableAggregation.ONLY_FIRST_REPLICA)
