"""The training graph of a model_fn as one function of variables and batch, and checkpoints of it, from which either path resumes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.distribute.values import SyncOnReadVariable
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, refused, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation, v1
from estimator_bridge.modern.graph.optimizers import rebuild as optimizers
from estimator_bridge.modern.graph.optimizers.capture import Update, sums_loss
from estimator_bridge.modern.graph.optimizers.synchronous import check_trainers
from estimator_bridge.modern.graph.random_streams import RandomStreams
from estimator_bridge.modern.graph.savers import SavedTensor, saved_tensors
from estimator_bridge.modern.graph.stages import Plan, plan
from estimator_bridge.modern.graph.variables import VariableStore, on_host, writes
from estimator_bridge.modern.step.initial_values import fill
from estimator_bridge.modern.step.split_checks import check_split
from estimator_bridge.runtime.collectives import summed

logging = tf.compat.v1.logging


class Parts(NamedTuple):
    """Words for the parts in which a batch is computed.

    Attributes:
        shown: Part whose values watched tensors show.
        each: Clause that says who has a part.
        fix: Way to train on whole batches.
    """

    shown: str
    each: str
    fix: str


class Transplant:
    """One training step of a model_fn on the strategy in scope, with the same kernels and variable names, but Keras optimizers.

    Args:
        model: Training graph.
        report: Groups of tensors of the graph to watch besides a step's loss.
        split: True if each replica takes part of one batch, False if each takes a batch of its own.
        streams: Streams of random numbers that the step shares with what hooks run; with them, only ``check_fed`` refuses
            placeholders, which hooks may feed.
        place: Function that chooses devices for variables and other operations by their names; None to leave that to TensorFlow.

    Attributes:
        model: Training graph.
        global_step: Variable of the global step.
        store: Variables, without the slots that the Keras optimizers keep.
        updates: The script's optimizer calls, each with its Keras optimizer.
        variables: Operation name -> variable, for every variable of the graph, slots included.
        settled: The same variables as they are saved, with the mean of a variable of which each replica has a copy.
        watched: Groups of tensors of ``report``, or of the last call of ``watch``.
        observations: Groups as they are computed.
        observers: Each observation with its functions: ``early(inputs) -> tensors`` that depend only on variables, to be called before
            the observed step, and ``late(inputs) -> tensors`` after it.
        wanted: Variable of booleans: for each of ``observations``, whether to compute it.
        due: For each group of ``watched``, whether it is needed of the step at which something is due; for ``set_wanted`` there.
        pieces: Number of replicas that share one batch.
        whole: Batch of which the replica that is being traced has a piece, for one of the replicas; else None.
        interrupt: Function that makes the other workers, which go on training, call ``follow``; None before and after a training.

    Raises:
        NotSupportedError: The step cannot run on the strategy in scope.
    """

    _wanted: list[bool]
    wanted: Any
    due: Sequence[bool] = ()
    whole: Sequence[Tensor] | None = None
    interrupt: Callable[[], object] | None = None

    def __init__(
        self,
        model: ModelGraph,
        report: Sequence[Sequence[Tensor]] = (),
        split: bool = False,
        streams: RandomStreams | None = None,
        *,
        place: Callable[[ModelGraph, Plan], Mapping[str, str]] | None = None,
    ) -> None:
        self.model = model
        self._split = split
        self._streams = streams
        self.pieces = tf.distribute.get_strategy().num_replicas_in_sync if split else 1
        self._plan = self._planned(report)
        if model.synchronous:
            check_trainers(model.synchronous, self.trainers)
        kept_by_keras = {slot.op.name for update in self._plan.updates for *_, slot in update.slots()}
        templates = [v for v in model.variables() if v.op.name not in kept_by_keras]
        writes = self._writes_of_replicas()
        written = frozenset(name for name, _ in writes)
        self._check_replicas(templates, written)
        if self.pieces > 1:
            check_split(model, self._updates_of_replicas(), writes, writes_of_graph(model))
        self._devices = {**(place(model, self._plan) if place else {}), **on_host(model.graph.get_operations())}
        values = self._initial_values()
        self.store = VariableStore(templates, values, written, devices=self._devices)
        self.global_step = self.store[model.global_step]
        self.updates = self._with_optimizers()
        slots = {template.op.name: variable for update in self.updates for template, variable in self._slots(*update)}
        self.variables = {template.op.name: self.store[template] for template in templates} | slots
        fill(self.variables, values, slots)
        self._means = self._copies(values)
        self.settled = self.variables | self._means
        self._import()
        initialise_tables(model)

    @property
    def trainers(self) -> int:
        """Number of tasks whose gradients a SyncReplicasOptimizer may average."""
        return 1

    @property
    def replicas(self) -> int:
        """Number of replicas whose gradients a step adds up."""
        return int(tf.distribute.get_strategy().num_replicas_in_sync)

    def _writes_of_replicas(self) -> list[tuple[str, Operation]]:
        """Returns the names of the variables to which each replica writes values of its own, with the operations that do so."""
        return writes_of_graph(self.model)

    def _updates_of_replicas(self) -> Sequence[Update]:
        """Returns the updates that each replica prepares from its own gradients."""
        return self._plan.updates

    def _check_replicas(self, variables: Sequence[Any], written: frozenset[str]) -> None:
        by_graph = [v.op for v in variables if v.trainable and v.op.name in written]
        if self.replicas > 1 and by_graph:
            raise refused(
                by_graph[0],
                f"An optimizer without a Keras counterpart updates {by_graph[0].name!r} and {len(by_graph) - 1} more variables.",
                expected="on several replicas: an optimizer from tf.train with constant hyperparameters",
                fix="Run on one replica, where it is executed as it is, or use --path legacy.",
            )
        summed = [v.op for v in variables if v.op.name in written and v.aggregation == tf.VariableAggregation.SUM]
        if self.replicas > 1 and summed:
            raise refused(
                summed[0],
                f"{summed[0].name!r} is declared as the sum of what the replicas write to it, and the modern path saves means.",
                expected="on several replicas: variables with another aggregation than SUM",
                fix="Run on one replica, or use --path legacy.",
            )
        is_expected = _averages(self.model) or sums_loss(self.model.graph)
        if self.replicas > 1 and not self._split and self._plan.updates and not is_expected:
            logging.warn(
                "The gradients of %d batches are added up, and so is the loss, as TensorFlow 1 does with those of tf.gradients. "
                "Those of minimize and compute_gradients are averaged.",
                self.replicas,
            )

    @property
    def parts(self) -> Parts | None:
        """Parts of which a step sees one batch; None if it is computed whole."""
        return Parts("the first replica's rows", "each replica has a piece", "Run on one replica") if self.pieces > 1 else None

    def is_whole(self, tensor: Tensor) -> bool:
        """Returns True if a step computes a tensor from all rows of the batch that its replica takes."""
        return self.pieces == 1 or tensor is self.model.spec.loss

    def _initial_values(self) -> Mapping[str, Any]:
        """Returns the initial value of every variable by its operation's name: an array, or a ``DeviceValue``."""
        return self.model.initial_values()

    def _copies(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Makes variables for means over replicas of several workers, since only all workers together can compute a mean."""
        copied = [name for name, variable in self.variables.items() if isinstance(variable, SyncOnReadVariable)]
        has_others = Distribution(tf.distribute.get_strategy()).workers > 1
        return {name: tf.Variable(values[name], trainable=False) for name in copied} if has_others else {}

    def settle(self, needed: Tensor) -> None:
        """Brings ``settled`` up to date if that is ``needed``; call it after a step, outside of the replicas."""
        if self._means:
            tf.cond(needed, self._settle, lambda: None)

    def _settle(self) -> None:
        for name, mean in self._means.items():
            mean.assign(self.variables[name].read_value())

    @property
    def operations(self) -> frozenset[Operation]:
        """Operations that a step runs, without the optimizers' own."""
        return self._plan.operations

    def watch(self, report: Sequence[Sequence[Tensor]]) -> None:
        """Replaces the groups of watched tensors; functions that call ``step`` must be traced again."""
        self._plan = self._planned(report)
        self._import()

    def pause(self) -> None:
        """Waits until no other trainer changes the variables; those that are in step do not."""

    def set_wanted(self, groups: Sequence[bool]) -> None:
        """Chooses the groups of ``watched`` that the next steps compute; before the first call, all of them."""
        groups = list(groups) if len(groups) == len(self.observations) else [any(groups)]
        if groups != self._wanted:
            self._wanted = groups
            self.wanted.assign(groups)

    def named(self, values: Iterable[Any]) -> dict[str, Any]:
        """Returns the values of the wanted observations by the tensors' names, given those of all ``observations``."""
        remaining = iter(values)
        return {
            tensor.name: value
            for observation, wanted in zip(self.observations, self._wanted, strict=True)
            for tensor, value in [(tensor, next(remaining)) for tensor in observation.late.outputs]
            if wanted
        }

    def _planned(self, report: Sequence[Sequence[Tensor]]) -> Plan:
        made = plan(
            operation(self.model.spec.train_op), self.model.spec.loss, self.model.updates, report, self.model.references
        )
        if self._streams is None:
            self._check_fed(made)
        self.watched, self.observations = [list(group) for group in report], made.observations
        self._wanted = [True] * len(made.observations)
        # A tf.Variable would belong to the strategy.
        self.wanted = ResourceVariable(self._wanted, dtype=tf.bool, trainable=False)
        return made

    def check_fed(self) -> None:
        """Raises NotSupportedError if a step reads a placeholder that no batch fills."""
        self._check_fed(self._plan)

    def _check_fed(self, made: Plan) -> None:
        for fragment in [*(stage.fragment for stage in made.stages), *(one.late for one in made.observations)]:
            self.model.check_fed(fragment.inputs)
        self.model.check_fed([tensor for update in made.updates for tensor in update.changing().values()])

    def _import(self) -> None:
        variables = self._store_of_all(self._streams)
        self._stages = [(stage, variables.function(stage.fragment)) for stage in self._plan.stages]
        self.observers = [(one, variables.function(one.early), variables.function(one.late)) for one in self.observations]

    def _store_of_all(self, streams: RandomStreams | None) -> VariableStore:
        """Returns a store that also has the slots, for functions of the graph."""
        templates = self.model.variables()
        return VariableStore(templates, {}, shared=self.variables, streams=streams, devices=self._devices)

    def step(self, *batches: Sequence[Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Runs one step on one replica.

        Args:
            batches: Tensors of this replica's batch, in the order of ``ModelGraph.batch``; an ``ElasticTransplant`` takes several.

        Returns:
            The loss, combined over the replicas, and every tensor that passes from stage to stage, by its name in the graph.
        """
        known = {placeholder.name: tensor for placeholder, tensor in zip(self.model.batch, batches[-1], strict=True)}
        weight = self._weight(batches[-1])
        remaining = iter(self.updates)
        for stage, run in self._stages:
            known |= self._outputs_of(stage.fragment, run, known, batches)
            for _ in stage.updates:
                self._apply(*next(remaining), known, weight)
        return self._combined(known[self.model.spec.loss.name], weight), known

    def _outputs_of(
        self, fragment: Fragment, run: Any, known: Mapping[str, Tensor], batches: Sequence[Sequence[Tensor]]
    ) -> dict[str, Tensor]:
        """Runs a stage, and returns its outputs by their names."""
        outputs = run([known[tensor.name] for tensor in fragment.inputs])
        return dict(zip((tensor.name for tensor in fragment.outputs), outputs, strict=True))

    def _with_optimizers(self) -> list[tuple[Update, Any]]:
        """Makes one Keras optimizer for each TF1 optimizer, which may apply several times in a step and shares Adam's count."""
        built: dict[Any, Any] = {}
        for update in self._plan.updates:
            if update.optimizer not in built:
                own = [one for one in self._plan.updates if one.optimizer is update.optimizer]
                built[update.optimizer] = optimizers.build(update.optimizer, update.hyperparameters)
                self._make_state(built[update.optimizer], own)
        return [(update, built[update.optimizer]) for update in self._plan.updates]

    def _make_state(self, optimizer: Any, updates: Sequence[Update]) -> None:
        """Makes the slots of a Keras optimizer, and what else it keeps."""
        optimizer._create_all_weights([self.store[variable] for update in updates for _, variable in update.pairs])

    def _slots(self, update: Update, optimizer: Any) -> Iterator[tuple[Any, Any]]:
        """Yields the variables that an optimizer made in the graph, each with the variable of the Keras optimizer that replaces it."""
        for variable, name, template in update.slots():
            yield (
                template,
                optimizer.powers[name] if variable is None else self._slot(optimizer, variable, update.slot_names[name]),
            )

    def _slot(self, optimizer: Any, variable: Any, name: str) -> Any:
        return optimizer.get_slot(self.store[variable], name)

    def _apply(self, update: Update, optimizer: Any, known: dict[str, Tensor], weight: Tensor | None) -> None:
        pairs = update.with_gradients([known[tensor.name] for tensor in update.gradients()])
        for name, value in update.changing().items():
            self._set_hyperparameter(optimizer, name, known[value.name])
        self._update(optimizer, [(scaled(gradient, weight), variable) for gradient, variable in pairs])

    def _update(self, optimizer: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Updates variables of the graph by the sums of the replicas' gradients."""
        optimizer.apply_gradients([(gradient, self.store[variable]) for gradient, variable in pairs])

    def _set_hyperparameter(self, optimizer: Any, name: str, value: Tensor) -> None:
        variable = optimizer._hyper[name]
        variable.assign(tf.cast(value, variable.dtype))

    def _weight(self, batch: Sequence[Tensor]) -> Tensor | None:
        """Returns this replica's share of the gradient; None if gradients are added up as they are."""
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync == 1 or not self._split or sums_loss(self.model.graph):
            return None
        rows = tf.cast(tf.shape(batch[0])[0], tf.float32)
        return rows / context.all_reduce(tf.distribute.ReduceOp.SUM, rows)

    def saved(self, saver: Any = None) -> list[SavedTensor]:
        """Finds the tensors that a TF1 Saver of the graph saves, slots and beta powers included.

        Args:
            saver: Saver of the graph; None for the model's own.

        Raises:
            NotSupportedError: The Saver saves other objects than variables.
        """
        return saved_tensors(self.model.graph, saver or self.model.spec.scaffold.saver)

    def follow(self) -> None:
        """Waits for the chief, and helps it to save; all workers call it before and after a training, and where the chief interrupts it."""

    def save(self, saved: Sequence[SavedTensor], prefix: str) -> None:
        """Writes ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``; both appear under their names only when complete."""
        tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=[one.name for one in saved],
            shape_and_slices=[one.slice_spec for one in saved],
            tensors=[tf.cast(self.settled[one.variable].read_value(), one.dtype) for one in saved],
        )

    def _combined(self, loss: Tensor, weight: Tensor | None) -> Tensor:
        """Returns the loss of all replicas, as Estimator reports it."""
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync == 1:
            return loss
        total = summed(context.strategy, tf.reshape(scaled(loss, weight), []))  # the shape is unknown in some models
        return total / context.num_replicas_in_sync if not self._split and _averages(self.model) else total


def initialise_tables(model: ModelGraph) -> None:
    """Runs the graph's table initialisers once on every replica of the strategy in scope, since tables live on devices."""
    fill = table_filler(model)
    if fill is not None:
        fill()  # on the device of the input pipeline
        tf.distribute.get_strategy().run(fill)


def table_filler(model: ModelGraph) -> Any:
    """Returns a ``tf.function`` that runs the graph's table initialisers, and returns True; None if there are none."""
    initialisers = [operation(op) for op in model.collection(v1.GraphKeys.TABLE_INITIALIZERS)]
    if not initialisers:
        return None
    run = Fragment.cut(upstream(initialisers), []).function([])

    @tf.function(autograph=False)
    def fill() -> Tensor:
        run([], [])
        return tf.constant(True)

    return fill


def _averages(model: ModelGraph) -> bool:
    """Returns True if the gradients of several whole batches are averaged, False if they are added up."""
    return bool(getattr(model.graph, "_is_loss_scaled_by_optimizer", False))


def writes_of_graph(model: ModelGraph) -> list[tuple[str, Operation]]:
    """Returns the names of the variables that the graph itself assigns to in a step, without captured optimizers, with the operations."""
    inside = {op for update in model.updates for op in update.internals}
    before = [producer for update in model.updates for producer in update.producers()]
    return list(writes(upstream([operation(model.spec.train_op), *before], lambda op: op in inside)))


def scaled(value: Any, weight: Tensor | float | None) -> Any:
    """Returns a tensor or ``tf.IndexedSlices`` times a weight; the same without a weight."""
    if weight is None:
        return value
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(scaled(value.values, weight), value.indices, value.dense_shape)
    return value * tf.cast(weight, value.dtype)
