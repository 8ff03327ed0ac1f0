"""Estimates of a plan for a script: the script runs until it trains, and its training graph is placed, but nothing is computed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.model import Cluster
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.make_strategy import resolver
from estimator_bridge.modern.distribution import strategies
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.estimates import PlanEstimate, estimate
from estimator_bridge.modern.parallel.mesh import prepare_mesh
from estimator_bridge.modern.parallel.placement import Placer
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.modern.training.train import checked_model
from estimator_bridge.runtime.estimator_calls import EvaluateCall, ExportCall, PredictCall, TrainCall
from estimator_bridge.runtime.patching import replaced


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
        """Raises EndOfPlanning, or NotSupportedError for a plan that a run would refuse."""
        raise EndOfPlanning(estimate(model, step, self.mesh, self.placed(model, step), self.micro))


@dataclasses.dataclass(frozen=True)
class PlannedDistribution(Distribution):
    """The distribution of one of several workers, while the others are not there."""

    def gather(self, row: Any) -> Any:
        """Returns this worker's row alone: another worker's may differ, e.g. if each input_fn shards its dataset by itself."""
        return row[tf.newaxis]

    @classmethod
    def of(cls, workers: int, gpus: int = 0) -> PlannedDistribution:
        """Makes the distribution of a number of workers, which are not connected.

        Args:
            workers: Number of workers.
            gpus: Number of GPUs of each worker that have a replica; without any, its CPU has one.
        """
        own = resolver(Cluster(), gpus)
        with tf.Graph().as_default():  # in eager mode it would configure collective operations
            strategy = tf.distribute.MultiWorkerMirroredStrategy(own)
            devices = tuple(f"/device:GPU:{number}" for number in range(gpus)) or ("/device:CPU:0",)
            strategy.extended._initialize_local(own, devices)
        strategy.extended._num_workers = workers
        return cls(strategy)


@dataclasses.dataclass(eq=False)
class PlanningEngine(ModernEngine):
    """A modern engine whose first training is estimated; the script ends there with EndOfPlanning, and nothing is written.

    A plan is refused by the same calls as in a training: the engine's own, ``checked_model``, and the transplant's up to its placer.

    Args:
        rows: Rows of a batch, which the shapes of the graph then have; None to leave them to the input_fn.
    """

    rows: int | None = None
    writes = False

    def evaluate(self, estimator: Any, call: EvaluateCall) -> dict[str, Any]:
        """Raises BridgeError: there is no training to estimate yet."""
        raise _before_training("evaluates")

    def predict(self, estimator: Any, call: PredictCall) -> Iterator[Any]:
        """Raises BridgeError: there is no training to estimate yet."""
        raise _before_training("predicts")

    def export_saved_model(self, estimator: Any, call: ExportCall) -> bytes:
        """Raises BridgeError: there is no training to estimate yet."""
        raise _before_training("exports")

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        """While active, ``train_and_evaluate`` runs the task that TF_CONFIG names, but waits for no other task.

        Raises:
            BridgeError: The task of TF_CONFIG does not train.
        """
        from tensorflow_estimator.python.estimator import training

        _check_task()
        with super().surroundings(), replaced(training._TrainingExecutor, _start_std_server=lambda *_: None):
            yield

    def _has_ended(self, estimator: Any, call: TrainCall) -> bool:
        """Returns False: a training is estimated however many steps its model_dir has already."""
        return False

    def _distribution(self, config: Any) -> Distribution:
        """Returns the distribution of one worker, or of one chief with parameter servers, without a connection to others."""
        row = strategies.executed_decision(config, self._workers)
        if row.strategy == "ParameterServerStrategy":
            return Distribution(tf.distribute.get_strategy())
        if row.strategy != "MultiWorkerMirroredStrategy":
            return super()._distribution(config)
        sizes = {job: len(tasks) for job, tasks in config.cluster_spec.as_dict().items()} if config.cluster_spec else {}
        there = sum(sizes.get(job, 0) for job in ("chief", "master", "worker"))
        gpus = len(tf.config.list_physical_devices("GPU"))
        return PlannedDistribution.of(there or self._workers, min(gpus, 1) if self.plan.placement.devices > 1 else gpus)

    @property
    def _workers(self) -> int:
        """Number of workers that the plan is for; of several numbers the largest, and the smallest that keeps a part of the state."""
        plan = self.plan
        return plan.data or len(plan.shares) or max(plan.workers, default=2 if plan.sharded_state else 1)

    def _check_mesh(self, config: Any) -> None:
        """Refuses a mesh as a run does; workers in step may have one, and TF_CONFIG names them only when they are launched."""
        if self.plan.placement.devices > 1 and strategies.decision_for(config).strategy != "MultiWorkerMirroredStrategy":
            super()._check_mesh(config)

    def _trainer(self, config: Any, chosen: Distribution) -> Callable[..., None]:
        def found(estimator: Any, call: TrainCall, distribution: Distribution, make: Callable[..., Any]) -> PlanEstimate:
            sized = call if self.rows is None else dataclasses.replace(call, input_fn=with_rows(call.input_fn, self.rows))
            model, _ = checked_model(estimator, sized, distribution)
            try:
                with distribution.strategy.scope():
                    make(model, (), distribution.split)
            except EndOfPlanning as end:
                return end.found
            raise AssertionError("the placer estimates")

        def place(estimator: Any, call: TrainCall, distribution: Distribution, **_: Any) -> None:
            planned = found(estimator, call, distribution, self._transplants(distribution))
            if self.rows is not None and distribution.micro_batches > 1:
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
        micro = 1 if self.plan.elastic or self.plan.shares else self.plan.micro  # those take whole batches
        return EstimatingPlacer(placement, prepare_mesh(placement.devices), micro)


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

    given.__signature__ = inspect.signature(input_fn)  # type: ignore[attr-defined]  # Estimator asks whether it takes an input_context
    return given


def _check_task() -> None:
    """Refuses a task that does not train: a parameter server waits for requests, and an evaluator for checkpoints."""
    context = strategies.task_context()
    task = context.value.get("task") if context else None
    if isinstance(task, dict) and task.get("type") in ("ps", "evaluator"):  # RunConfig reports what is wrong in others
        raise BridgeError(
            "The task of this process trains nothing, so there is no training to plan.",
            expected="a chief, a master or a worker as the task in TF_CONFIG",
            received=f"{task['type']} {task.get('index', 0)}",
            fix="Plan the chief: set the task in TF_CONFIG to it.",
        )


def _before_training(what: str) -> BridgeError:
    return BridgeError(
        f"The script {what} before it trains, so there is no training to plan.",
        expected="a script that calls train or train_and_evaluate first",
        fix="Give the script the arguments with which it trains.",
    )
