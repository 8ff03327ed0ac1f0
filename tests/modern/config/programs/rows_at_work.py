"""Rows whose effect is seen in a fit, in a strategy or in what is cut: all in one process, which traces their model once."""

from __future__ import annotations

from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.modern.config.apply import apply
from tests.modern.config.programs import fitting, hooks, strategies
from tests.modern.config.programs.fits import Fits, Seen


def rows_at_work() -> Seen:
    """Returns each row, and whether it is seen at work."""
    mirrored = {"strategy.name": "MirroredStrategy", "strategy.devices": ("CPU:0", "CPU:1")}
    asked = mirrored | {"devices.logical_cpus": 2, "strategy.cross_device_ops": "ReductionToOneDevice"}
    applied = apply(unflatten(asked))
    fit = Fits()
    return {
        **fitting.checkpoints(fit),
        **fitting.summaries_and_loops(fit),
        **fitting.evaluation(fit),
        **hooks.stopping(fit),
        **hooks.saving_and_logging(fit),
        **hooks.summaries(fit),
        **hooks.nan(fit),
        **fitting.exporters(fit),
        **fitting.oldest_export(fit),
        **strategies.partitioners(),
        **strategies.resolvers(),
        **strategies.device_filters(),
        **strategies.strategies(),
        "mirrored": applied.in_force["strategy.cross_device_ops"] == "ReductionToOneDevice",
    }
