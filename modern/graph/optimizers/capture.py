"""Recorder of the calls that a model_fn makes on its optimizers.

The gradients in the pairs of ``apply_gradients`` are nodes of the graph. So clipping, scaling and multipliers that a script puts
between compute and apply are recorded with them.
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gradients_util

from estimator_bridge.modern.graph.fragments import Operation, Tensor, producers, upstream
from estimator_bridge.modern.graph.optimizers.rebuild import RULES, hyperparameters, rule_for
from estimator_bridge.runtime.patching import replaced, wrapped


@dataclasses.dataclass(frozen=True)
class Update:
    """One call of ``apply_gradients``.

    Attributes:
        optimizer: Optimizer of TensorFlow 1.
        hyperparameters: Hyperparameters of the optimizer under Keras' names.
        pairs: (gradient, variable) pairs.
        op: Operation at the end of the updates.
        internals: Operations that the call made, without those that count the global step.
        untouched: True if the gradients are those of ``compute_gradients``, not changed since (e.g., by clipping).
    """

    optimizer: Any
    hyperparameters: Mapping[str, Any]
    pairs: tuple[tuple[Any, Any], ...]
    op: Operation
    internals: frozenset[Operation]
    untouched: bool

    def producers(self) -> list[Operation]:
        """Returns the operations that must run before this update: gradients, hyperparameters and outside control inputs."""
        inside = upstream([self.op], lambda op: op not in self.internals)
        return [producer for op in inside for producer in producers(op) if producer not in self.internals]

    def slots(self) -> list[tuple[Any, str, Any]]:
        """Returns the variables that the optimizer made: (variable of a pair, slot name, slot variable).

        Adam's ``beta1_power`` and ``beta2_power`` belong to no other variable: (None, name, power).
        """
        names, made = self.optimizer.get_slot_names(), self.optimizer._non_slot_dict.items()
        slots = [(variable, name, self.optimizer.get_slot(variable, name)) for _, variable in self.pairs for name in names]
        powers = [(None, name, power) for (name, graph), power in made if graph is self.op.graph]
        return [row for row in (*slots, *powers) if row[-1] is not None]

    @property
    def slot_names(self) -> Mapping[str, str]:
        """Name of a slot -> its name in the Keras optimizer."""
        return RULES[type(self.optimizer).__name__].slots

    def changing(self) -> dict[str, Tensor]:
        """Returns the hyperparameters that are computed at each step."""
        return {name: value for name, value in self.hyperparameters.items() if tf.is_tensor(value)}

    def gradients(self) -> list[Tensor]:
        """Returns the gradients as plain tensors: values, indices and dense shape of sparse ones."""
        return components(gradient for gradient, _ in self.pairs)

    def with_gradients(self, tensors: Sequence[Tensor]) -> list[tuple[Any, Any]]:
        """Returns ``pairs`` with other gradients, given in the order of ``gradients``."""
        given = tf.nest.pack_sequence_as([gradient for gradient, _ in self.pairs], tensors, expand_composites=True)
        return [(gradient, variable) for gradient, (_, variable) in zip(given, self.pairs, strict=True)]


@dataclasses.dataclass(frozen=True)
class Derivation:
    """One call of ``tf.gradients``, by an optimizer or by the script.

    Attributes:
        losses: Tensors whose gradients were computed.
        weights: Gradients by the losses that the caller gave; empty without any.
        sources: Tensors and handles of variables by which the gradients were computed.
        gradients: Gradients, as tensors or ``tf.IndexedSlices``; None for a source that no loss depends on.
    """

    losses: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    sources: tuple[Tensor, ...]
    gradients: tuple[Any, ...]


def components(gradients: Iterable[Any]) -> list[Tensor]:
    """Returns gradients, if any, as plain tensors: values, indices and dense shape of sparse ones."""
    return list(tf.nest.flatten([one for one in gradients if one is not None], expand_composites=True))


@contextlib.contextmanager
def recorded_derivations() -> Iterator[list[Derivation]]:
    """Yields a list to which each call of ``tf.gradients`` in the present graph is added while this is active."""
    graph, found = tf.compat.v1.get_default_graph(), list[Derivation]()

    def derive(original: Any, ys: Any, xs: Any, grad_ys: Any = None, *args: Any, **kwargs: Any) -> Any:
        gradients = original(ys, xs, grad_ys, *args, **kwargs)
        losses = [tf.convert_to_tensor(loss) for loss in _flat(ys)]
        if all(loss.graph is graph for loss in losses):  # else it belongs to a loop or a branch
            sources = [getattr(source, "handle", source) for source in _flat(xs)]
            weights = [weight for weight in _flat(grad_ys) if weight is not None]
            found.append(Derivation(tuple(losses), tuple(weights), tuple(sources), tuple(gradients)))
        return gradients

    with wrapped(gradients_util, _GradientsHelper=derive):
        yield found


def _flat(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


@contextlib.contextmanager
def recorded_updates(replicas: int = 1, in_threads: bool = False) -> Iterator[list[Update]]:
    """Yields a list to which each update by an optimizer with a Keras counterpart is added while this is active.

    The original call still runs, since it makes the slot variables with their TF1 names. Optimizers without a counterpart are not
    recorded; their operations are part of the graph like any other.

    Args:
        replicas: Number of replicas that take whole batches; 1 if they split each batch. ``compute_gradients`` divides a mean loss
            by it, as TF1's optimizers do under a strategy, so that (perhaps clipped) gradients can be added up.
        in_threads: True if TF1's strategy runs each replica in a thread. What an optimizer makes beside slots, e.g. Adam's powers, then
            has the name of the variable scope twice: the thread of the update enters the scope again.
    """
    updates: list[Update] = []
    computed: set[Tensor] = set()

    def compute_gradients(compute: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = compute(self, *args, **kwargs)
        computed.update(part.ref() for part in components(gradient for gradient, _ in pairs))
        return pairs

    def scale_loss(loss: Any) -> Any:
        graph = tf.compat.v1.get_default_graph()
        graph._is_loss_scaled_by_optimizer = replicas > 1 and not sums_loss(graph)  # TF1 keeps it there, too
        if not graph._is_loss_scaled_by_optimizer:
            return loss
        scaled = loss * (1.0 / replicas)
        scaled_losses(graph).add(getattr(scaled, "name", ""))
        return scaled

    def apply_gradients(apply: Any, self: Any, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        if rule_for(self) is None:
            return apply(self, grads_and_vars, global_step, name)
        pairs = tuple(map(tuple, grads_and_vars))
        graph = tf.compat.v1.get_default_graph()
        made_before = len(graph.get_operations())
        with _scope_again() if in_threads else contextlib.nullcontext():
            op = apply(self, pairs, global_step, name)
        made = set(graph.get_operations()[made_before:])
        done = op if global_step is None else _before_counting(op, made)
        internals = frozenset(made - upstream([op], lambda one: one is done) if global_step is not None else made)
        present = tuple((gradient, variable) for gradient, variable in pairs if gradient is not None)
        untouched = all(part.ref() in computed for part in components(gradient for gradient, _ in present))
        updates.append(Update(self, hyperparameters(self), present, done, internals, untouched))
        return op

    cls = tf.compat.v1.train.Optimizer
    with (
        wrapped(cls, apply_gradients=apply_gradients, compute_gradients=compute_gradients),
        replaced(cls, _scale_loss=staticmethod(scale_loss)),
    ):
        yield updates


def _scope_again() -> contextlib.AbstractContextManager[Any]:
    scope = tf.compat.v1.get_variable_scope().name.rpartition("/")[2]
    return tf.name_scope(scope) if scope else contextlib.nullcontext()


def sums_loss(graph: Any) -> bool:
    """Returns True if TF1 adds up the replicas' gradients, as for a loss reduced by SUM, rather than averaging them."""
    return getattr(graph, "_last_loss_reduction", None) in (tf.compat.v1.losses.Reduction.SUM, "sum")


def scaled_losses(graph: Any) -> set[str]:
    """Returns the names of the losses that ``compute_gradients`` divided by the number of replicas."""
    if not hasattr(graph, "_losses_divided_by_replicas"):
        graph._losses_divided_by_replicas = set()
    names: set[str] = graph._losses_divided_by_replicas
    return names


def _before_counting(op: Operation, made: Set[Operation]) -> Operation:
    """Returns the end of the updates, for which the count of the global step (``op``) or the number 1 that it adds waits."""
    waited_for = [*op.control_inputs, *(one for tensor in op.inputs for one in tensor.op.control_inputs)]
    return next(one for one in waited_for if one in made)
