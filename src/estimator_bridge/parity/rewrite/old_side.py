"""The old side of a comparison with a rewrite: the recording of the legacy path, and what a rewrite needs beyond it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from rich.filesize import decimal

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.graph.fragments import upstream
from estimator_bridge.modern.graph.model_graph import operation
from estimator_bridge.parity.recording import randomness
from estimator_bridge.parity.recording.disk_space import DiskSpace
from estimator_bridge.parity.recording.legacy_side import BatchHook, RecordingEngine, TrainHook, spec_of
from estimator_bridge.parity.recording.randomness import (
    STATEFUL_RANDOM,
    draws_anew,
    draws_rows,
    draws_values,
    random_operations,
)
from estimator_bridge.parity.recording.step_limit import StepLimit
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite import dropout
from estimator_bridge.parity.rewrite.feeding import leaves_of
from estimator_bridge.parity.rewrite.forward_pass.facts import graph_facts, source
from estimator_bridge.parity.rewrite.forward_pass.ties import tied_rows
from estimator_bridge.parity.rewrite.forward_pass.values import ForwardPass
from estimator_bridge.parity.rewrite.input_findings import any_shuffles
from estimator_bridge.parity.rewrite.inputs import graph_draws, graph_shuffles
from estimator_bridge.parity.rewrite.plan import FIRST_STEPS, RewritePlan, anchor_distance
from estimator_bridge.parity.values import read_value
from estimator_bridge.runtime.estimator_calls import EvaluateCall, TrainCall
from estimator_bridge.runtime.graph_values import GraphValues
from estimator_bridge.runtime.patching import wrap

v1 = tf.compat.v1
_counts: GraphValues[Any] = GraphValues()  # graph -> the number of steps before this one, which the global step may not count
_modes: list[str] = []  # of the model functions that are being called
_structures: GraphValues[Any] = GraphValues()  # graph -> leaves of its batch
_specs: GraphValues[Any] = GraphValues()  # graph -> EstimatorSpec of its evaluation or prediction
_asked: GraphValues[list[tuple[Any, Any]]] = GraphValues()  # graph -> (what a gradient is taken of, gradient)
_minimized: GraphValues[dict[str, list[Any]]] = GraphValues()  # graph -> variable -> losses whose gradient is taken
_forget_bias: GraphValues[dict[str, float]] = GraphValues()  # graph -> scope of a cell -> its forget_bias
_updates: GraphValues[list[tuple[Any, Any]]] = GraphValues()  # graph -> (optimizer, gradients and variables)
_trainings: GraphValues[Any] = GraphValues()  # graph -> hook of the script's first training

HYPERPARAMETERS = {
    "learning_rate": ("_lr", "_learning_rate", "_learning_rate_tensor"),
    "beta_1": ("_beta1",),
    "beta_2": ("_beta2",),
    "epsilon": ("_epsilon",),
    "momentum": ("_momentum",),
    "rho": ("_decay", "_rho"),
    "initial_accumulator_value": ("_initial_accumulator_value",),
    "learning_rate_power": ("_learning_rate_power",),
    "centered": ("_centered",),
    "l1_regularization_strength": ("_l1_regularization_strength",),
    "l2_regularization_strength": ("_l2_regularization_strength",),
    "nesterov": ("_use_nesterov",),
}
"""Keras' name of a hyperparameter -> attributes of TensorFlow 1's optimizers."""
_COPIES = 3
"""Values of an anchor on disk: the old side's, and the new side's before and after it gets them."""


@dataclasses.dataclass
class _Progress:
    """The state that the training calls of a script share."""

    steps: int = 0
    bytes: float = 0.0
    start: int | None = None  # global step before the first of them


class ReferenceEngine(RecordingEngine):
    """Records what the comparison with a rewrite needs.

    Args:
        trace: Trace of the old side.
        limit: Number of training steps after which the script ends.
        plan: Rewrite and how to compare it.
        moved: Function of a path that returns the path in the side's folders.
    """

    def __init__(self, trace: Trace, limit: StepLimit, plan: RewritePlan, moved: Callable[[str], str] = str) -> None:
        super().__init__(trace, limit, True, moved)
        self._plan = plan
        self._progress = _Progress()
        self._model_dir = ""  # of the first training
        dropout.equalise(_global_step, feeds=True, trains=lambda: _modes[-1:] == [v1.estimator.ModeKeys.TRAIN])
        _remember()
        _save_what_is_initialized()

    def train(self, estimator: Any, call: TrainCall) -> Any:
        """Executes ``Estimator.train`` and records each step."""
        strategy = estimator.config.train_distribute
        if strategy is not None and strategy.num_replicas_in_sync > 1:
            raise BridgeError(
                "The old script trains on several replicas, which cannot be compared with a rewrite yet.",
                expected="a RunConfig without train_distribute, or with one device",
                received=f"{type(strategy).__name__} over {strategy.num_replicas_in_sync} devices",
                fix="Compare the same scripts on one device.",
            )
        self._end_before_another_model(estimator.model_dir)
        return super().train(estimator, call)

    def _end_before_another_model(self, folder: str) -> None:
        """Ends the script where it trains a second model: which of the new script's models that is, nothing says."""
        if self._model_dir and (folder != self._model_dir or not tf.train.latest_checkpoint(folder)):
            self._trace.write("another model")
            self._trace.write("limited", steps=self._limit.taken)
            self._limit.reach()
            self._limit.end_script()
        self._model_dir = folder

    def make_hook(self, call: Any, name: str) -> Any:
        """Returns the hook that records a call."""
        if isinstance(call, TrainCall):
            return _ReferenceHook(self._trace, name, self._plan, self._progress, self.most_steps(call), self._limit)
        if isinstance(call, EvaluateCall):
            return _EvaluationHook(self._trace, name, True, call.steps)
        return _StructureHook(self._trace, name, True, None)


class _StructureHook(BatchHook):
    """Records the names of a batch's tensors, too."""

    def begin(self) -> None:
        super().begin()
        _write_structure(self._trace, self._call)
        self._spec = _specs.get(v1.get_default_graph(), None)
        given = {tensor.op for batch in self._batches for tensor in batch}
        self._read_by = {name: upstream(roots, given.__contains__) for name, roots in _computed(self._spec)}
        names = {name: random_operations(read) for name, read in self._read_by.items()}
        self._trace.write("drawn", call=self._call, names={name: drawn for name, drawn in names.items() if drawn})


class _EvaluationHook(_StructureHook):
    """Records the loss and the rows of each batch, too."""

    has_shapes = True

    def __init__(self, trace: Trace, call: str, recording: bool, steps: int | None) -> None:
        super().__init__(trace, call, recording, steps)
        self._asked = steps

    def begin(self) -> None:
        super().begin()
        graph = v1.get_default_graph()
        self._loss = self._spec.loss if self._spec else None
        read = upstream([self._loss.op]) if self._loss is not None else ()
        self._dropout = sum(site.draw.graph is not graph or site.draw in read for site in dropout.sites.get(graph, []))
        with tf.name_scope("estimator_bridge"):
            ties = {name: tied_rows(by, read) for name, by in self._read_by.items() if name != "loss"}
        self._tied = {name: rows for name, rows in ties.items() if rows is not None}
        self._seen: list[float] = []
        self._rows: list[int] = []
        self._ties = Counter[str]()

    def before_run(self, run_context: Any) -> Any:
        args = super().before_run(run_context)
        return v1.train.SessionRunArgs({**args.fetches, "loss": [] if self._loss is None else self._loss, "ties": self._tied})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        super().after_run(run_context, run_values)
        if self._loss is not None:
            self._seen.append(float(run_values.results["loss"]))
        self._ties.update({name: int(rows) for name, rows in run_values.results["ties"].items()})
        ranked = [shape for shape in run_values.results["shapes"] if len(shape)]
        self._rows.append(int(ranked[-1][0]) if ranked else 1)

    def end(self, session: Any) -> None:
        super().end(session)
        is_whole = self._asked is None or len(self._rows) < self._asked  # all of the data was read, whatever its order
        counted = {"losses": self._seen, "rows": self._rows, "ties": self._ties, "dropout": self._dropout}
        self._trace.write("evaluation", call=self._call, **counted, is_whole=is_whole)


class _ReferenceHook(TrainHook):
    """Records anchors, and gradients of the first steps."""

    has_shapes = True

    def __init__(
        self, trace: Trace, call: str, plan: RewritePlan, progress: _Progress, steps: int | None, limit: StepLimit
    ) -> None:
        super().__init__(trace, call, True, steps, limit)
        self._plan, self._progress, self._planned = plan, progress, steps
        self._random_state: Any = None  # when the values of initializers were saved

    def begin(self) -> None:
        super().begin()
        graph = v1.get_default_graph()
        _write_structure(self._trace, self._call)
        self._leaves = _structures.get(graph, [])
        variables = v1.global_variables()
        self._size = _COPIES * sum(v.dtype.size * (v.shape.num_elements() or 0) for v in variables)
        left = self._plan.anchor_limit - self._progress.bytes
        self._every = anchor_distance(self._plan.anchor, self._size, left, self._planned)
        self._disk = self._anchors_fit(left)
        trainable = {_saved_name(v) for v in v1.trainable_variables()}
        named = [[name, _saved_shape(v), name in trainable] for name, v in {_saved_name(v): v for v in variables}.items()]
        given = (
            []
            if draws_values()
            else sorted({_saved_name(v) for v in variables} - {_saved_name(v) for v in variables if _is_drawn(v)})
        )
        self._trace.write(
            "variables",
            call=self._call,
            variables=named,
            size=self._size,
            every=self._every,
            given=given,
            forget_bias=_forget_bias.get(graph, {}),
        )
        in_step = set(upstream([self._loss.op, operation(spec_of(graph).train_op)], lambda op: False))
        sites = [site for site in dropout.sites.get(graph, []) if site.draw.graph is not graph or site.draw in in_step]
        trained = {v.op: _saved_name(v) for v in v1.trainable_variables()}
        sites = dropout.with_places(sites, graph, upstream([self._loss.op]), trained)
        self._numbers = dict(dropout.occurrences(sites))
        loops = [name for name, op in dropout.refused.get(graph, []) if op.graph is not graph or op in in_step]
        dropout.write_sites(self._trace, sites, loops)
        self._draws = _draws_apart(graph, in_step) or draws_anew() or graph_draws(graph, self._batches[0])
        self._state_at_begin = randomness.state()
        self._find_gradients(graph)
        self._write_facts(graph, in_step)
        if not self._progress.steps and not _draws_apart(graph, in_step):
            _trainings[graph] = self

    def initialized(self, session: Any) -> None:
        """Saves the values of initializers, before functions and hooks of the script set others."""
        with contextlib.suppress(tf.errors.FailedPreconditionError):  # a variable that only a hook gives a value
            self.save(session, "initialized")
            self._random_state = randomness.state()

    def _write_set(self) -> None:
        """Writes which variables have other values before the first step than their initializers gave them, but for copies of others."""
        before, after = (self._trace.values(self._call, moment) for moment in ("initialized", "initial"))
        if self._random_state == randomness.state() and not draws_rows():  # else they may be drawn, or nothing is saved
            old, new = (dict(_digests(prefix)) for prefix in (before, after))
            unchanged = {new[name] for name in new if old[name] == new[name]}
            changed = [name for name in new if old[name] != new[name] and new[name] not in unchanged]
            self._trace.write("set", variables=changed)
        for path in Path(before).parent.glob(f"{Path(before).name}.*"):
            path.unlink()

    def _anchors_fit(self, left: float) -> DiskSpace:
        """Checks that the anchors of the first steps stay within the limit, and returns what checks that all fit on the disk."""
        still = max(0, FIRST_STEPS - self._progress.steps)
        first = still if self._planned is None else min(still, self._planned)
        if first * self._size > left:
            raise BridgeError(
                f"The values that a comparison gives back at the first {first} steps are larger than --anchor-limit.",
                expected=f"{first} x {decimal(self._size)} ({_COPIES} copies of the variables and slots) or more",
                received=decimal(int(left)),
                fix=f"Give --anchor-limit {first * self._size} or more, or compare a smaller model.",
            )
        if self._planned is None:
            return DiskSpace(self._trace.folder, None)
        return DiskSpace(
            self._trace.folder, min(int(left // max(self._size, 1)), FIRST_STEPS + self._planned // self._every + 1)
        )

    def _find_gradients(self, graph: Any) -> None:
        """Finds the gradients that optimizers are given, and those that they come from."""
        updates = _updates.get(graph, [])
        pairs = [pair for _, of_update in updates for pair in of_update]
        known = [(g, v) for g, v in pairs if g is not None and _is_fetchable(g)]  # not inside of tf.cond
        self._applied = {_name(v): tf.convert_to_tensor(g) for g, v in known}
        dense = {id(g): self._applied[_name(v)] for g, v in known}
        given = {name: gradient.op for name, gradient in self._applied.items()}
        read = upstream(given.values())
        self._gradients = {
            name: dense[id(gradient)] if id(gradient) in dense else tf.convert_to_tensor(gradient)
            for name, gradient in _asked.get(graph, [])
            if name in given and (gradient.op in read if tf.is_tensor(gradient) else gradient.values.op in read)
        }
        self._is_changed = any(
            tf.is_tensor(gradient) and source(self._applied[name]) is not source(gradient)
            for name, gradient in _asked.get(graph, [])
            if name in self._gradients
        )
        minimized = _minimized.get(graph, {})  # by an optimizer of the script's own, what is applied is not known
        losses = (one for name in self._gradients or minimized for one in minimized[name])
        first = next((one for one in losses if one.graph is graph and one.shape.rank == 0 and graph.is_fetchable(one)), None)
        self._other_loss = None if first is None or first.name == self._loss.name else first
        if self._other_loss is not None:  # it may read variables that the updates change
            in_loss = upstream([self._other_loss.op])
            parts = tf.nest.flatten([gradient for _, gradient in _asked.get(graph, [])], expand_composites=True)
            for op in {part.op for part in parts if graph.is_fetchable(part)} - in_loss:
                op._add_control_input(self._other_loss.op)
        self._optimizers = [_describe(optimizer, graph) for optimizer, _ in updates]
        self._updated = [[_name(v) for g, v in pairs if g is not None] for _, pairs in updates]
        self._rates: list[Any] | None = None

    def _write_facts(self, graph: Any, in_step: set[Any]) -> None:
        in_loss = upstream([self._loss.op])
        forward = [op for op in graph.get_operations() if op in in_loss and not op.name.startswith("gradients")]
        self._trace.write("graph", **graph_facts(forward))
        collected = graph.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)
        shuffles = any_shuffles(graph_shuffles(graph), None if draws_rows() or self._draws else False)
        alone = sum(tf.is_tensor(one) and one.op not in in_loss for one in collected)
        self._trace.write("facts", changes_gradients=self._is_changed, collected_only=alone, shuffles=shuffles)
        batch = zip(self._batches[0], (leaf.path for leaf in self._leaves), strict=False)
        self._forward = ForwardPass(self._loss, forward, batch)  # adds Python functions, which the facts are not about
        self._looked = self._forward.look() if not self._progress.steps else []

    def before_run(self, run_context: Any) -> Any:
        args = super().before_run(run_context)
        if not self._progress.steps:
            self._write_set()
        is_first = self._progress.steps < FIRST_STEPS
        more: dict[str, Any] = {"gradients": self._gradients, "applied": self._applied} if is_first else {}
        more["looked"] = self._looked if not self._progress.steps else []
        more["minimized"] = [] if self._other_loss is None else self._other_loss
        more["optimizers"] = [fetched for _, _, fetched in self._optimizers]
        if self._progress.start is None:
            self._progress.start = self._start
        step = _counts.get(run_context.session.graph, None)
        count = {} if step is None else {step: self._progress.start + self._progress.steps}
        return v1.train.SessionRunArgs({**args.fetches, **more}, {**self._numbers, **count})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        super().after_run(run_context, run_values)
        self._progress.steps += 1
        index = self._progress.steps
        if self._other_loss is not None:
            self._trace.write("minimized", index=index, loss=float(run_values.results["minimized"]))
        self._write_rates(index, run_values.results["optimizers"])
        if index <= FIRST_STEPS:
            self._write_first(index, run_values.results)
        if self._plan.has_anchor(index, self._every):
            self._write_anchor(run_context.session, index)

    def end(self, session: Any) -> None:
        super().end(session)
        if self._draws is None:
            self._draws = randomness.may_have_drawn(self._state_at_begin)
        self._trace.write("batch values", drawn=self._draws)
        index = self._progress.steps
        if self._steps and index > FIRST_STEPS and not self._plan.has_anchor(index, self._every):
            self._write_anchor(session, index)

    def _write_rates(self, index: int, fetched: list[Any]) -> None:
        known = zip(self._optimizers, fetched, strict=True)
        rates = [
            {**fixed, **{key: float(value) for key, value in new.items()}}.get("learning_rate") for (_, fixed, _), new in known
        ]
        if rates != self._rates:
            self._rates = rates
            self._trace.write("rates", index=index, rates=rates)

    def _write_first(self, index: int, results: Any) -> None:
        for what in ("gradients", "applied"):
            np.savez(self._trace.folder / "values" / f"{what}-{index}.npz", **results[what])
        if index == 1:
            self._forward.write(self._trace.folder / "values")
            shapes = {leaf.path: shape.tolist() for leaf, shape in zip(self._leaves, results["shapes"], strict=False)}
            self._trace.write("shapes", shapes=shapes)
        known = [
            {
                "name": name,
                "family": "tf1",
                "hyperparameters": {**fixed, **{key: float(value) for key, value in fetched.items()}},
                "variables": updated,
            }
            for (name, fixed, _), fetched, updated in zip(self._optimizers, results["optimizers"], self._updated, strict=True)
        ]
        self._trace.write("optimizers", index=index, optimizers=known)

    def _write_anchor(self, session: Any, index: int) -> None:
        if index > FIRST_STEPS and self._progress.bytes + self._size > self._plan.anchor_limit:
            return
        self._disk.check(self._size)
        self._progress.bytes += self._size
        self.save(session, f"anchor-{index}")
        self._trace.write("anchor", index=index, prefix=self._trace.values(self._call, f"anchor-{index}"), size=self._size)


def _is_fetchable(gradient: Any) -> bool:
    """Returns True unless a gradient is a part of a branch or a loop."""
    return all(one.graph.is_fetchable(one) for one in tf.nest.flatten(gradient, expand_composites=True))


def _is_drawn(variable: Any) -> bool:
    """Returns True if random numbers, or Python code that may draw some, give a variable its initial value."""
    return any(
        op.type in STATEFUL_RANDOM or "Random" in op.type or "PyFunc" in op.type or "Call" in op.type
        for op in upstream([operation(variable.initializer)])
    )


def _draws_apart(graph: Any, in_step: Collection[Any]) -> bool:
    """Returns True if something draws that is neither an initializer nor in a step: a hook may choose values by it, as for k-means."""
    drawn = {op for op in graph.get_operations() if op.type in STATEFUL_RANDOM or "Random" in op.type or "Kmeans" in op.type}
    return bool(drawn - set(upstream([operation(v.initializer) for v in v1.global_variables()])) - set(in_step))


def _digests(prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the digest of each variable of a checkpoint but those of strings."""
    index = read_index(prefix)
    for name in index.entries:
        value = read_value(index, name)
        if not value.dtype.hasobject:
            yield name, hashlib.sha256(repr((value.dtype, value.shape)).encode() + value.tobytes()).digest()


def _write_structure(trace: Trace, call: str) -> None:
    leaves = _structures.get(v1.get_default_graph(), [])
    trace.write("structure", call=call, leaves=[dataclasses.astuple(leaf) for leaf in leaves])


def _global_step() -> Any:
    """Returns the global step before the training step, 0 in a graph that has none; trainings feed the count of their steps."""
    with tf.init_scope():
        graph = v1.get_default_graph()
        count = _counts.get(graph, None)
        if count is None:
            step = v1.train.get_global_step()
            none = tf.constant(0, tf.int64)
            value = none if step is None else v1.cond(v1.is_variable_initialized(step), lambda: tf.identity(step), lambda: none)
            _counts[graph] = count = v1.placeholder_with_default(value, [])
        return count


def _describe(optimizer: Any, graph: Any) -> tuple[str, dict[str, float], dict[str, Any]]:
    """Returns an optimizer's class, its hyperparameters that are numbers, and those that are tensors of the graph."""
    fixed, fetched = {}, {}
    for name, attributes in HYPERPARAMETERS.items():
        value = next((getattr(optimizer, attribute) for attribute in attributes if hasattr(optimizer, attribute)), None)
        if tf.is_tensor(value) or isinstance(value, tf.Variable):
            if getattr(value, "graph", None) is graph:
                fetched[name] = value
        elif isinstance(value, (int, float)):
            fixed[name] = float(value)
    return type(optimizer).__name__, fixed, fetched


def _computed(spec: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yields the name of each metric of an evaluation or output of a prediction, with the operations that compute it."""
    if spec is None:
        return
    if spec.mode == v1.estimator.ModeKeys.PREDICT:
        outputs = spec.predictions if isinstance(spec.predictions, dict) else {"": spec.predictions}
        yield from ((name, [output.op]) for name, output in outputs.items())
        return
    yield "loss", [spec.loss.op]
    for name, metric in (spec.eval_metric_ops or {}).items():
        yield name, list(map(operation, tf.nest.flatten(metric) if isinstance(metric, tuple) else metric.updates))


def _remember() -> None:
    """Keeps the structure of batches, what evaluations and predictions compute, and the gradients of trainings, by graph."""
    from tensorflow_estimator.python.estimator import util
    from tensorflow_estimator.python.estimator.estimator import Estimator

    def parse(original: Callable[..., Any], result: Any) -> Any:
        """Keeps the structure for calls with a strategy, too; those without one call it from ``parse_input_fn_result``."""
        features, labels = original(result)
        _structures[v1.get_default_graph()] = leaves_of((features, labels), has_labels=True)
        return features, labels

    def model_fn(
        original: Callable[..., Any], estimator: Any, features: Any, labels: Any, mode: str, config: Any = None
    ) -> Any:
        _modes.append(mode)
        try:
            spec = original(estimator, features, labels, mode, config)
        finally:
            _modes.pop()
        if mode != v1.estimator.ModeKeys.TRAIN:
            _specs[v1.get_default_graph()] = spec
        return spec

    def apply(original: Callable[..., Any], optimizer: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        _updates.setdefault(v1.get_default_graph(), []).append((optimizer, pairs))
        return original(optimizer, pairs, *args, **kwargs)

    def gradients(original: Callable[..., Any], ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(ys, xs, *args, **kwargs)
        variables = {id(known): _name(v) for v in v1.global_variables() for known in _spellings(v)}
        for x, gradient in zip(xs if isinstance(xs, (list, tuple)) else [xs], found, strict=False):
            if gradient is not None and id(x) in variables:
                _asked.setdefault(v1.get_default_graph(), []).append((variables[id(x)], gradient))
                losses = _minimized.setdefault(v1.get_default_graph(), {}).setdefault(variables[id(x)], [])
                losses += tf.nest.flatten(ys)
        return found

    def call(original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = original(cell, *args, **kwargs)
        if isinstance(getattr(cell, "_forget_bias", None), (int, float)) and cell.variables:
            _forget_bias.setdefault(v1.get_default_graph(), {})[_scope(cell.variables[0])] = float(cell._forget_bias)
        return outputs

    from tensorflow.python.ops import gradients_util

    wrap(v1.nn.rnn_cell.BasicLSTMCell.__base__, __call__=call)
    wrap(gradients_util, _GradientsHelper=gradients)
    wrap(util, parse_iterator_result=parse)
    wrap(Estimator, _call_model_fn=model_fn)
    wrap(v1.train.Optimizer, apply_gradients=apply)


def _save_what_is_initialized() -> None:
    """Saves the values of initializers of a script's first training, unless it goes on from a checkpoint."""
    from tensorflow.python.training.session_manager import SessionManager

    def prepare(original: Callable[..., Any], manager: Any, *args: Any, init_fn: Any = None, **kwargs: Any) -> Any:
        def init(session: Any) -> None:
            if training := _trainings.get(session.graph, None):
                training.initialized(session)
            if init_fn:
                init_fn(session)

        return original(manager, *args, init_fn=init, **kwargs)

    wrap(SessionManager, prepare_session=prepare)


def _scope(variable: Any) -> str:
    return _saved_name(variable).rpartition("/")[0]


def _saved_name(variable: Any) -> str:
    """Returns a variable's name in checkpoints, where the parts of a partitioned variable are one."""
    info = variable._get_save_slice_info()
    return str(info.full_name if info else variable.op.name)


def _saved_shape(variable: Any) -> list[int]:
    info = variable._get_save_slice_info()
    return [int(size) for size in info.full_shape] if info else variable.shape.as_list()


def _name(variable: Any) -> str:
    """Returns a variable's name in checkpoints; that of its operation if it is one of several parts."""
    return _saved_name(variable) if _saved_shape(variable) == variable.shape.as_list() else str(variable.op.name)


def _spellings(variable: Any) -> list[Any]:
    """Returns a variable and the tensors that optimizers ask for in its place."""
    return [variable, getattr(variable, "handle", None) if hasattr(variable, "handle") else variable._ref()]
