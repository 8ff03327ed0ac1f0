"""All rules in the order in which sides can part; what one rule names hides the consequences that later ones would name."""

from __future__ import annotations

from estimator_bridge.parity.causes.cause import Cause
from estimator_bridge.parity.causes.loss.forward import forward_pass, loss_scale, regularizer, reported_loss
from estimator_bridge.parity.causes.loss.gradients import clipping, gradients
from estimator_bridge.parity.causes.measures import Rule
from estimator_bridge.parity.causes.optimizers import hyperparameters
from estimator_bridge.parity.causes.optimizers.hyperparameters import initial_accumulators
from estimator_bridge.parity.causes.optimizers.pairs import optimizer_parts, other_optimizer
from estimator_bridge.parity.causes.optimizers.rates import canned_defaults, learning_rate
from estimator_bridge.parity.causes.optimizers.updates import momentum_scaling, other_update
from estimator_bridge.parity.causes.structure.batches import batch_order, batch_size, batch_values
from estimator_bridge.parity.causes.structure.graph import batch_norm_epsilon, dropout, flatten_order, label_broadcast
from estimator_bridge.parity.causes.structure.normalization import batch_norm_momentum, batch_norm_updates
from estimator_bridge.parity.causes.structure.variables import unpaired_variables, untrained_variables
from estimator_bridge.parity.causes.training.evaluations import evaluation, evaluation_dropout, predictions
from estimator_bridge.parity.causes.training.iterations import iterations, later_steps, number_of_steps
from estimator_bridge.parity.evidence import Evidence

RULES: tuple[Rule, ...] = (
    *(unpaired_variables, untrained_variables, batch_size, batch_values, batch_order),
    *(label_broadcast, dropout, batch_norm_updates, flatten_order),
    *(loss_scale, regularizer, batch_norm_epsilon, reported_loss, forward_pass, clipping, gradients),
    *(iterations, optimizer_parts, other_optimizer, canned_defaults, learning_rate),
    *(*hyperparameters.RULES, momentum_scaling, other_update, batch_norm_momentum, initial_accumulators),
    *(number_of_steps, later_steps, evaluation_dropout, evaluation, predictions),
)


def find_causes(evidence: Evidence) -> list[Cause]:
    """Returns what the rules find, the first cause first.

    Args:
        evidence: Evidence of both sides.
    """
    return [cause for rule in RULES for cause in rule(evidence)]


def first_cause(evidence: Evidence) -> Cause | None:
    """Returns the first cause of a difference; None if no rule finds one.

    Args:
        evidence: Evidence of both sides.

    Example:
        >>> from estimator_bridge.parity.evidence import Evidence, SideEvidence
        >>> side = SideEvidence(trainable=("kernel",))
        >>> first_cause(Evidence(side, SideEvidence(), unmatched_old=("kernel",))).name.value
        'missing variables'
    """
    return next((cause for rule in RULES for cause in rule(evidence)), None)
