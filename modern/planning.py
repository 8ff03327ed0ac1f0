"""Estimates of a plan for a script: the script runs until it trains, and its training graph is placed, but nothing is computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.estimates import PlanEstimate, estimate
from estimator_bridge.modern.parallel.mesh import prepare_mesh
from estimator_bridge.modern.parallel.placement import Placer
from estimator_bridge.modern.training.train import training_model
from estimator_bridge.runtime.estimator_calls import EvaluateCall, ExportCall, PredictCall, TrainCall


class EndOfPlanning(SystemExit):
    """The end of a script whose plan is estimated.

    Args:
        found: Estimate.
    """

    def __init__(self, found: PlanEstimate) -> None:
        super().__init__(0)
        self.found = found


@dataclasses.dataclass(frozen=True)
class EstimatingPlacer(Placer):
    """A placer that estimates a plan and ends the script.

    Attributes:
        micro: Number of micro-batches of a step.
    """

    micro: int = 1

    def __call__(self, model: ModelGraph, step: Plan) -> Mapping[str, str]:
        """Raises EndOfPlanning."""
        raise EndOfPlanning(estimate(model, step, self.mesh, self.placed(model, step), self.micro))


class PlanningEngine(ModernEngine):
    """A modern engine whose first training is estimated; the script ends there with EndOfPlanning, and nothing is written."""

    writes = False

    def train(self, estimator: Any, call: TrainCall) -> Any:
        """Estimates the training, however many steps its model_dir has already.

        Raises:
            EndOfPlanning: The plan can be carried out.
            NotSupportedError: It cannot.
        """
        return super().train(estimator, dataclasses.replace(call, steps=1, max_steps=None))

    def evaluate(self, estimator: Any, call: EvaluateCall) -> dict[str, Any]:
        """Raises BridgeError: there is no training to estimate yet."""
        raise _before_training("evaluates")

    def predict(self, estimator: Any, call: PredictCall) -> Iterator[Any]:
        """Raises BridgeError: there is no training to estimate yet."""
        raise _before_training("predicts")

    def export_saved_model(self, estimator: Any, call: ExportCall) -> bytes:
        """Raises BridgeError: there is no training to estimate yet."""
        raise _before_training("exports")

    def _trainer(self, config: Any, chosen: Distribution) -> Callable[..., None]:
        def place(estimator: Any, call: TrainCall, distribution: Distribution, **_: Any) -> None:
            model = training_model(estimator, call.input_fn, distribution)
            self._transplants(distribution)(model, (), distribution.split)

        return place

    def _placer(self) -> Placer:
        super()._placer()  # refuses what a run refuses
        placement = self.plan.placement
        return EstimatingPlacer(placement, prepare_mesh(placement.devices), self.plan.micro)


def _before_training(what: str) -> BridgeError:
    return BridgeError(
        f"The script {what} before it trains, so there is no training to plan.",
        expected="a script that calls train or train_and_evaluate first",
        fix="Give the script the arguments with which it trains.",
    )
