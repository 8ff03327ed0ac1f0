"""Takes a model function apart: network, loss, metrics, predictions and optimizer."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import re
from collections.abc import Container, Iterator, Sequence, Set
from typing import TypeVar

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import Change, Outcome, UnconvertibleError
from estimator_bridge.compat.source.fixers.model import metrics, optimizers
from estimator_bridge.compat.source.fixers.model.branches import unified, with_one_name
from estimator_bridge.compat.source.fixers.model.flow import (
    Branch,
    Mode,
    ModeTests,
    Statement,
    as_test_of_mode,
    assigned,
    assigned_target,
    assigned_value,
    branch,
    changed_by_another_name,
    changed_in_place,
    is_text,
    needed_for,
    reads_and_writes,
    rebound,
    scopes_with_returns,
    tainted_by,
    unwrapped,
)
from estimator_bridge.compat.source.fixers.model.function.checks import OF_GRAPHS, UNKNOWN, Checks
from estimator_bridge.compat.source.fixers.model.function.definitions import Definitions
from estimator_bridge.compat.source.fixers.model.function.effects import Effects
from estimator_bridge.compat.source.fixers.model.function.metric_entries import NOT_ONE_DICT, MetricEntries
from estimator_bridge.compat.source.fixers.model.function.parts import ModelFunction, Way
from estimator_bridge.compat.source.fixers.model.function.signatures import Signatures
from estimator_bridge.compat.source.fixers.model.function.spec_arguments import spec_arguments
from estimator_bridge.compat.source.fixers.model.function.whole_model import COUNTED, of_whole_model
from estimator_bridge.compat.source.fixers.model.inlining import inlined
from estimator_bridge.compat.source.fixers.model.keras_calls import KerasCalls
from estimator_bridge.compat.source.fixers.model.layers import VARIABLE, is_keras, layer_function
from estimator_bridge.compat.source.fixers.model.updates import (
    REBOUND,
    STEPS,
    Updates,
    find_updates,
)
from estimator_bridge.compat.source.fixers.script import (
    Arguments,
    Script,
    code,
    known_of_nodes,
    nodes,
    parsed,
    simple_name,
)

_DRAWS = re.compile(r"\b(random\w*\.?\w*|truncated_normal|multinomial|dropout|distributions\.\w+|sample)\(")
INITIAL = "tensorflow.train.init_from_checkpoint"
"""Function that gives variables the values of another checkpoint."""
_Block = TypeVar("_Block", bound=cst.CSTNode)
_OF_METRICS = "a metric is computed from its updates; write a tf_keras.metrics.Metric"


def take_apart(script: Script, function: cst.FunctionDef, way: Way) -> ModelFunction:
    """Finds the parts of a model function.

    Args:
        script: Script around the function.
        function: The function.
        way: Way of making its class.

    Raises:
        UnconvertibleError: A part is not of a form that this module knows.
    """
    analysis = _begun(script, function, way.shim, way.keeps_choices)
    if isinstance(analysis, UnconvertibleError):
        raise analysis
    return analysis.result(way)


@known_of_nodes
def _begun(script: Script, function: cst.FunctionDef, shim: bool, keeps_choices: bool) -> _Analysis | UnconvertibleError:
    """Returns what all ways of making a class share, which takes most of the time, or why there is none."""
    try:
        return _Analysis(script, function, shim, keeps_choices)
    except UnconvertibleError as reason:
        return reason


class _Analysis:
    _keeps_updates = _reads_labels = _predicts_anew = False

    def __init__(self, script: Script, function: cst.FunctionDef, shim: bool, keeps_choices: bool) -> None:
        self._script = script
        self._function = function
        self._shim = shim
        names = [parameter.name.value for parameter in function.params.params]
        if not names or function.params.star_kwarg or "mode" not in names:
            raise UnconvertibleError(function, "the model function", "its arguments must be features, labels, mode and params")
        self._features = "features" if "features" in names else names[0]
        self._labels = "labels" if "labels" in names else ""
        self._params = "params" if "params" in names else ""
        self._more = [
            one
            for place, one in enumerate(function.params.params)
            if one.name.value not in (self._features, "labels", "mode", "params")
            and (one.name.value not in ("config", "model_dir") or place < names.index(self._features))
        ]
        self._found = Definitions(script, function)
        self._own = self._found.own
        self._effects = Effects(script, self._own)
        functions = {name: one for name, one in self._own.items() if isinstance(one, cst.FunctionDef)}
        self._keras = KerasCalls(script, function, self._own, self._found.reached, self._shim)
        body = [one for one in function.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
        self._body, self._inlined = inlined(script, body, functions, functools.cache(self._belongs_here))
        self._check_methods()
        is_of_run = "config" in names and "config" not in [one.name.value for one in self._more]
        if is_of_run and any("config" in reads_and_writes(one)[0] for one in self._body if not self._effects.only_tells(one)):
            raise UnconvertibleError(function, "config", "the model function reads it; take the value from params")
        self._tests = ModeTests(script, "mode", self._body, self._labels)
        self._body = [as_test_of_mode(one, self._tests) for one in self._body]
        self._untold = self._keras.untold(self._body)
        found = {mode: branch(script, self._tests, self._body, mode, keeps_choices) for mode in Mode}
        if found[Mode.TRAIN] is None:
            raise UnconvertibleError(function, "the model function", "it returns nothing in training; return an EstimatorSpec")
        branches = with_one_name(script, {mode: one for mode, one in found.items() if one is not None}, self._features)
        self._branches = unified(script, branches, self._untold)

    def result(self, way: Way) -> ModelFunction:
        """Returns the parts, in one way."""
        if way.reads_labels and not self._labels:
            raise UnconvertibleError(self._function, "the model function", "it has no labels")
        one = copy.copy(self)
        one._keeps_updates, one._reads_labels, one._predicts_anew = way.keeps_updates, way.reads_labels, way.predicts_anew
        one._prepare()
        return one._result()

    def _prepare(self) -> None:
        batch, given = {self._features, self._labels} - {""}, {self._params, *(one.name.value for one in self._more)} - {""}
        self._checks = Checks(
            self._script, self._function, self._found, self._body, self._tests, batch, given, self._shim, self._keras.frozen
        )
        self._approximate: list[tuple[cst.CSTNode, str]] = []  # part of a spec, what becomes of it
        self._initial = self._take_initial_values()
        self._received = self._take_received()
        self._specs = {mode: spec_arguments(self._script, one, self._approximate) for mode, one in self._branches.items()}
        one, spec = self._branches.get(Mode.PREDICT), self._specs.get(Mode.PREDICT, {})
        self._signatures, asked = Signatures(self._script, one, spec), spec.get("predictions")
        self._of_predictions = {*needed_for(_read(asked), one.statements)} if asked is not None and one is not None else set()

    def _check_methods(self) -> None:
        """Raises if a call of what stands for a method is left: its function would assign variables of its own; takes the others away."""
        for one in self._body:
            reached = [self._own[name] for name in self._found.reached([one])[1]]
            inner = {
                part.name.value
                for each in reached
                for part in nodes(each, cst.FunctionDef)
                if isinstance(part, cst.FunctionDef) and reads_and_writes(part.body)[1] & self._script.attributes
            }
            left = (reads_and_writes(one)[0] | inner) & self._script.methods
            if left and not isinstance(one, cst.FunctionDef):
                message = "this method of an object cannot be put in the place of its call; write it as one function that returns at its end"
                raise UnconvertibleError(one, min(left), message)
        self._body = [one if isinstance(one, cst.FunctionDef) else self._without_methods(one) for one in self._body]
        self._check_lists()

    def _check_lists(self) -> None:
        """Raises for a list that is changed by another name, for what reads it is not seen to depend on that."""
        for statement, other in changed_by_another_name(self._body):
            message = f"it also changes {other}, which is the same list; make a new list with both"
            raise UnconvertibleError(statement, "the model function", message)

    def _without_methods(self, block: _Block) -> _Block:
        """Returns a block without functions that stand for methods: their bodies are in the place of their calls."""
        names = {one.name.value for one in nodes(block, cst.FunctionDef) if isinstance(one, cst.FunctionDef)}
        body = getattr(block, "body", None)
        if self._script.methods.isdisjoint(names) or not isinstance(body, cst.IndentedBlock):
            return block
        kept = [one for one in body.body if not isinstance(one, cst.FunctionDef) or one.name.value not in self._script.methods]
        inside = [self._without_methods(one) for one in kept]  # other nodes stay the same, for the script knows them
        changed = block.with_changes(body=body.with_changes(body=inside))
        rest = getattr(block, "orelse", None)
        return changed if rest is None else changed.with_changes(orelse=self._without_methods(rest))

    def _take_initial_values(self) -> list[Statement]:
        """Takes the statements that load a checkpoint out of the branches, and returns them with what they need."""
        statements = self._branches[Mode.TRAIN].statements
        loading = [one for one in statements if any(self._script.called(call) == INITIAL for call in nodes(one, cst.Call))]
        before = {each for one in loading for each in needed_for(_read_by([one]), statements[: statements.index(one)])}
        needed = [one for one in statements if one in before or one in loading]
        own = {self._features, self._labels} - {""}
        for statement in tainted_by(own, needed)[0]:
            raise UnconvertibleError(
                statement, INITIAL.replace("tensorflow", "tf", 1), "it depends on the batch; load the values once"
            )
        others = {mode: [one for one in branch.statements if one not in loading] for mode, branch in self._branches.items()}
        self._branches = {
            mode: dataclasses.replace(one, statements=tuple(others[mode])) for mode, one in self._branches.items()
        }
        return needed

    def _take_received(self) -> list[Statement]:
        """Takes the first statements of a prediction, if they give the features another value, out of its branch, and returns them."""
        one = self._branches.get(Mode.PREDICT)
        others = {each for mode, other in self._branches.items() if mode is not Mode.PREDICT for each in other.statements}
        lines = [each for each in one.statements if not is_text(each)] if one else []
        before = list(itertools.takewhile(lambda each: each not in others, lines))
        taken = [each for each in before if reads_and_writes(each)[1] == {self._features}]
        others_read = self._features in _read_by([each for each in before if each not in taken])
        if one is not None and not others_read and not _read_by(taken) & (self._tests.bound - {self._features}):
            rest = tuple(each for each in one.statements if each not in taken)
            self._branches[Mode.PREDICT] = dataclasses.replace(one, statements=rest)
            return taken
        return []

    def _result(self) -> ModelFunction:
        train, spec = self._branches[Mode.TRAIN], self._specs[Mode.TRAIN]
        loss_value = spec.get("loss")
        if loss_value is None:
            raise UnconvertibleError(train.spec, "EstimatorSpec", "it has no loss in training; give it one")
        network, loss = self._split(train, _read(loss_value))
        if not network and not loss:
            raise UnconvertibleError(
                train.spec, "EstimatorSpec", "its loss reads nothing that the function computes; correct that"
            )
        self._check_penalties(network)
        self._check_calls([*network, *loss])
        evaluation = self._evaluation_loss(loss_value, network, loss)
        kept_metrics = None
        try:
            network, measured, found = self._metrics(network)
        except UnconvertibleError:
            if not self._keeps_updates:
                raise
            network, kept_metrics, measured = self._kept_metrics(network)
            found = []
        network, predicted, predictions = self._predictions(network)
        updates, kept = self._updates(train, spec, {*network, *loss})
        both = self._found.reached(network)[1] & self._found.reached(kept)[1] if self._shim else ()
        for call in (one for name in both for one in nodes(self._own[name], cst.Call)):
            if self._script.called(call) == VARIABLE:
                message = "the network and the updates make it by one function; write two"
                raise UnconvertibleError(call, "tf.Variable", message)
        used_in_class = {*network, *loss, *(evaluation[0] if evaluation else ()), *measured, *predicted}
        used = used_in_class | self._of_specs()
        return ModelFunction(
            self._function, self._features, self._labels, self._params, tuple(self._more), self._tests,
            tuple(self._in_order(network)), frozenset(self._found.reached(network)[0]), self._reads_labels, tuple(scopes_with_returns(self._script, self._body)), tuple(loss), loss_value, evaluation, tuple(measured), tuple(found), kept_metrics, tuple(self._received), tuple(predicted), predictions, self._predicts_anew,
            updates.prepared, updates.optimizer, tuple(kept), tuple(self._initial), (*updates.notes, *self._notes(used, {*kept, *used_in_class})),
            tuple(self._inlined), self._signatures.names(), self._keras.makes, self._untold, frozenset(self._checks.frozen),
            self._found.reached(network)[1] if self._shim else None, self._found.reached([*kept, *([*measured, kept_metrics] if kept_metrics else [])])[1],
        )  # fmt: skip

    def _updates(self, train: Branch, spec: Arguments, computed: set[Statement]) -> tuple[Updates, list[Statement]]:
        """Returns the optimizer of Keras; if there is none, and they may stay, the statements that a graph of tf.function can execute."""
        try:
            return find_updates(self._script, train.statements, spec, self._checks.check, {self._features, self._labels}), []
        except UnconvertibleError:
            asked = spec.get("train_op")
            if not self._keeps_updates or asked is None:
                raise
        kept = [one for one in needed_for(_read(asked), train.statements) if one not in computed]
        kept += [cst.SimpleStatementLine([cst.Expr(asked)])] if not isinstance(asked, cst.Name) else []
        self._check_kept(kept, computed, train)
        message = "its updates stay as they are: train_step executes them in the graph of a step"
        return Updates((), "", (Change(self._script.line(asked), "train_op", Outcome.CONVERTED, message),)), kept

    def _split(self, one: Branch, names: set[str]) -> tuple[list[Statement], list[Statement]]:
        """Returns the statements that names need: those of the network, and those that need labels or trained variables."""
        needed = needed_for(names, one.statements)
        later = [statement for statement in needed if self._found.asks_whole_model(statement) - {COUNTED}]
        late_names = {name for statement in later for name in reads_and_writes(statement)[1]}
        tainted, _ = tainted_by({self._labels, *late_names} - {""}, needed)
        if self._reads_labels:
            tainted = [each for each in tainted if each not in self._of_predictions]
        late = [statement for statement in needed if statement in tainted or statement in later]
        late = self._with_those_of_training(one, needed, late)
        network = [statement for statement in needed if statement not in late]
        for statement in needed:
            self._checks.check(statement, network=True, late=statement in late)
            self._checks.check_asked(statement)
            for name in self._found.reached([statement])[0] & OF_GRAPHS:
                message = "there is no graph that has them; use the model's own variables"
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), message)
        for call in () if self._shim else self._checks.returned_by_others(network):
            raise UnconvertibleError(call, code(call.func), UNKNOWN)
        own = [self._own[name] for name in self._found.reached(late)[1]]
        for named in (each for one in (*late, *own) for each in nodes(one, cst.Attribute, cst.Name)):
            if self._script.name(named).startswith(metrics.PREFIX):
                message = "what computes the loss makes it, too, and each step would make it anew; write them in statements of their own"
                raise UnconvertibleError(named, self._script.name(named).replace("tensorflow", "tf", 1), message)
        for made in (each for one in (*late, *own) for each in nodes(one, cst.Call)):
            kept = self._shim and self._script.called(made) != "tensorflow.layers.flatten"
            if self._script.called(made) in ("tensorflow.get_variable", VARIABLE) or (
                kept and layer_function(self._script.called(made))
            ):
                message = "it is made behind the labels; make the variable in the network"
                raise UnconvertibleError(made, self._script.called(made).replace("tensorflow", "tf", 1), message)
        return network, late

    def _with_those_of_training(self, one: Branch, needed: list[Statement], late: list[Statement]) -> list[Statement]:
        """Returns the statements that need labels, and those of training that predictions do without.

        These take features that predictions may not have, or give another value to a name that the predictions read.
        """
        predict = self._branches.get(Mode.PREDICT)
        asked = self._asked_by_predictions(one)
        own = [
            each
            for each in needed
            if predict is not None and each not in predict.statements and (self._is_feature(each) or rebound(each) & asked)
        ]
        tainted, _ = tainted_by(_bound(own), needed)
        moved = [each for each in needed if each in own or each in tainted]
        for place, each in enumerate(needed):
            behind = [later for later in needed[place + 1 :] if later not in moved and later not in late]
            if each in moved and each not in late and (self._needs_one_place(each, one) or _read(each) & _bound(behind)):
                return late
        chosen = {*late, *moved}
        for each in needed:  # functions, which no network gives to a loss
            others = [other for other in needed if other not in chosen and other is not each]
            is_own = (
                isinstance(each, cst.FunctionDef)
                and predict is not None
                and each not in predict.statements
                and not self._found.makes(each)
            )
            if is_own and moved and not _bound([each]) & _read_by(others):
                chosen.add(each)
        return [each for each in needed if each in chosen]

    def _needs_one_place(self, statement: Statement, one: Branch) -> bool:
        """Returns True for a statement that loss and metrics cannot both have: it makes layers, draws, or changes an object in place."""
        changes = reads_and_writes(statement)[1] - rebound(statement)
        texts = [code(each) for each in (statement, *(self._own[name] for name in self._found.reached([statement])[1]))]
        return bool(changes) or self._calls_network(statement, one) or any(map(_DRAWS.search, texts))

    def _asked_by_predictions(self, one: Branch) -> set[str]:
        """Returns the names that the predictions read, and their statements that another branch has not."""
        predict, value = self._branches.get(Mode.PREDICT), self._specs.get(Mode.PREDICT, {}).get("predictions")
        if predict is None or value is None:
            return set()
        return _read(value) | _read_by([each for each in predict.statements if each not in one.statements])

    def _is_feature(self, statement: Statement) -> bool:
        """Returns True for ``name = features["key"]``."""
        value = assigned_value(statement)
        return (
            isinstance(value, cst.Subscript)
            and simple_name(value.value) == self._features
            and bool(simple_name(assigned_target(statement)))
        )

    def _belongs_here(self, name: str) -> bool:
        """Returns True for a function whose layers, metrics or optimizer the class has to hold."""
        if name in self._script.methods:
            return True
        named = [self._script.name(node) for node in nodes(self._own[name], cst.Attribute)]
        trains = any(optimizers.is_optimizer(one) or one.startswith(metrics.PREFIX) for one in named)
        layers = not self._shim and self._found.makes_layers(name)
        return layers or trains or _chooses_by_mode(self._own[name]) or self._keras.calls_layers(name)

    def _evaluation_loss(
        self, loss_value: cst.BaseExpression, network: list[Statement], loss: list[Statement]
    ) -> tuple[tuple[Statement, ...], cst.BaseExpression] | None:
        """Returns the statements of the loss of evaluations, and that loss; None if it is that of training."""
        evaluation = self._branches.get(Mode.EVAL)
        value = self._specs.get(Mode.EVAL, {}).get("loss")
        if evaluation is None or value is None:
            return None
        other, statements = self._split(evaluation, _read(value))
        if code(value) == code(loss_value) and {*other, *statements} == {*network, *loss}:
            return None
        own = [one for one in other if one not in network]
        if _changed_between(network, [*other, *statements], _read(value)):
            message = "network of training and evaluation are different statements; choose by an argument in one statement"
            raise UnconvertibleError(self._function, "the model function", message)
        if not self._may_stand_behind(own, network, evaluation, {*_read_by(statements), *_read(value)}):
            message = "network of training and evaluation are different statements; choose by an argument in one statement"
            raise UnconvertibleError(self._function, "the model function", message)
        return tuple(one for one in evaluation.statements if one in own or one in statements), value

    def _may_stand_behind(self, own: Sequence[Statement], network: Sequence[Statement], one: Branch, read: set[str]) -> bool:
        """Returns True for statements of a mode that make no layers, and compute the same behind the network of training.

        Args:
            own: The statements.
            network: Statements of that network.
            one: The branch of the mode.
            read: Names that other statements of it read.
        """
        if any(map(self._found.makes, own)):
            return False
        order = list(one.statements)
        for each in own:
            behind = [later for later in order[order.index(each) + 1 :] if later in network]
            bound, reads = _bound([each]), _read(each)
            if bound & (_bound(behind) | _read_by(behind)) or reads & _bound(behind):
                return False
        elsewhere = _bound([each for each in network if each not in order])
        return not elsewhere & ((read | _read_by(own)) - _bound(own))

    def _metrics(self, network: list[Statement]) -> tuple[list[Statement], list[Statement], list[metrics.Metric]]:
        one, value = self._branches.get(Mode.EVAL), self._specs.get(Mode.EVAL, {}).get("eval_metric_ops")
        if one is None or value is None:
            return network, [], []
        flat = unwrapped(one.statements)
        entries = [
            (key, metrics.made(entry, flat), condition)
            for key, entry, condition in MetricEntries(
                self._tests.bound, self._tests.bound | {self._features, self._labels}
            ).of(value, one)
        ]
        keys = {code(entry): key for key, entry, _ in entries}
        found, names = list[metrics.Metric](), set[str]()
        for key, entry, condition in entries:
            if isinstance(entry, cst.Tuple | cst.List) and entry.elements:
                made, own = metrics.computed(self._script, key, entry.elements[0].value, flat, keys)
                if _read(parsed(made.made)) & (self._tests.bound | {self._features, self._labels}):
                    raise UnconvertibleError(
                        entry,
                        f"the metric {key!r}",
                        "its value is computed from more than other metrics; write a tf_keras.metrics.Metric",
                    )
                others = [metrics.metric(self._script, name, call, flat) for name, call in own.items()]
                found += [dataclasses.replace(each, condition=condition) for each in others]
                self._approximate += [
                    (entry, f"evaluations also report {each.name!r}, from which it is computed") for each in others
                ]
            else:
                made = metrics.metric(self._script, key, entry, flat)
            found.append(dataclasses.replace(made, condition=condition))
        names = {name for each in found if each.update for name in _read(parsed(f"f({each.update})"))}
        more, measured = self._split(one, names)
        for call in (one for each in (*more, *measured) if each not in network for one in nodes(each, cst.Call)):
            if self._script.called(call).startswith("tensorflow.metrics."):
                raise UnconvertibleError(call, self._script.called(call).replace("tensorflow", "tf", 1), _OF_METRICS)
        return self._with_evaluated(network, more), measured, found

    def _with_evaluated(self, network: list[Statement], more: Sequence[Statement]) -> list[Statement]:
        """Returns a network with the statements that only its metrics need."""
        added = [statement for statement in more if statement not in network]
        if _bound([one for one in added if one not in self._branches[Mode.TRAIN].statements]) & _bound(network):
            raise UnconvertibleError(
                self._function, "the model function", "the metrics are those of another network; make it one"
            )
        return [*network, *added]

    def _kept_metrics(self, network: list[Statement]) -> tuple[list[Statement], cst.BaseExpression, list[Statement]]:
        """Returns the network with the layers that the metrics alone need, their dict as it is, and the other statements that it needs."""
        one, value = self._branches[Mode.EVAL], self._specs[Mode.EVAL]["eval_metric_ops"]
        needed = needed_for(_read(value), one.statements)
        makers = [each for each in needed if each not in network and self._makes_network([each])]
        if makers:
            network = self._with_evaluated(network, self._split(one, _bound(makers))[0])
        measured = [each for each in needed if each not in network]
        if self._makes_network([*measured, value]):
            raise UnconvertibleError(one.spec, "eval_metric_ops", "it makes layers, which the network has to make")
        if not self._may_stand_behind([], network, one, {*_read_by(measured), *_read(value)} - _bound(measured)):
            raise UnconvertibleError(one.spec, "eval_metric_ops", "it reads what only training computes")
        self._check_kept([*measured, cst.SimpleStatementLine([cst.Expr(value)])], network, one)
        return network, value, measured

    def _makes_network(self, parts: Sequence[cst.CSTNode]) -> bool:
        """Returns True for what makes layers or shared variables, which are no variables of metrics."""
        own = ("tensorflow.layers.", "tensorflow.get_variable")
        return any(name.startswith(own) or layer_function(name) or is_keras(name) for name in self._found.reached(parts)[0])

    def _check_kept(self, kept: Sequence[Statement], computed: Container[Statement], one: Branch) -> None:
        """Raises for what cannot stay as it is behind the network and the loss."""
        order = list(one.statements)
        for statement in kept:
            self._checks.check(statement, updates=True)
            behind = order[order.index(statement) + 1 :] if statement in order else []
            later = reads_and_writes(statement)[0] & _bound([each for each in behind if each in computed])
            if later:
                raise UnconvertibleError(statement, min(later), REBOUND)

    def _predictions(self, network: list[Statement]) -> tuple[list[Statement], list[Statement], cst.BaseExpression | None]:
        one, value = self._branches.get(Mode.PREDICT), self._specs.get(Mode.PREDICT, {}).get("predictions")
        if one is None or value is None:
            return network, [], None
        needed, late = self._split(one, _read(value))
        if late:
            raise UnconvertibleError(late[0], "the predictions", "they need the labels; compute them without")
        shared = [statement for statement in needed if statement in network or self._found.makes_variables(statement)]
        everywhere = {statement for other in self._branches.values() for statement in other.statements if other is not one}
        rest = [statement for statement in needed if statement not in shared]
        reads_other = {name for statement in shared for name in reads_and_writes(statement)[0]} & _bound(rest)
        is_shared = all(statement in everywhere for statement in shared) and not reads_other
        is_shared = is_shared and not _changed_between(network, needed, _read(value))
        calls_network = any(self._calls_network(each, one) for each in rest)
        differs = not is_shared or calls_network or any(map(self._tells_predictions, network))
        if self._shim and (self._predicts_anew or differs):
            self._predicts_anew = True
            return network, needed, value
        if is_shared:
            return [*network, *(statement for statement in shared if statement not in network)], rest, value
        message = (
            "the network in prediction is made of other statements than in training; choose by an argument in one statement"
        )
        raise UnconvertibleError(self._function, "the model function", message)

    def _tells_predictions(self, statement: Statement) -> bool:
        """Returns True for a statement with a test of the mode that is another one in predictions than in evaluations."""
        tests = nodes(statement, cst.Comparison, cst.BooleanOperation, cst.UnaryOperation)
        values = (
            [self._tests.value(one, mode) for mode in (Mode.EVAL, Mode.PREDICT)]
            for one in tests
            if isinstance(one, cst.BaseExpression)
        )
        return any(None not in each and len(set(each)) > 1 for each in values)

    def _calls_network(self, statement: Statement, one: Branch) -> bool:
        """Returns True for a statement that makes layers, or calls an object of the script or of Keras that may make them."""
        names = [simple_name(node.func) for node in nodes(statement, cst.Call) if isinstance(node, cst.Call)]
        made = [assigned(name, one.statements) for name in names if name]
        return self._found.makes(statement) or any(
            isinstance(each, cst.Call) and (simple_name(each.func) in self._own or self._checks.is_of_unknown(each))
            for each in made
        )

    def _notes(self, used: set[Statement], kept: Container[Statement]) -> Iterator[Change]:
        blocks = [one for one in self._of_specs() if isinstance(one, cst.With) and one not in kept]
        shown = [one for one in unwrapped(blocks) if self._effects.only_tells(one)]
        for statement in [*self._left_out(used), *shown]:
            what, message = code(statement).strip().splitlines()[-1], "left out: no loss, metric or prediction needs it"
            yield Change(self._script.line(statement), what, Outcome.APPROXIMATE, message)
        if self._tests.asks_labels:
            message = "is taken to be there in training and evaluation, and not in prediction, without asking"
            yield Change(self._script.line(self._function), self._labels, Outcome.APPROXIMATE, message)
        host = self._specs[Mode.TRAIN].get("host_call")
        if host is not None:
            message = "left out: it writes summaries; fit writes losses and metrics"
            yield Change(self._script.line(host), f"host_call={code(host)}", Outcome.APPROXIMATE, message)
        for entry, message in self._approximate:
            yield Change(self._script.line(entry), code(entry), Outcome.APPROXIMATE, message)
        calls = [each for one in used for each in nodes(one, cst.Call) if isinstance(each, cst.Call)]
        reached = [one for one in calls if self._shim or self._checks.is_loss(one)]
        given = self._checks.returned_by_others([*used]) if self._shim else ()
        for unknown in (*filter(self._checks.is_of_unknown, reached), *given):
            message = "what it calls is only known when the script runs; prove the new script with compare"
            yield Change(self._script.line(unknown), code(unknown.func), Outcome.APPROXIMATE, message)
        for call in self._untold:
            message = "says training=False: TensorFlow 1 does not train what is not told to"
            yield Change(self._script.line(call), code(call), Outcome.CONVERTED, message)
        for call in self._checks.frozen:
            message = "momentum is 1: nothing in the script updates its averages, so they stay as they begin; if not meant, take it away"
            yield Change(
                self._script.line(call), code(call.func if isinstance(call, cst.Call) else call), Outcome.APPROXIMATE, message
            )
        for call in self._checks.always:
            message = "if it trains in all modes, evaluations and predictions of Keras change its averages, too; TensorFlow 1 keeps them"
            yield Change(
                self._script.line(call), code(call.func if isinstance(call, cst.Call) else call), Outcome.APPROXIMATE, message
            )
        for key in self._signatures.others:
            message = "left out: it is no PredictOutput of the predictions; exports have no such signature"
            yield Change(self._script.line(key), f"export_outputs[{code(key)}]", Outcome.APPROXIMATE, message)

    def _in_order(self, statements: Sequence[Statement]) -> list[Statement]:
        chosen = set(statements)
        order = [statement for one in self._branches.values() for statement in one.statements]
        return [statement for statement in dict.fromkeys(order) if statement in chosen]

    def _of_specs(self) -> set[Statement]:
        """Returns the statements that train_op and the metrics need, which the optimizer and Keras' metrics replace."""
        found: set[Statement] = set()
        for mode, one in self._branches.items():
            names = {
                name
                for key in ("train_op", "eval_metric_ops", "export_outputs")
                if key in self._specs[mode]
                for name in _read(self._specs[mode][key])
            }
            found.update(needed_for(names, one.statements))
        return found

    def _left_out(self, used: set[Statement]) -> list[Statement]:
        """Returns the remaining statements; raises for those with an effect that is not known."""
        every = dict.fromkeys(statement for one in self._branches.values() for statement in one.statements)
        inside = {one for one in every if isinstance(one, cst.FunctionDef) and one.name.value in self._inlined}
        rest = [statement for statement in every if statement not in used | inside and not is_text(statement)]
        for statement in rest:
            if isinstance(statement, cst.FunctionDef):
                continue  # nothing calls it
            if self._script.called(assigned_value(statement)) not in STEPS:
                self._checks.check(statement)
            if "regularizer" in code(statement) and self._found.makes_variables(statement) and self._adds_penalties():
                message = (
                    "nothing reads this layer, but the loss has its penalty; take the layer out of the old script, or use it"
                )
                raise UnconvertibleError(statement, "the model function", message)
            if not self._effects.is_harmless(statement):
                functions = [each for each in self._own.values() if isinstance(each, cst.FunctionDef)]
                measured = self._specs.get(Mode.EVAL, {}).get("eval_metric_ops")
                if measured is not None and changed_in_place([statement], functions) & _read(measured):
                    raise UnconvertibleError(statement, "eval_metric_ops", NOT_ONE_DICT)
                raise UnconvertibleError(
                    statement, "the model function", "nothing reads what this does; move it out of the function"
                )
        return rest

    def _adds_penalties(self) -> bool:
        """Returns True if the model function asks for the penalties of all layers."""
        calls = (of_whole_model(self._script, node) for node in nodes(self._function, cst.Call))
        return any("losses" in one for one in calls)

    def _check_calls(self, computed: Sequence[Statement]) -> None:
        """Raises for updates in a block with the network, and for calls of what only the running script knows."""
        for call in (each for one in computed for each in nodes(one, cst.Call) if isinstance(each, cst.Call)):
            name = code(call.func).rpartition(".")[2]
            if name in ("minimize", "apply_gradients"):
                raise UnconvertibleError(call, code(call.func), "it stands in a block with the network; move it behind that")
            is_looked_up = not self._shim and isinstance(call.func, cst.Call) and code(call.func.func) == "getattr"
            if name in ("eval", "exec") or is_looked_up:
                raise UnconvertibleError(call, "getattr" if is_looked_up else name, UNKNOWN)

    def _check_penalties(self, network: Sequence[Statement]) -> None:
        """Raises for penalties of layers of Keras, which TensorFlow 1 does not add to those of its own layers."""
        reached = [*network, *(self._own[name] for name in self._found.reached(network)[1])]
        calls = [one for each in reached for one in nodes(each, cst.Call) if isinstance(one, cst.Call)]
        for call in calls if self._adds_penalties() else ():
            given = [one for one in call.args if one.keyword is not None and one.keyword.value.endswith("_regularizer")]
            if is_keras(self._script.called(call)) and any(code(one.value) != "None" for one in given):
                message = "get_regularization_loss has no penalties of layers of Keras; add them to the loss, or take the regularizer away"
                raise UnconvertibleError(call, code(call.func), message)


def _chooses_by_mode(node: cst.CSTNode) -> bool:
    """Returns True for a function of the mode that only returns ``a if test else b``."""
    if not isinstance(node, cst.FunctionDef) or "mode" not in [one.name.value for one in node.params.params]:
        return False
    returned = [one.value for one in nodes(node.body, cst.Return) if isinstance(one, cst.Return)]
    statements = [one for one in node.body.body if not (isinstance(one, cst.SimpleStatementLine) and is_text(one))]
    return len(statements) == 1 and any(isinstance(one, cst.IfExp) for one in returned)


def _changed_between(network: Sequence[Statement], needed: Sequence[Statement], asked: Set[str]) -> bool:
    """Returns True if a network has a statement that a mode has not, and that changes what the mode reads behind it."""
    for place, one in enumerate(network):
        if one not in needed:
            wanted, own = {*asked}, [each for each in needed if each not in network]
            for later in reversed([*(each for each in network[place + 1 :] if each in needed), *own]):
                read, written = reads_and_writes(later)
                wanted = (wanted - (written - read)) | read
            if reads_and_writes(one)[1] & wanted:
                return True
    return False


def _read_by(statements: Sequence[Statement]) -> set[str]:
    return {name for statement in statements for name in reads_and_writes(statement)[0]}


def _bound(statements: Sequence[Statement]) -> set[str]:
    return {name for statement in statements for name in reads_and_writes(statement)[1]}


def _read(value: cst.CSTNode) -> set[str]:
    return set(reads_and_writes(value)[0])
