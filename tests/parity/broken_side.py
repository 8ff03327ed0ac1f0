"""A side of a comparison whose modern path is broken on purpose: ``broken_side.py FAULT ORDER``."""

from __future__ import annotations

import json
import sys
from typing import Any

SKIPPED = 6  # of the recorded batches, counted from 0


def _learning_rate() -> None:
    from estimator_bridge.modern.graph.optimizers import rebuild

    original = rebuild.build

    def build(optimizer: Any, given: Any) -> Any:
        built = original(optimizer, given)
        built.learning_rate = float(built.learning_rate.numpy()) * 1.1
        return built

    rebuild.build = build


def _variable() -> None:
    from estimator_bridge.modern.step.transplant import Transplant

    original = Transplant._apply

    def apply(self: Any, update: Any, optimizer: Any, known: Any, weight: Any) -> None:
        import dataclasses

        pairs = tuple(pair for pair in update.pairs if pair[1].op.name != "hidden/bias")
        original(self, dataclasses.replace(update, pairs=pairs), optimizer, known, weight)

    Transplant._apply = apply  # type: ignore[method-assign]


def _batch() -> None:
    from estimator_bridge.modern.graph.input_pipeline import InputPipeline

    original = InputPipeline.dataset

    def dataset(self: Any) -> Any:
        return original(self).enumerate().filter(lambda index, _: index != SKIPPED).map(lambda _, batch: batch)

    InputPipeline.dataset = dataset  # type: ignore[method-assign]


def _none() -> None:
    """The same way in, nothing broken."""


FAULTS = {"learning rate": _learning_rate, "variable": _variable, "batch": _batch, "none": _none}


def main(fault: str, order: str) -> int:
    from estimator_bridge import legacy
    from estimator_bridge.parity import side

    legacy.install()
    if json.loads(order)["side"] == "modern":
        FAULTS[fault]()
    return side.main(order)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
