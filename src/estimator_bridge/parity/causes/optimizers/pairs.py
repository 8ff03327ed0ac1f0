"""The optimizers of both sides that update the same variables."""

from __future__ import annotations

from estimator_bridge.parity.evidence import Evidence, OptimizerEvidence, StepEvidence

KERAS = {
    "GradientDescentOptimizer": "SGD",
    "MomentumOptimizer": "SGD",
    "AdamOptimizer": "Adam",
    "AdagradOptimizer": "Adagrad",
    "FtrlOptimizer": "Ftrl",
    "RMSPropOptimizer": "RMSprop",
    "AdadeltaOptimizer": "Adadelta",
    "NadamOptimizer": "Nadam",
    "AdaMaxOptimizer": "Adamax",
}
"""TensorFlow 1's optimizers -> Keras' classes."""


def in_use(step: StepEvidence) -> list[OptimizerEvidence]:
    """Returns the optimizers that update variables; all if that is not known."""
    return [one for one in step.optimizers if one.variables] or list(step.optimizers)


def pairs_at(evidence: Evidence, index: int) -> list[tuple[int, int]]:
    """Pairs the optimizers of a step by the variables that they update, else by order.

    Args:
        evidence: Evidence of both sides.
        index: Number of the step, from 1; 0 for the first one.

    Returns:
        Positions in both sides' ``optimizers``.
    """
    if not evidence.old.steps or not evidence.new.steps:
        return []
    at = max(index, 1) - 1
    old, new = ((side.steps[at] if at < len(side.steps) else side.steps[0]).optimizers for side in (evidence.old, evidence.new))
    found = []
    for here, one in enumerate(old):
        shared = [(len({*one.variables} & {*other.variables}), -there) for there, other in enumerate(new)]
        best = max(shared, default=(0, 0))
        if best[0]:
            found.append((here, -best[1]))
        elif here < len(new) and (new[here].variables or not one.variables):  # else the new script updates them by itself
            found.append((here, here))
    return found


def paired_optimizers(evidence: Evidence, index: int) -> list[tuple[OptimizerEvidence, OptimizerEvidence]]:
    """Returns the paired optimizers at a step, or at the last one of the first steps."""
    at = min(max(index, 1), len(evidence.old.steps), len(evidence.new.steps)) - 1
    return [
        (evidence.old.steps[at].optimizers[here], evidence.new.steps[at].optimizers[there])
        for here, there in pairs_at(evidence, at + 1)
    ]
