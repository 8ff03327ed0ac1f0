"""Estimates of a plan for a script: the script runs until it trains, and its training graph is placed, but nothing is computed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.distribution.strategies import Distribution, decision_for
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.estimates import PlanEstimate, estimate
from estimator_bridge.modern.parallel.mesh import prepare_mesh
from estimator_bridge.modern.parallel.norms import check_elementwise
from estimator_bridge.modern.parallel.placement import Placer
from estimator_bridge.modern.step.transplant import Transplant
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
        sharded_state: True if workers cut the optimizers' state between them.
    """

    micro: int = 1
    sharded_state: bool = False

    def __call__(self, model: ModelGraph, step: Plan) -> Mapping[str, str]:
        """Raises EndOfPlanning, or NotSupportedError for a plan that a run would refuse."""
        if self.sharded_state:
            check_elementwise(model, step)
        raise EndOfPlanning(estimate(model, step, self.mesh, self.placed(model, step), self.micro))


@dataclasses.dataclass
class PlanningEngine(ModernEngine):
    """A modern engine whose first training is estimated; the script ends there with EndOfPlanning, and nothing is written.

    Args:
        rows: Rows of a batch, which the shapes of the graph then have; None to leave them to the input_fn.
        sharded_state: True if workers cut the optimizers' state between them; the plan is that of one worker without it.
    """

    rows: int | None = None
    sharded_state: bool = False
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

    def _distribution(self, config: Any) -> Distribution:
        """Returns one device, whatever the RunConfig says: planned is what one worker or replica holds."""
        return Distribution(tf.distribute.get_strategy())

    def _check_mesh(self, config: Any) -> None:
        """Refuses a mesh as a run does; workers in step may have one, and TF_CONFIG names them only when they are launched."""
        if self.plan.placement.devices > 1 and decision_for(config).strategy != "MultiWorkerMirroredStrategy":
            super()._check_mesh(config)

    def _trainer(self, config: Any, chosen: Distribution) -> Callable[..., None]:
        def found(estimator: Any, call: TrainCall, distribution: Distribution, make: Callable[..., Any]) -> PlanEstimate:
            input_fn = call.input_fn if self.rows is None else with_rows(call.input_fn, self.rows)
            try:
                make(training_model(estimator, input_fn, distribution), (), distribution.split)
            except EndOfPlanning as end:
                return end.found
            raise AssertionError("the placer estimates")

        def place(estimator: Any, call: TrainCall, distribution: Distribution, **_: Any) -> None:
            planned = found(estimator, call, distribution, self._transplants(distribution))
            if self.rows is not None and self.plan.micro > 1:
                placer = dataclasses.replace(self._estimating, micro=1)
                whole = dataclasses.replace(distribution, micro_batches=1)
                one = found(estimator, call, whole, functools.partial(Transplant, place=placer))
                planned = dataclasses.replace(planned, whole=sum(round(kept) for kept in one.kept(self.rows).values()))
            raise EndOfPlanning(planned)

        return place

    def _placer(self) -> Placer:
        super()._placer()  # refuses what a run refuses
        return self._estimating

    @functools.cached_property
    def _estimating(self) -> EstimatingPlacer:
        placement = self.plan.placement
        return EstimatingPlacer(placement, prepare_mesh(placement.devices), self.plan.micro, self.sharded_state)


def with_rows(input_fn: Callable[..., Any], rows: int) -> Callable[..., Any]:
    """Returns an input_fn whose dense tensors have a static number of rows.

    Args:
        input_fn: The script's function.
        rows: Rows of a batch.
    """

    def sized(tensor: Any) -> Any:
        if not isinstance(tensor, tf.Tensor) or not tensor.shape.rank:
            return tensor
        first, *others = tensor.shape.as_list()  # with TensorFlow 1's shapes, an item of a shape is a Dimension and never None
        if first not in (None, rows):
            raise BridgeError(
                "The batches of the script have another number of rows.",
                expected=f"{rows}, as --rows says",
                received=f"{first} in {tensor.name!r}",
                fix=f"Give --rows {first}, or the script another batch size.",
            )
        return tf.ensure_shape(tensor, [rows, *others])

    @tf.autograph.experimental.do_not_convert
    def batch_of(*parts: Any) -> Any:
        return tf.nest.map_structure(sized, parts if len(parts) > 1 else parts[0])

    @functools.wraps(input_fn)
    def given(*args: Any, **kwargs: Any) -> Any:
        made = input_fn(*args, **kwargs)
        if isinstance(made, tf.data.Dataset):
            return made.map(batch_of)
        return tf.nest.map_structure(sized, made)

    return given


def _before_training(what: str) -> BridgeError:
    return BridgeError(
        f"The script {what} before it trains, so there is no training to plan.",
        expected="a script that calls train or train_and_evaluate first",
        fix="Give the script the arguments with which it trains.",
    )
