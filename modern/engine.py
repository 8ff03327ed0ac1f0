"""The engine of the modern path: executes the calls of a script's Estimators by tf_keras and tf.distribute."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback
from estimator_bridge.modern.callbacks.timeline import TimelineWriter
from estimator_bridge.modern.config import session_config
from estimator_bridge.modern.distribution import strategies
from estimator_bridge.modern.distribution.estimator_tasks import tasks
from estimator_bridge.modern.distribution.input_sharding import with_context
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.distribution.tpu import without_tpu
from estimator_bridge.modern.distribution.worker_checks import lost_workers
from estimator_bridge.modern.evaluation import evaluate as evaluation
from estimator_bridge.modern.exports import copied_variables
from estimator_bridge.modern.graph.model_graph import EVAL, PREDICT, TRAIN, control_flow_v2
from estimator_bridge.modern.graph.reference_variables import reference_variables
from estimator_bridge.modern.graph.shapes import tf2_shapes
from estimator_bridge.modern.parallel.elastic.whole_batches import ElasticTransplant, ShardedElastic
from estimator_bridge.modern.parallel.mesh import place_on_machine, prepare_mesh
from estimator_bridge.modern.parallel.micro_batches.accumulation import AccumulatingTransplant, whole_batches
from estimator_bridge.modern.parallel.micro_batches.row_checks import row_refusals
from estimator_bridge.modern.parallel.partitioning import partitioned
from estimator_bridge.modern.parallel.placement import Placer
from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL, ParallelPlan
from estimator_bridge.modern.parallel.script_devices import logging_dropped
from estimator_bridge.modern.parallel.sharded_state import ShardedAccumulation, ShardedState
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.modern.step.xla import CompiledTransplant, refusals
from estimator_bridge.modern.training import train as training
from estimator_bridge.modern.training.mixed_precision import UnscaledTransplant, mixed_precision
from estimator_bridge.modern.training.parameter_servers import train as parameter_servers
from estimator_bridge.runtime.estimator_calls import Engine, EstimatorEngine, EvaluateCall, ExportCall, PredictCall, TrainCall

logging = tf.compat.v1.logging


@dataclasses.dataclass(eq=False)
class ModernEngine(Engine):
    """The modern path behind Estimator's public methods.

    Args:
        replicas: Number of devices that each batch is split over if the script names no strategy.
        callbacks: Function that makes the callbacks of a training run.
        audited: True to give the callbacks a digest of each batch.
        jit_compile: True to let XLA compute the gradients of a training step, as far as it can compile them.
        mixed_precision: True to compute a training step in bfloat16 wherever TensorFlow considers it safe; only on CPUs.
        plan: Mesh, micro-batches and sharded state.
        timeline: File for the timeline of the last step of a pipeline; see ``TimelineWriter``.

    Attributes:
        calls: Number of calls so far.
    """

    replicas: int = 1
    callbacks: Callable[[], Sequence[Callback]] = tuple
    audited: bool = False
    jit_compile: bool = False
    mixed_precision: bool = False
    plan: ParallelPlan = NOT_PARALLEL
    timeline: Path | None = None

    def __post_init__(self) -> None:
        flags = " and ".join(self._flags)
        if len(self._flags) > 1:
            raise NotSupportedError(f"{flags} cannot be combined.", expected=f"one of {flags}", fix="Leave out one of them.")
        if self.plan.sharded_state and (self.jit_compile or self.mixed_precision):
            raise NotSupportedError(
                f'state = "sharded" and {flags} cannot be combined.', fix=f"Leave out {flags} or the sharded state."
            )
        if self.plan.micro_statistics and self.plan.micro == 1:
            raise BridgeError(
                "--micro-statistics works only with --micro.", fix="Add --micro K, or leave out --micro-statistics."
            )
        if self.timeline and (self.plan.micro == 1 or not self.plan.placement.is_pipeline):
            raise BridgeError(
                "--timeline shows the micro-batches of a pipeline.",
                expected="--mesh pipeline=N --micro K",
                fix="Add these, or leave out --timeline.",
            )
        self._timelines = [TimelineWriter(self.timeline, self.plan.placement.stages)] if self.timeline else []
        self._place = self._placer()
        strategies.prepare(self.replicas)
        self._estimator = EstimatorEngine()
        self._configured: Any = None
        self._has_trained = False
        self.calls = 0

    def surroundings(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context manager in which ``train_and_evaluate`` runs the task that TF_CONFIG names."""
        return tasks()

    @functools.cached_property
    def _aside(self) -> tempfile.TemporaryDirectory[str]:
        """Makes a temporary folder at the first use, since a process that is killed leaves it behind."""
        return tempfile.TemporaryDirectory(prefix="estimator-bridge-")

    def train(self, estimator: Any, call: TrainCall) -> Any:
        """Executes ``Estimator.train``."""
        call = _checked(call)
        with self._outside_graphs(estimator, TRAIN) as distribution:
            if self._has_ended(estimator, call):
                logging.info("Skipping training since max_steps has already saved.")
                return estimator
            self._check_mesh(estimator.config)
            self._check_flags(estimator.config)
            chosen = self._planned(distribution or self._distribution(estimator.config), call)
            train = self._trainer(estimator.config, chosen)
            mixed = mixed_precision(chosen, self.mixed_precision)
            with lost_workers(chosen), refusals(self.jit_compile), row_refusals(self.plan.micro), mixed as reports:
                train(estimator, call, chosen, callbacks=[*self.callbacks(), *self._timelines, *reports], audited=self.audited)
        return estimator

    def _has_ended(self, estimator: Any, call: TrainCall) -> bool:
        return call.max_steps is not None and call.max_steps <= training.saved_step(estimator.model_dir)

    def _distribution(self, config: Any) -> Distribution:
        """Returns the distribution of a RunConfig; a worker whose mesh has several GPUs is one replica, on the first of them."""
        gpus = 1 if self._place and self._place.mesh.has_gpus else None
        return strategies.distribution_for(config, self.replicas, gpus)

    def _planned(self, chosen: Distribution, call: TrainCall) -> Distribution:
        """Returns a distribution with what the plan adds to it."""
        self._check_workers(chosen)
        batches = self.plan.step_batches(chosen.workers)
        if batches:
            self._check_whole_batches(chosen, call)
        return dataclasses.replace(
            chosen,
            micro_batches=1 if batches else self.plan.micro,
            around_model=self._around_model,
            step_batches=batches,
        )

    @contextlib.contextmanager
    def _around_model(self) -> Iterator[None]:
        placement = self.plan.placement
        with partitioned(placement.rules), logging_dropped(placement.script_devices):
            yield

    def _check_whole_batches(self, chosen: Distribution, call: TrainCall) -> None:
        """Refuses what does not go on where it was when the training starts again."""
        if chosen.replicas > chosen.workers:
            raise NotSupportedError(
                "Workers with several replicas cannot take several batches for a step.",
                expected="workers with one replica each",
                received=f"{chosen.replicas // chosen.workers} replicas in each worker",
                fix="Leave out --replicas and train_distribute, show each worker one GPU by CUDA_VISIBLE_DEVICES, or leave out [elastic] and shares.",
            )
        if call.max_steps is None or self._has_trained:
            raise NotSupportedError(
                "A training that may start again with other workers needs one call of train, with max_steps.",
                expected="train_and_evaluate with TrainSpec(max_steps=...), or train(max_steps=...)",
                received="a second call" if self._has_trained else f"train(steps={call.steps})",
                fix="Use max_steps, or leave out [elastic] and shares.",
            )
        self._has_trained = True

    def _check_mesh(self, config: Any) -> None:
        row, given = strategies.decision_for(config), config.train_distribute
        jobs = config.cluster_spec.as_dict() if config.cluster_spec else {}
        is_of_workers = jobs and "ps" not in jobs and row.strategy == "MultiWorkerMirroredStrategy"
        if self._place and not is_of_workers and (given is not None or row.strategy):
            name = row.strategy if given is None else f"RunConfig(train_distribute={type(given).__name__})"
            counts = [f"{len(jobs[job])} {job}" for job in ("chief", "master", "worker", "ps") if job in jobs]
            others = len(jobs.get("worker", ()))
            raise NotSupportedError(
                f"A mesh and {name} cannot be combined yet.",
                expected="a RunConfig without train_distribute, or a cluster of workers with MultiWorkerMirroredStrategy, and no parameter servers",
                received=f"{self.plan.placement}, {name}" + (f" ({', '.join(counts)})" if counts else ""),
                fix=f"Start the workers alone: launch --worker {others} --path modern --mesh data={others + 1},{self.plan.placement}."
                if "ps" in jobs
                else f"Leave out train_distribute: run --path modern --mesh {self.plan.placement}; or leave out the mesh.",
            )

    def _check_workers(self, chosen: Distribution) -> None:
        self.plan.check_workers(chosen.workers)
        mesh = self._place.mesh if self._place else None
        if mesh and mesh.has_gpus and mesh.place != place_on_machine():
            raise BridgeError(
                "The mesh got its GPUs before TF_CONFIG said which of them other workers on this machine have.",
                expected="TF_CONFIG in the environment of the process, as launch sets it",
                received="TF_CONFIG, set by the script",
                fix="Set it before, or show each worker its own GPUs by CUDA_VISIBLE_DEVICES.",
            )

    def _placer(self) -> Placer | None:
        """Makes the devices of a mesh available; returns None without a mesh."""
        placement = self.plan.placement
        if placement.devices == 1:
            return None
        others = {"--replicas": self.replicas > 1, "--jit-compile": self.jit_compile, "--mixed-precision": self.mixed_precision}
        for flag, is_given in others.items():
            if is_given:
                raise NotSupportedError(
                    f"{flag} and a mesh with {placement} cannot be combined.",
                    expected="a mesh alone, or with --micro",
                    fix=f"Leave out {flag} or the mesh.",
                )
        if placement.is_pipeline and self.plan.micro == 1:
            logging.warning(
                "Without --micro the stages of the pipeline compute one after the other; --micro 8 lets them overlap."
            )
        return Placer(placement, prepare_mesh(placement.devices))

    @property
    def _flags(self) -> list[str]:
        """Options that each choose a kind of transplant."""
        given = {"--jit-compile": self.jit_compile, "--mixed-precision": self.mixed_precision, "--micro": self.plan.micro > 1}
        return [flag for flag, is_given in given.items() if is_given]

    def _check_flags(self, config: Any) -> None:
        if strategies.decision_for(config).strategy == "ParameterServerStrategy":
            for flag in [*self._flags, *(['state = "sharded"'] if self.plan.sharded_state else [])]:
                raise NotSupportedError(f"{flag} does not work with ParameterServerStrategy.", fix=f"Leave out {flag}.")

    def _trainer(self, config: Any, chosen: Distribution) -> Callable[..., None]:
        if strategies.decision_for(config).strategy == "ParameterServerStrategy":
            return parameter_servers.train
        return functools.partial(training.train, make_transplant=self._transplants(chosen))

    def _transplants(self, chosen: Distribution) -> Callable[..., Transplant]:
        """Returns the function that makes the training step of a graph."""
        plan, is_sharded = self.plan, self.plan.sharded_state
        own: dict[str, Any] = {"place": self._place} if self._place else {}
        own |= {"gradients": tf.as_dtype(plan.gradients)} if plan.gradients != "float32" else {}
        if chosen.step_batches:
            own |= {"number": chosen.batches, "total": sum(chosen.step_batches), "statistics": plan.micro_statistics}
            own["by_rows"] = bool(plan.shares)
            return functools.partial(ShardedElastic if is_sharded else ElasticTransplant, **own)
        stages = self._place.mesh.stages(plan.placement.stages) if self._place and plan.placement.is_pipeline else ()
        kinds: dict[str, Callable[..., Transplant]] = {
            "--jit-compile": CompiledTransplant,
            "--mixed-precision": UnscaledTransplant,
            "--micro": functools.partial(
                ShardedAccumulation if is_sharded else AccumulatingTransplant,
                number=plan.micro,
                statistics=plan.micro_statistics,
                stages=stages,
                timed=self.timeline is not None,
                **own,
            ),
        }
        whole = functools.partial(ShardedState if is_sharded else whole_batches, **own)
        return kinds[self._flags[0]] if self._flags else whole

    def evaluate(self, estimator: Any, call: EvaluateCall) -> dict[str, Any]:
        """Executes ``Estimator.evaluate``, its event file included."""
        from tensorflow_estimator.python.estimator import estimator as estimator_lib

        call, replicas = _with_checkpoint(_checked(call), estimator), strategies.evaluating_replicas(estimator.config)
        if estimator.config.eval_distribute is not None:
            call = dataclasses.replace(call, input_fn=with_context(call.input_fn, 1, 0, replicas))
        with self._outside_graphs(estimator, EVAL):
            results, graph = evaluation.evaluate(estimator, call, replicas)
        if _follows(estimator.config):
            return results
        with graph.as_default():  # the event file shows it
            folder, step = estimator.eval_dir(call.name), results["global_step"]
            estimator_lib._write_dict_to_summary(folder, results, step)
            if call.checkpoint_path:
                estimator_lib._write_checkpoint_path_to_summary(folder, call.checkpoint_path, step)
        return results

    def predict(self, estimator: Any, call: PredictCall) -> Iterator[Any]:
        """Executes ``Estimator.predict``."""
        batches = evaluation.predict(estimator, _with_checkpoint(call, estimator))
        while True:
            with self._outside_graphs(estimator, PREDICT):  # not across a yield, since the caller has modes of its own
                batch = next(batches, None)
            if batch is None:
                return
            yield from [batch] if not call.yield_single_examples else _examples(estimator, batch)

    def export_saved_model(self, estimator: Any, call: ExportCall) -> bytes:
        """Executes ``Estimator.export_saved_model``, by tensorflow-estimator itself.

        The checkpoint has TF1's names, so the exporter finds every variable. The SavedModel has the signatures and tensor names that
        serving clients know. A worker that is not the chief exports into a temporary folder. Variables are copied, not loaded.
        """
        self.calls += 1
        if _follows(estimator.config):
            call = dataclasses.replace(call, export_dir_base=self._aside.name)
        with copied_variables():
            exported: bytes = self._estimator.export_saved_model(estimator, call)
        return exported

    @contextlib.contextmanager
    def _outside_graphs(self, estimator: Any, mode: str) -> Iterator[Distribution | None]:
        """Enters eager mode with TF2's shapes, whatever graph the script is building. Yields the TPU's distribution, if any."""
        self.calls += 1
        with (
            reference_variables(),  # of hooks and metrics; asks for the script's setting before the shapes are TensorFlow 2's
            context.eager_mode(),
            tf2_shapes(),
            control_flow_v2(),
            without_tpu(estimator, mode) as distribution,
        ):
            if self._configured is not estimator.config.session_config:
                self._configured = estimator.config.session_config
                for note in session_config.apply(self._configured):
                    logging.warn("%s", note)
            yield distribution


def _follows(config: Any) -> bool:
    """Returns True in a worker of a cluster whose chief writes all files."""
    return config.task_type == "worker" and not config.is_chief


def _examples(estimator: Any, batch: Any) -> Iterator[Any]:
    if not isinstance(batch, dict):
        yield from batch
        return
    for index in range(estimator._extract_batch_length(batch)):
        yield {key: value[index] for key, value in batch.items()}


def _checked(call: Any) -> Any:
    """Returns a call of train or evaluate with whole numbers of steps: TensorFlow 1 ends with the first step that is not below 2.5."""
    numbers = {name: getattr(call, name, None) for name in ("steps", "max_steps")}
    given = {name: value for name, value in numbers.items() if value is not None}
    if len(given) > 1:
        raise ValueError("Can not provide both steps and max_steps.")
    for name, value in given.items():
        if value <= 0:
            raise ValueError(f"Must specify {name} > 0, given: {value}")
    return dataclasses.replace(call, **{name: math.ceil(value) for name, value in given.items()})


def _with_checkpoint(call: Any, estimator: Any) -> Any:
    """Returns a call of evaluate or predict that names its checkpoint, if there is one."""
    return dataclasses.replace(call, checkpoint_path=call.checkpoint_path or tf.train.latest_checkpoint(estimator.model_dir))
