"""The legacy side of a comparison: tensorflow-estimator itself, with hooks that record what it does."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.rendezvous import Recovery, Rendezvous
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.graph.fragments import upstream
from estimator_bridge.modern.graph.model_graph import operation
from estimator_bridge.modern.graph.variables import assigned
from estimator_bridge.parity.recording.batches import leaves, named_leaves, serialize
from estimator_bridge.parity.recording.calls import TracedEngine
from estimator_bridge.parity.recording.disk_space import DiskSpace
from estimator_bridge.parity.recording.ordering import order_assignments
from estimator_bridge.parity.recording.randomness import draws_by_replica, random_functions, random_operations
from estimator_bridge.parity.recording.replaying import install_start, with_recorded_batches
from estimator_bridge.parity.recording.step_limit import StepLimit
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.report.spelling import first_three
from estimator_bridge.runtime.batch_digest import batch_digest
from estimator_bridge.runtime.estimator_calls import EstimatorEngine, TrainCall
from estimator_bridge.runtime.graph_values import GraphValues
from estimator_bridge.runtime.patching import wrap

v1 = tf.compat.v1
_RACE = (
    "a step both reads and assigns {} without a control dependency. The comparison keeps the order of the script's lines; without it "
    "TensorFlow may choose another order. If the order matters, add tf.control_dependencies."
)
_batches: GraphValues[list[list[Any]]] = GraphValues()  # graph -> tensors of each replica's batch
_names: GraphValues[list[str]] = GraphValues()  # graph -> names of its features
_specs: GraphValues[Any] = GraphValues()  # graph -> EstimatorSpec of its training
_configs: GraphValues[Any] = GraphValues()  # graph -> RunConfig of its training
_savers: GraphValues[list[Any]] = GraphValues()  # graph -> hooks that save checkpoints


class RecordingEngine(TracedEngine):
    """Executes calls as tensorflow-estimator does and records their batches and training steps.

    Args:
        trace: Trace of the legacy side.
        limit: Number of training steps after which the script ends.
        recording: True to keep the batches for a replay, False to keep only their digests.
        moved: Function of a path that returns the path in the side's folders.
    """

    def __init__(self, trace: Trace, limit: StepLimit, recording: bool, moved: Callable[[str], str] = str) -> None:
        super().__init__(EstimatorEngine(), trace, limit, moved)
        self._recording = recording
        _remember_batches_and_specs()

    def train(self, estimator: Any, call: TrainCall) -> Any:
        """Executes ``Estimator.train`` and records each step."""
        if estimator.config.cluster_spec and not Rendezvous.of_this_process():
            raise BridgeError(
                "The script makes its process a task of a cluster, whose other tasks nobody has started.",
                expected="a script that leaves TF_CONFIG to its environment",
                fix="Let compare start all tasks: --worker N --ps M.",
            )
        return super().train(estimator, call)

    def prepare(self, estimator: Any, call: Any, name: str) -> Any:
        """Returns the call with one more session hook, which comes last."""
        return dataclasses.replace(call, hooks=[*(call.hooks or []), self.make_hook(call, name)])

    def make_hook(self, call: Any, name: str) -> Any:
        """Returns the hook that records a call."""
        if isinstance(call, TrainCall):
            return TrainHook(self._trace, name, self._recording, self.most_steps(call), self._limit)
        return BatchHook(self._trace, name, self._recording, getattr(call, "steps", None))

    def most_steps(self, call: TrainCall) -> int | None:
        """Returns the largest number of steps of a training, if it is known."""
        known = [steps for steps in (call.steps, call.max_steps, self._limit.left) if steps is not None]
        return min(known, default=None)


class FollowingEngine(RecordingEngine):
    """Executes calls as tensorflow-estimator does, on the batches and from the values that another side recorded.

    Args:
        trace: Trace of the legacy side.
        limit: Number of training steps after which the script ends.
        recorded: Trace of the recorded side.
        moved: Function of a path that returns the path in the side's folders.
    """

    def __init__(self, trace: Trace, limit: StepLimit, recorded: Trace, moved: Callable[[str], str] = str) -> None:
        super().__init__(trace, limit, recording=False, moved=moved)
        self._recorded = recorded

    def prepare(self, estimator: Any, call: Any, name: str) -> Any:
        """Returns the call with recorded batches and one more session hook."""
        if isinstance(call, TrainCall):
            install_start(self._recorded, estimator, name, "initial")
        return super().prepare(estimator, with_recorded_batches(self._recorded, estimator, call, name), name)


class BatchHook(tf.compat.v1.train.SessionRunHook):
    """Records the batch of each session run."""

    has_shapes = False  # of the batch's tensors, in the results of a run

    def __init__(self, trace: Trace, call: str, recording: bool, batches: int | None) -> None:
        self._trace = trace
        self._call = call
        self._space = DiskSpace(trace.folder, batches)
        self._writer = tf.io.TFRecordWriter(str(trace.batches(call))) if recording else None

    def begin(self) -> None:
        """Finds the batch of the graph."""
        self._batches = _batches[v1.get_default_graph()]
        if self._writer:
            self._trace.write("features", call=self._call, names=_names.get(v1.get_default_graph(), []))
        with tf.name_scope("estimator_bridge"):
            self._digest = batch_digest(self._batches[0])
            # TensorFlow serializes faster than Python, which would take longer than a step for strings.
            self._serialized = [[tf.io.serialize_tensor(one) for one in batch] for batch in self._batches if self._writer]
            self._shapes = [tf.shape(one) for one in self._batches[0] if self.has_shapes]

    def before_run(self, run_context: Any) -> Any:
        """Asks for the batch."""
        return v1.train.SessionRunArgs({"batches": self._serialized, "shapes": self._shapes, "digest": self._digest})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Writes the batch."""
        if self._writer:
            records = [serialize(batch) for batch in run_values.results["batches"]]
            self._space.check(sum(map(len, records)))
            for record in records:
                self._writer.write(record)
            self._writer.flush()  # predictions of which a script reads only some never reach their end

    def end(self, session: Any) -> None:
        """Closes the file of batches."""
        if self._writer:
            self._writer.close()


class TrainHook(BatchHook):
    """Records losses, batches, and the values before and after the first step."""

    def __init__(self, trace: Trace, call: str, recording: bool, batches: int | None, limit: StepLimit) -> None:
        super().__init__(trace, call, recording, batches)
        self._limit = limit

    def begin(self) -> None:
        """Finds the loss, and removes races from the graph."""
        super().begin()
        graph = v1.get_default_graph()
        config = _configs[graph]
        check_in_step(config)
        self._loss = _specs[graph].loss
        self._step = v1.train.get_global_step()
        self._steps = 0
        given = {tensor.op for batch in self._batches for tensor in batch}
        in_step = upstream([self._loss.op, operation(_specs[graph].train_op)], lambda op: op in given)
        self._trace.write(
            "random",
            call=self._call,
            unseeded=(config.train_distribute is None and config.num_worker_replicas > 1) or draws_by_replica(graph),
            in_step=random_operations(in_step),
            functions=random_functions(in_step, graph.as_graph_def()),
        )
        racing = order_assignments(in_step, given, lambda op: bool(assigned([op])))
        if racing:
            self._trace.write("note", message=_RACE.format(first_three(racing)))
        self._saver = v1.train.Saver(max_to_keep=None, name="estimator_bridge/save")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads the global step at the start."""
        self._start = int(session.run(self._step))
        if not self._writer:
            self.save(session, "start")

    def before_run(self, run_context: Any) -> Any:
        """Saves the initial values, and asks for the loss."""
        if self._steps == 0:  # other hooks may have chosen values since the session began: k-means' centers
            self.save(run_context.session, "initial")
        args = super().before_run(run_context)
        return v1.train.SessionRunArgs({**args.fetches, "loss": self._loss})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Writes the step."""
        super().after_run(run_context, run_values)
        self._steps += 1
        if self._steps == 1:
            self.save(run_context.session, "first")
        results = run_values.results
        self._trace.write(
            "step",
            call=self._call,
            step=self._start + self._steps,
            loss=float(results["loss"]),
            batch=int(results["digest"]),
        )
        if self._limit.take():
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Closes the file of batches, and saves what other hooks have chosen in a training whose input ended before its first step.

        TensorFlow 1 counts a step that finds no batch, since nothing in the graph makes the counter wait, and then saves.
        """
        super().end(session)
        for saver in _savers.get(session.graph, []) if self._steps == 0 else []:
            saver._save(session, self._start)

    def save(self, session: Any, moment: str) -> None:
        """Saves the values of a moment."""
        self._saver.save(session, self._trace.values(self._call, moment), write_meta_graph=False, write_state=False)


def check_in_step(config: Any) -> None:
    """Refuses to record tasks that do not train in step.

    Args:
        config: RunConfig of a training that begins.

    Raises:
        BridgeError: The tasks' updates come in an order that differs from run to run.
    """
    rendezvous = Rendezvous.of_this_process()
    if rendezvous and config.num_worker_replicas > 1 and rendezvous.recovery() not in {Recovery.GANG, Recovery.REPLICA}:
        raise BridgeError(
            "The tasks train asynchronously, so no two runs of this script have the same steps.",
            expected="SyncReplicasOptimizer with a gradient of each task, or MultiWorkerMirroredStrategy",
            fix="Compare the final metrics: add --seeds 5.",
        )


def spec_of(graph: Any) -> Any:
    """Returns the EstimatorSpec of a training graph."""
    return _specs[graph]


def _remember_batches_and_specs() -> None:
    from tensorflow_estimator.python.estimator import util
    from tensorflow_estimator.python.estimator.estimator import Estimator

    def parse(original: Any, result: Any) -> Any:
        features, labels, hooks = original(result)
        _batches[v1.get_default_graph()] = [leaves((features, labels))]
        return features, labels, hooks

    def parse_of_replicas(original: Any, result: Any) -> Any:
        batch = original(result)
        strategy = tf.distribute.get_strategy()

        own = max((len(strategy.experimental_local_results(leaf)) for leaf in tf.nest.flatten(batch)), default=1)

        def of_replica(number: int, leaf: Any) -> Any:
            values = strategy.experimental_local_results(leaf)
            return values[number] if len(values) > 1 else values[0]  # one for all replicas, such as no labels

        parts = [tf.nest.map_structure(functools.partial(of_replica, number), batch) for number in range(own)]
        _batches[v1.get_default_graph()] = list(map(leaves, parts))
        _names[v1.get_default_graph()] = [name for name, leaf in named_leaves(parts[0][0]) if tf.is_tensor(leaf)]
        return batch

    def begin(original: Any, saver: Any) -> None:
        original(saver)
        _savers.setdefault(v1.get_default_graph(), []).append(saver)

    def train(original: Any, estimator: Any, spec: Any, *args: Any) -> Any:
        _specs[v1.get_default_graph()], _configs[v1.get_default_graph()] = spec, estimator.config
        return original(estimator, spec, *args)

    wrap(util, parse_input_fn_result=parse, parse_iterator_result=parse_of_replicas)
    wrap(v1.train.CheckpointSaverHook, begin=begin)
    wrap(Estimator, _train_with_estimator_spec=train)
