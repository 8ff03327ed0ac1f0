"""A model_fn's training graph as one function of variables and batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern import optimizers
from estimator_bridge.modern.capture import Update, rebuild, sums_loss
from estimator_bridge.modern.carving import Fragment, Tensor, upstream
from estimator_bridge.modern.model_graph import ModelGraph, operation, v1
from estimator_bridge.modern.splitting import check_split
from estimator_bridge.modern.stages import plan
from estimator_bridge.modern.variables import VariableStore, assigned


class Transplant:
    """One training step of a model_fn on the strategy in scope: same kernels, same variable names, Keras optimizers.

    Args:
        model: the training graph.
        report: tensors of the graph that ``report`` computes besides a step's loss.
        split: each replica has a piece of one batch (else a batch of its own).
        restored: the variables will come from a checkpoint, so no initialiser runs.

    Attributes:
        store: the variables, but for the slots that the Keras optimizers keep.
        updates: the script's optimizer calls and the Keras optimizer that stands for each.
        initial_values: operation name -> value, of every variable of the graph, slots included.

    Raises:
        NotSupportedError: for what cannot run on the strategy in scope, named.
    """

    def __init__(self, model: ModelGraph, report: Sequence[Tensor] = (), split: bool = False, restored: bool = False) -> None:
        self.model = model
        self._split = split
        self._plan = plan(operation(model.spec.train_op), model.spec.loss, model.updates, report)
        for fragment in [*(stage.fragment for stage in self._plan.stages), self._plan.report]:
            model.check_fed(fragment.inputs)
        model.check_fed([tensor for update in self._plan.updates for tensor in update.changing().values()])
        kept_by_keras = {v.op.name for update in self._plan.updates for v in update.slots()}
        templates = [v for v in model.variables() if v.op.name not in kept_by_keras]
        written = _written(model)
        _check_replicas(templates, written)
        if split and tf.distribute.get_strategy().num_replicas_in_sync > 1:
            check_split(model, self._plan.updates)
        self.initial_values = model.initial_values(restored)
        self.store = VariableStore(templates, self.initial_values, written)
        self.global_step = self.store[model.global_step]
        self.updates = self._with_optimizers()
        self._stages = [(stage, self.store.function(stage.fragment)) for stage in self._plan.stages]
        self._report = self.store.function(self._plan.report)
        initialise_tables(model)

    def step(self, batch: Sequence[Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Runs one step on one replica.

        Args:
            batch: this replica's tensors, in the order of ``ModelGraph.batch``.

        Returns:
            The loss, combined over the replicas, and every tensor that the stages passed on, by its name in the graph.
        """
        known = {placeholder.name: tensor for placeholder, tensor in zip(self.model.batch, batch, strict=True)}
        weight = self._weight(batch)
        remaining = iter(self.updates)
        for stage, run in self._stages:
            outputs = run([known[tensor.name] for tensor in stage.fragment.inputs])
            known.update(zip((tensor.name for tensor in stage.fragment.outputs), outputs, strict=True))
            for _ in stage.updates:
                self._apply(*next(remaining), known, weight)
        return self._combined(known[self.model.spec.loss.name], weight), known

    def _with_optimizers(self) -> list[tuple[Update, Any]]:
        """One Keras optimizer for each TF1 optimizer, which may apply several times in a step: Adam's count is shared."""
        built: dict[int, Any] = {}
        for update in self._plan.updates:
            built.setdefault(id(update.optimizer), optimizers.build(update.optimizer, update.hyperparameters))
        for identity, optimizer in built.items():
            own = [update for update in self._plan.updates if id(update.optimizer) == identity]
            optimizer._create_all_weights([self.store[variable] for update in own for _, variable in update.pairs])
        return [(update, built[id(update.optimizer)]) for update in self._plan.updates]

    def report(self, known: dict[str, Tensor]) -> list[Tensor]:
        """The tensors named at construction, for the step that gave ``known``."""
        return self._report([known[tensor.name] for tensor in self._plan.report.inputs])

    def _apply(self, update: Update, optimizer: Any, known: dict[str, Tensor], weight: Tensor | None) -> None:
        parts = iter([known[tensor.name] for tensor in update.gradients()])
        pairs = [(_scaled(rebuild(gradient, parts), weight), self.store[variable]) for gradient, variable in update.pairs]
        for name, value in update.changing().items():
            variable = optimizer._hyper[name]
            variable.assign(tf.cast(known[value.name], variable.dtype))
        optimizer.apply_gradients(pairs)

    def _weight(self, batch: Sequence[Tensor]) -> Tensor | None:
        """This replica's share of the gradient; None where gradients are added up as they are."""
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync == 1 or not self._split or sums_loss(self.model.graph):
            return None
        rows = tf.cast(tf.shape(batch[0])[0], tf.float32)
        return rows / context.all_reduce(tf.distribute.ReduceOp.SUM, rows)

    def _combined(self, loss: Tensor, weight: Tensor | None) -> Tensor:
        """The loss of all replicas, as Estimator reports it."""
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync == 1:
            return loss
        mean = not self._split and getattr(self.model.graph, "_is_loss_scaled_by_optimizer", False)
        return context.all_reduce(tf.distribute.ReduceOp.MEAN if mean else tf.distribute.ReduceOp.SUM, _scaled(loss, weight))


def initialise_tables(model: ModelGraph) -> None:
    """Runs the graph's table initialisers once on every replica of the strategy in scope: tables live on devices."""
    initialisers = [operation(op) for op in model.collection(v1.GraphKeys.TABLE_INITIALIZERS)]
    if initialisers:
        run = Fragment.cut(upstream(initialisers, lambda op: False), []).function([])
        run([], [])  # the device of the input pipeline
        tf.distribute.get_strategy().run(tf.function(lambda: run([], [])))


def _written(model: ModelGraph) -> frozenset[str]:
    """The variables that the graph itself assigns to in a step, other than through a captured optimizer."""
    inside = {op for update in model.updates for op in update.internals}
    before = [producer for update in model.updates for producer in update.producers()]
    return assigned(upstream([operation(model.spec.train_op), *before], lambda op: op in inside))


def _check_replicas(variables: Sequence[Any], written: frozenset[str]) -> None:
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    by_graph = [v.op.name for v in variables if v.trainable and v.op.name in written]
    if replicas > 1 and by_graph:
        raise NotSupportedError(
            f"An optimizer without a Keras counterpart updates {by_graph[0]!r} and {len(by_graph) - 1} more variables.",
            expected="on several replicas: an optimizer from tf.train with constant hyperparameters",
            fix="Run on one replica, where it is executed as it is, or use --path legacy.",
        )


def _scaled(value: Any, weight: Tensor | None) -> Any:
    if weight is None:
        return value
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(_scaled(value.values, weight), value.indices, value.dense_shape)
    return value * tf.cast(weight, value.dtype)
