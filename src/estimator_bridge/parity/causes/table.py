"""All rules in the order in which sides can part; what one rule names hides the consequences that later ones would name."""

from __future__ import annotations

from estimator_bridge.parity.causes.cause import Cause
from estimator_bridge.parity.causes.loss import first_value, forward, gradients, weights
from estimator_bridge.parity.causes.measures import Rule
from estimator_bridge.parity.causes.optimizers import hyperparameters, pairs, updates
from estimator_bridge.parity.causes.structure import batches, initial_values, layers, variables
from estimator_bridge.parity.causes.training import evaluations, iterations
from estimator_bridge.parity.evidence import Evidence

RULES: tuple[Rule, ...] = (
    *(
        variables.unpaired_variables,
        variables.untrained_variables,
        batches.batch_size,
        batches.batch_values,
        batches.batch_order,
        initial_values.read_values,
        initial_values.set_values,
    ),
    *(layers.label_broadcast, layers.dropout, layers.batch_norm_updates, layers.flatten_order),
    *(
        first_value.label_smoothing,
        first_value.logits_as_probabilities,
        weights.loss_weights,
        forward.loss_scale,
        forward.regularizer,
        layers.batch_norm_epsilon,
        forward.reported_loss,
        first_value.first_value,
        forward.forward_pass,
    ),
    *(gradients.clipping, gradients.gradients, iterations.iterations, pairs.optimizer_parts, pairs.other_optimizer),
    *(
        updates.canned_defaults,
        updates.learning_rate,
        *hyperparameters.RULES,
        updates.momentum_scaling,
        gradients.later_clipping,
        updates.other_update,
    ),
    *(
        layers.batch_norm_momentum,
        hyperparameters.initial_accumulators,
        initial_values.initial_values,
        initial_values.lost_values,
        iterations.number_of_steps,
        iterations.smaller_batch,
        iterations.later_steps,
    ),
    *(
        evaluations.evaluation_dropout,
        evaluations.evaluation_batches,
        evaluations.evaluation_rows,
        evaluations.kept_metrics,
        evaluations.evaluation,
        evaluations.predictions,
    ),
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
