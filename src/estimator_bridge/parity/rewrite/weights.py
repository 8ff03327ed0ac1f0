"""Values of the old script in the new script's variables and optimizer slots, through the checkpoint converter."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator_bridge.compat.checkpoint import ConversionReport, convert
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.rewrite.plan import RewritePlan

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Weights:
    """The variables of the new script's models and optimizers.

    Args:
        folder: Folder of the new side's checkpoints.
        plan: Comparison.
        models: Outermost models.
        optimizers: Optimizers that are no attribute of a model.
    """

    def __init__(self, folder: Path, plan: RewritePlan, models: Sequence[Any], optimizers: Sequence[Any]) -> None:
        self._folder, self._plan = folder, plan
        self.models = models
        self._optimizers = optimizers
        names = ["model", *(f"model_{i}" for i in range(1, len(models)))]
        kept = ["optimizer", *(f"optimizer_{i}" for i in range(1, len(optimizers)))]
        self._checkpoint = tf.train.Checkpoint(
            **dict(zip(names, models, strict=True)), **dict(zip(kept, optimizers, strict=True))
        )

    def write(self, name: str) -> str:
        """Writes the present values; returns the prefix."""
        return str(self._checkpoint.write(str(self._folder / name)))

    def give_back(self, source: str, like: str, name: str) -> ConversionReport:
        """Gives the variables the values of a checkpoint of the old script.

        Args:
            source: Prefix of the old checkpoint.
            like: Prefix of the present values.
            name: Name of the converted checkpoint.

        Raises:
            BridgeError: Variables of equal shape are ambiguous, or a pair of --map does not exist.
        """
        target = str(self._folder / name)
        report = convert(
            source,
            target,
            like=like,
            given=dict(self._plan.given),
            accept_order=self._plan.accept_order,
            allow_unmatched=True,
            overwrite=True,
            learning_rate=self._momentum_rate(),
        )
        if report.ambiguous:
            raise _ambiguous(report)
        metrics = [variable for model in self.models for metric in model.metrics for variable in metric.variables]
        before = [variable.numpy() for variable in metrics]
        self._checkpoint.restore(target).expect_partial()
        for variable, value in zip(metrics, before, strict=True):
            variable.assign(value)
        return report

    def _momentum_rate(self) -> float | None:
        """Returns the learning rate of the next step if a slot of Keras contains it and a schedule gives it; else None."""
        found = [
            optimizer for optimizer in self._optimizers if hasattr(optimizer, "momentum") and type(optimizer).__name__ == "SGD"
        ]
        for optimizer in found:
            rate = getattr(optimizer, "_learning_rate", None)
            if callable(rate) and not isinstance(rate, tf.Variable) and optimizer.momentum:
                return float(rate(optimizer.iterations))
        return None


def build_optimizer(optimizer: Any, variables: Sequence[Any]) -> None:
    """Makes the slots of an optimizer of either family."""
    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    elif hasattr(optimizer, "_create_all_weights"):  # tf_keras.optimizers.legacy
        with contextlib.suppress(NotImplementedError):
            optimizer._create_all_weights(variables)


def _ambiguous(report: ConversionReport) -> BridgeError:
    by_sources: dict[tuple[str, ...], list[str]] = {}
    for target, sources in report.ambiguous.items():
        by_sources.setdefault(sources, []).append(target.removesuffix(_VALUE))
    lines = []
    for sources, targets in by_sources.items():
        lines += [f"    {source} = {target}" for source, target in zip(sources, targets, strict=False)]
        if len(sources) != len(targets):
            lines.append(
                f"    # {len(sources)} old and {len(targets)} new variables: {', '.join(sources)}; {', '.join(targets)}"
            )
    return BridgeError(
        "Variables of equal shape cannot be paired by their names.",
        expected="one counterpart for each variable of the new script",
        received=f"{len(report.ambiguous)} ambiguous variables",
        fix="Give the pairs with --map FILE, or --accept-order if the order below is right. The pairs in order, as such a file:\n"
        + "\n".join(lines),
    )
