"""Takes a model function apart: network, loss, metrics, predictions and optimizer."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence, Set
from typing import TypeVar

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import Change, Outcome, UnconvertibleError
from estimator_bridge.compat.source.fixers.model import metrics, optimizers
from estimator_bridge.compat.source.fixers.model.branches import unified
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
    is_text,
    needed_for,
    reads_and_writes,
    scopes_with_returns,
    tainted_by,
    unwrapped,
)
from estimator_bridge.compat.source.fixers.model.inlining import inlined
from estimator_bridge.compat.source.fixers.model.keras_calls import KerasCalls
from estimator_bridge.compat.source.fixers.model.layers import VARIABLE, is_keras, layer_function
from estimator_bridge.compat.source.fixers.model.updates import (
    NORMS,
    OPTIMIZE_LOSS,
    REBOUND,
    STEPS,
    UPDATE_OPS,
    Updates,
    find_updates,
    waits_for_checks,
)
from estimator_bridge.compat.source.fixers.script import (
    LOGGERS,
    TPU,
    Arguments,
    Script,
    arguments,
    code,
    nodes,
    parsed,
    simple_name,
    with_values,
)
from estimator_bridge.compat.source.fixers.surface import is_respelled

_SPEC = ("mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs", "training_chief_hooks",
         "training_hooks", "scaffold", "evaluation_hooks", "prediction_hooks")  # fmt: skip
_KNOWN = frozenset((*_SPEC[:6], "host_call"))
_TRAINED = "self.trainable_variables"
_OF_WHOLE_MODEL = {
    "tensorflow.trainable_variables": _TRAINED,
    "tensorflow.losses.get_regularization_loss": "tf.add_n(self.losses)",
    "tensorflow.losses.get_regularization_losses": "self.losses",
    "tensorflow.GraphKeys.REGULARIZATION_LOSSES": "self.losses",
    "tensorflow.GraphKeys.TRAINABLE_VARIABLES": _TRAINED,
}
"""Calls and collections that have what all layers made, and what a method of the model asks."""
_REFUSED = {
    "tensorflow.train.get_global_step": "the network or its loss depends on the step; count steps in the model",
    "tensorflow.train.get_or_create_global_step": "the network or its loss depends on the step; count steps in the model",
    VARIABLE: "each step would make it anew; make it in __init__ of the model",
    "tensorflow.get_collection": "collections are not filled outside of a graph; keep the tensors in variables",
    "tensorflow.add_to_collection": "collections are not filled outside of a graph; keep the tensors in variables",
    "tensorflow.losses.get_total_loss": "losses are not collected outside of a graph; add them up",
    "tensorflow.losses.get_losses": "losses are not collected outside of a graph; add them up",
    "tensorflow.control_dependencies": "there is no order of operations to force; put them one after another",
    "tensorflow.placeholder": "there are no placeholders outside of a graph; take the value from the features",
    "tensorflow.Session": "there are no sessions in a model; use tensors as values",
    "tensorflow_hub.Module": "TensorFlow 2 loads no such modules; use hub.KerasLayer of a SavedModel",
    "tensorflow.get_default_graph": "there is no graph to ask; use the model's own variables",
    "tensorflow.train.init_from_checkpoint": "values are loaded once, after the first call; use tf.train.load_checkpoint there",
}
_OF_GRAPHS = frozenset(f"tensorflow.{kind}_variables" for kind in ("all", "global", "local", "model", "moving_average"))
"""Functions whose answer is empty outside of a graph."""
INITIAL = "tensorflow.train.init_from_checkpoint"
"""Function that gives variables the values of another checkpoint."""


_MAKERS = ("tensorflow.layers.", "tensorflow.get_variable", VARIABLE, "tensorflow.variable_scope", "tensorflow.feature_column.input_layer",
           "tensorflow.feature_column.linear_model", "tensorflow.contrib.")  # fmt: skip
_DEFAULTS_OF_SCOPES = frozenset({"set_custom_getter", "set_initializer", "set_partitioner", "set_regularizer"})
"""Methods of a scope that change how its variables are made."""
ASKED, _SHARES = "tensorflow.get_variable_scope", "reuse_variables"
"""Function that makes no variables, and its method that makes others share theirs."""
_MODULES = ("tensorflow.contrib.layers", "tensorflow.contrib.slim")
"""Modules of contrib to which a model function may give a name."""
_PLAIN_SCOPE = re.compile(r"[\w/ -]*")
_Block = TypeVar("_Block", bound=cst.CSTNode)
_MOST = 5  # names that other names were given
_NOT_ONE_DICT = "it is not written as one dict; write it so"
_UNKNOWN = "what it calls is only known when the script runs, and may make layers; call a function of the script by its name"
_OUTSIDE = {"tensorflow", "keras", "tf_keras", "numpy", *sys.stdlib_module_names}
"""Packages whose objects are known, or make no layers."""
_OF_METRICS = "a metric is computed from its updates; write a tf_keras.metrics.Metric"
_NEVER_UPDATED = "its moving averages are never updated, for UPDATE_OPS is not run; decide if that is meant"
_WITHOUT_EFFECT = (
    "tensorflow.set_random_seed",
    "tensorflow.summary.",
    "tensorflow.contrib.summary.scalar",
    "tensorflow.logging.",
    "tensorflow.identity",
    "logging.",
    "tensorflow.assert_",
)
"""Calls that train nothing; ``fit`` writes losses and metrics by its own callback."""
_LOGS = re.compile(r"_?(log|logger|LOG|LOGGER)\.(debug|info|warn|warning|error|critical|exception)")
"""Calls of a logger, wherever it was made."""


_OF_DICTS = frozenset(
    {"get", "items", "keys", "values", "copy", "pop", "setdefault", "update", "parse", "to_json", "add_hparam", "set_hparam"}
)
"""Methods of hyperparameters that make no layers."""
_CHANGES = re.compile(r"(tensorflow|keras|tf_keras|numpy|random)\b")
"""Packages whose functions change what is computed though nothing reads their value, such as seeds."""


@dataclasses.dataclass(frozen=True)
class ModelFunction:
    """The parts of a model function.

    Attributes:
        node: The function.
        features: Name of the argument for the features.
        labels: Name of the argument for the labels; empty if there is none.
        params: Name of the argument for hyperparameters; empty if there is none.
        more: Arguments that only the script knows, which it binds before an Estimator calls the function.
        tests: Conditions on the mode.
        network: Statements that need neither labels nor trained variables.
        reached: Imported names in the network and in functions of the script that it calls.
        reads_labels: True if the network has the labels, too, which predictions have not.
        scopes: Scopes of variables around statements of the network, the outermost first.
        loss: Statements of the loss that need them.
        loss_value: The loss.
        evaluation: Statements of the loss of evaluations, and that loss, if it is another one; else None.
        measured: Statements that metrics need beside the network's.
        metrics: Metrics of an evaluation.
        kept_metrics: The dict of those that Keras has not, which stay as they are; else None.
        received: Statements that make the network's features of those of a prediction.
        predicted: Statements that predictions need beside the network's.
        predictions: The predictions.
        predicts_anew: True if ``predicted`` has the whole network of a prediction, whose layers have the names of training's.
        prepared: Statements that the optimizer needs.
        optimizer: Expression that makes the Keras optimizer; empty if the updates stay as they are.
        updates: Statements of the updates that stay as they are.
        initial: Statements that give variables the values of another checkpoint.
        notes: Lines of the report about statements that the class does not have, or has otherwise.
        inlined: Functions of the script whose bodies the parts contain.
        signatures: Names of the signatures that answer with the predictions; None if ``export_outputs`` says nothing.
        makes_keras: Function that returns True for a call that makes a layer or a model of Keras.
        untold: Calls of Keras that do not say if they train; TensorFlow 1 then does what they do in an evaluation.
        frozen: Calls of batch norm whose moving averages the script never updates.
        shimmed: Functions and classes of the script that make layers each time they are called; None if ``__init__`` makes all layers.
        updating: Those that the updates and metrics need that stay as they are.
    """

    node: cst.FunctionDef
    features: str
    labels: str
    params: str
    more: tuple[cst.Param, ...]
    tests: ModeTests
    network: tuple[Statement, ...]
    reached: frozenset[str]
    reads_labels: bool
    scopes: tuple[cst.With, ...]
    loss: tuple[Statement, ...]
    loss_value: cst.BaseExpression
    evaluation: tuple[tuple[Statement, ...], cst.BaseExpression] | None
    measured: tuple[Statement, ...]
    metrics: tuple[metrics.Metric, ...]
    kept_metrics: cst.BaseExpression | None
    received: tuple[Statement, ...]
    predicted: tuple[Statement, ...]
    predictions: cst.BaseExpression | None
    predicts_anew: bool
    prepared: tuple[Statement, ...]
    optimizer: str
    updates: tuple[Statement, ...]
    initial: tuple[Statement, ...]
    notes: tuple[Change, ...]
    inlined: tuple[str, ...]
    signatures: tuple[str, ...] | None
    makes_keras: Callable[[cst.Call], bool]
    untold: frozenset[cst.CSTNode]
    frozen: frozenset[cst.CSTNode]
    shimmed: frozenset[str] | None
    updating: frozenset[str]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names that the network gives to the loss, the metrics and the predictions, in the order in which they are bound."""
        wanted: set[str] = set()
        of_evaluation = (*self.evaluation[0], cst.Expr(self.evaluation[1])) if self.evaluation else ()
        of_predictions = () if self.predicts_anew else (*self.predicted, cst.Expr(self.predictions or cst.Name("None")))
        for statements in (self.loss, of_evaluation, self.measured, of_predictions, self.updates):
            for statement in statements:
                wanted |= reads_and_writes(statement)[0]
        for value in (self.loss_value, self.kept_metrics):
            wanted |= _read(value) if value is not None else set()
        wanted |= {name for one in self.metrics if one.update for name in _read(cst.parse_expression(f"f({one.update})"))}
        bound = (name for statement in self.network for name in sorted(reads_and_writes(statement)[1]))
        return tuple(name for name in dict.fromkeys(bound) if name in wanted)


def of_whole_model(script: Script, node: cst.CSTNode) -> str:
    """Returns what a call that asks for what all layers made is in a method of the model; empty for all else."""
    name = script.called(node)
    if name == "tensorflow.get_collection" and isinstance(node, cst.Call) and len(node.args) == 1:
        name = script.name(node.args[0].value)
    whole = _OF_WHOLE_MODEL.get(name, "")
    scope = asked_scope(script, node) if whole == _TRAINED else None
    is_plain = not isinstance(scope, cst.SimpleString) or _PLAIN_SCOPE.fullmatch(str(scope.evaluated_value))
    if scope is not None and is_plain:
        return f"[one for one in {_TRAINED} if one.name.startswith({code(scope)})]"
    return whole


def asked_scope(script: Script, node: cst.CSTNode) -> cst.BaseExpression | None:
    """Returns the scope of the variables or penalties that a call asks for; None for all of them, and for other calls."""
    name = script.called(node)
    parameters = ("key", "scope") if name == "tensorflow.get_collection" else ("scope",)
    given = (
        arguments(node, parameters) if isinstance(node, cst.Call) and (name in _OF_WHOLE_MODEL or len(parameters) > 1) else None
    )
    return None if given is None or code(given.get("scope", cst.Name("None"))) == "None" else given["scope"]


@dataclasses.dataclass(frozen=True)
class Way:
    """A way of making a class, which says what of the model function may stay as it is.

    Attributes:
        shim: Layers are made each time the network is called, below TensorFlow's own ``track_tf1_style_variables``.
        keeps_updates: The statements that update the variables stay, if Keras has no such optimizer.
        reads_labels: The network has the labels, and what predictions need: labels are None in a prediction.
        predicts_anew: A prediction has a network of its own, whose layers have the names of training's; only with ``shim``.
    """

    shim: bool = False
    keeps_updates: bool = False
    reads_labels: bool = False
    predicts_anew: bool = False


def take_apart(script: Script, function: cst.FunctionDef, way: Way) -> ModelFunction:
    """Finds the parts of a model function.

    Args:
        script: Script around the function.
        function: The function.
        way: Way of making its class.

    Raises:
        UnconvertibleError: A part is not of a form that this module knows.
    """
    return _Analysis(script, function, way).result()


class _Analysis:
    def __init__(self, script: Script, function: cst.FunctionDef, way: Way) -> None:
        self._script = script
        self._function = function
        self._shim = way.shim
        self._keeps_updates = way.keeps_updates
        self._reads_labels = way.reads_labels
        self._predicts_anew = way.predicts_anew
        names = [parameter.name.value for parameter in function.params.params]
        if not names or function.params.star_kwarg or "mode" not in names:
            raise UnconvertibleError(function, "the model function", "its arguments must be features, labels, mode and params")
        self._features = "features" if "features" in names else names[0]
        self._labels = "labels" if "labels" in names else ""
        self._params = "params" if "params" in names else ""
        if way.reads_labels and not self._labels:
            raise UnconvertibleError(function, "the model function", "it has no labels")
        self._more = [
            one
            for place, one in enumerate(function.params.params)
            if one.name.value not in (self._features, "labels", "mode", "params")
            and (one.name.value not in ("config", "model_dir") or place < names.index(self._features))
        ]
        self._own = {one.name.value: one for one in script.module.body if isinstance(one, cst.FunctionDef | cst.ClassDef)}
        local = reads_and_writes(function.body)[1].union(names)
        lines = [one for one in script.module.body if isinstance(one, cst.SimpleStatementLine)]
        values = {simple_name(assigned_target(one)): assigned_value(one) for one in lines}
        self._of_module = {name: value for name, value in values.items() if name and value is not None and name not in local}
        within = [one for one in nodes(function.body, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
        counts = Counter(one.name.value for one in within)
        beside = [one for around in _around(script, function) for one in around.body.body if isinstance(one, cst.FunctionDef)]
        self._own |= {one.name.value: one for one in beside if one is not function}
        self._own |= {one.name.value: one for one in within if counts[one.name.value] == 1}
        defined = (one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef))
        self._own |= {
            one.name.value: one for one in defined if one.name.value in script.methods
        }  # also of functions that it calls
        functions = {name: one for name, one in self._own.items() if isinstance(one, cst.FunctionDef)}
        self._keras = KerasCalls(script, function, self._own, self._reached, self._shim)
        body = [one for one in function.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
        self._body, self._inlined = inlined(script, body, functions, self._belongs_here)
        self._check_methods()
        is_of_run = "config" in names and "config" not in [one.name.value for one in self._more]
        if is_of_run and any("config" in reads_and_writes(one)[0] for one in self._body if not self._only_tells(one)):
            raise UnconvertibleError(function, "config", "the model function reads it; take the value from params")
        self._tests = ModeTests(script, "mode", self._body, self._labels)
        self._body = [as_test_of_mode(one, self._tests) for one in self._body]
        self._untold = self._keras.untold(self._body)
        self._frozen = self._keras.frozen
        self._always: set[cst.CSTNode] = set()  # calls of batch norm that train in evaluations, too
        self._extra: list[tuple[cst.CSTNode, str]] = []  # metrics that no key has
        found = {mode: branch(script, self._tests, self._body, mode) for mode in Mode}
        if found[Mode.TRAIN] is None:
            raise UnconvertibleError(function, "the model function", "it returns nothing in training; return an EstimatorSpec")
        self._branches = unified(script, {mode: one for mode, one in found.items() if one is not None}, self._untold)
        self._initial = self._take_initial_values()
        self._received = self._take_received()
        self._specs = {mode: self._spec(one) for mode, one in self._branches.items()}
        asked, one = self._specs.get(Mode.PREDICT, {}).get("predictions"), self._branches.get(Mode.PREDICT)
        self._of_predictions = {*needed_for(_read(asked), one.statements)} if asked is not None and one is not None else set()

    def _check_methods(self) -> None:
        """Raises if a call of what stands for a method is left: its function would assign variables of its own; takes the others away."""
        for one in self._body:
            reached = [self._own[name] for name in self._reached([one])[1]]
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

    def result(self) -> ModelFunction:
        """Returns the parts."""
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
        evaluation = self._evaluation_loss(loss_value, network, loss)
        kept_metrics = None
        try:
            network, measured, found = self._metrics(network)
        except UnconvertibleError:
            if not self._keeps_updates:
                raise
            kept_metrics, measured, found = *self._kept_metrics(network), list[metrics.Metric]()
        network, predicted, predictions = self._predictions(network)
        updates, kept = self._updates(train, spec, {*network, *loss})
        both = self._reached(network)[1] & self._reached(kept)[1] if self._shim else ()
        for call in (one for name in both for one in nodes(self._own[name], cst.Call)):
            if self._script.called(call) == VARIABLE:
                message = "the network and the updates make it by one function; write two"
                raise UnconvertibleError(call, "tf.Variable", message)
        used = {*network, *loss, *(evaluation[0] if evaluation else ()), *measured, *predicted, *self._of_specs()}
        return ModelFunction(
            self._function, self._features, self._labels, self._params, tuple(self._more), self._tests,
            tuple(self._in_order(network)), frozenset(self._reached(network)[0]), self._reads_labels, tuple(scopes_with_returns(self._script, self._body)), tuple(loss), loss_value, evaluation, tuple(measured), tuple(found), kept_metrics, tuple(self._received), tuple(predicted), predictions, self._predicts_anew,
            updates.prepared, updates.optimizer, tuple(kept), tuple(self._initial), (*updates.notes, *self._notes(used)),
            tuple(self._inlined), self._signatures(), self._keras.makes, self._untold, frozenset(self._frozen),
            self._reached(network)[1] if self._shim else None, self._reached([*kept, *([*measured, kept_metrics] if kept_metrics else [])])[1],
        )  # fmt: skip

    def _updates(self, train: Branch, spec: Arguments, computed: set[Statement]) -> tuple[Updates, list[Statement]]:
        """Returns the optimizer of Keras; if there is none, and they may stay, the statements that a graph of tf.function can execute."""
        try:
            return find_updates(self._script, train.statements, spec, self._check, {self._features, self._labels}), []
        except UnconvertibleError:
            asked = spec.get("train_op")
            if not self._keeps_updates or asked is None:
                raise
        kept = [one for one in needed_for(_read(asked), train.statements) if one not in computed]
        kept += [cst.SimpleStatementLine([cst.Expr(asked)])] if not isinstance(asked, cst.Name) else []
        self._check_kept(kept, computed, train)
        message = "its updates stay as they are: train_step executes them in the graph of a step"
        return Updates((), "", (Change(self._script.line(asked), "train_op", Outcome.CONVERTED, message),)), kept

    def _spec(self, one: Branch) -> Arguments:
        given = arguments(one.spec, _SPEC)
        if given is not None:
            given = {name: value for name, value in given.items() if "hooks" not in name or not self._only_log(value, one)}
            given = {name: value for name, value in given.items() if code(value) != "None" and not _is_none(value, one)}
        unknown = sorted(given.keys() - _KNOWN) if given is not None else ["*"]
        if given is None or unknown:
            raise UnconvertibleError(
                one.spec, f"EstimatorSpec({unknown[0]}=...)", "there is no fixer for it; write it as a callback of fit"
            )
        return given

    def _only_log(self, hooks: cst.BaseExpression, one: Branch, names: frozenset[str] = frozenset()) -> bool:
        """Returns True for hooks that show values and change nothing: one, a list, or a name that is given such lists, in blocks too."""
        if isinstance(hooks, cst.Name):
            given = [] if hooks.value in names else _given_anywhere(hooks.value, one)
            within = names | {hooks.value}
            return bool(given) and all(code(each) == "None" or self._only_log(each, one, within) for each in given)
        if isinstance(hooks, cst.List | cst.Tuple):
            return all(self._only_log(element.value, one, names) for element in hooks.elements)
        return self._script.called(hooks) in LOGGERS

    def _split(self, one: Branch, names: set[str]) -> tuple[list[Statement], list[Statement]]:
        """Returns the statements that names need: those of the network, and those that need labels or trained variables."""
        needed = needed_for(names, one.statements)
        later = [statement for statement in needed if self._asks_whole_model(statement)]
        late_names = {name for statement in later for name in reads_and_writes(statement)[1]}
        tainted, _ = tainted_by({self._labels, *late_names} - {""}, needed)
        if self._reads_labels:
            tainted = [each for each in tainted if each not in self._of_predictions]
        late = [statement for statement in needed if statement in tainted or statement in later]
        late = self._with_those_of_training(one, needed, late)
        network = [statement for statement in needed if statement not in late]
        for statement in needed:
            self._check(statement)
            self._check_asked(statement)
            for name in self._reached([statement])[0] & _OF_GRAPHS:
                message = "there is no graph that has them; use the model's own variables"
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), message)
        for call in () if self._shim else self._returned_by_others(network):
            raise UnconvertibleError(call, code(call.func), _UNKNOWN)
        own = [self._own[name] for name in self._reached(late)[1]]
        for made in (each for one in (*late, *own) for each in nodes(one, cst.Call)):
            kept = self._shim and self._script.called(made) != "tensorflow.layers.flatten"
            if self._script.called(made).startswith(metrics.PREFIX):
                message = "what computes the loss makes it, too, and each step would make it anew; write them in statements of their own"
                raise UnconvertibleError(made, self._script.called(made).replace("tensorflow", "tf", 1), message)
            if self._script.called(made) in ("tensorflow.get_variable", VARIABLE) or (
                kept and layer_function(self._script.called(made))
            ):
                message = "it is made behind the labels; make the variable in the network"
                raise UnconvertibleError(made, self._script.called(made).replace("tensorflow", "tf", 1), message)
        return network, late

    def _with_those_of_training(self, one: Branch, needed: list[Statement], late: list[Statement]) -> list[Statement]:
        """Returns the statements that need labels, and those that need features which predictions do not read, as these may not have them."""
        predict = self._branches.get(Mode.PREDICT)
        own = [each for each in needed if predict is not None and each not in predict.statements and self._is_feature(each)]
        tainted, _ = tainted_by(_bound(own), needed)
        moved = [each for each in needed if each in own or each in tainted]
        for place, each in enumerate(needed):
            behind = [later for later in needed[place + 1 :] if later not in moved and later not in late]
            if each in moved and each not in late and (self._calls_network(each, one) or _read(each) & _bound(behind)):
                return late
        chosen = {*late, *moved}
        for each in needed:  # functions, which no network gives to a loss
            others = [other for other in needed if other not in chosen and other is not each]
            is_own = (
                isinstance(each, cst.FunctionDef)
                and predict is not None
                and each not in predict.statements
                and not self._makes(each)
            )
            if is_own and moved and not _bound([each]) & _read_by(others):
                chosen.add(each)
        return [each for each in needed if each in chosen]

    def _is_feature(self, statement: Statement) -> bool:
        """Returns True for ``name = features["key"]``."""
        value = assigned_value(statement)
        return (
            isinstance(value, cst.Subscript)
            and simple_name(value.value) == self._features
            and bool(simple_name(assigned_target(statement)))
        )

    def _returned_by_others(self, statements: Sequence[Statement]) -> Iterator[cst.Call]:
        """Yields the calls of what a function of another module returned."""
        values = {name: assigned(name, statements) for one in statements for name in reads_and_writes(one)[1]}
        of_module = [one for one in self._script.module.body if isinstance(one, cst.SimpleStatementLine)]
        values = {name: assigned(name, of_module) for name in _read_by(statements)} | values
        makers = {name: self._script.called(value) for name, value in values.items() if isinstance(value, cst.Call)}
        given = {name for name, maker in makers.items() if maker and maker.partition(".")[0] not in _OUTSIDE}
        given |= {
            name for name, value in values.items() if isinstance(value, cst.Call) and simple_name(value.func) == "getattr"
        }
        for call in (each for one in statements for each in nodes(one, cst.Call)):
            if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value in given:
                yield call

    def _asks_whole_model(self, statement: cst.CSTNode) -> bool:
        return any(of_whole_model(self._script, node) for node in nodes(statement, cst.Call))

    def _check(self, statement: Statement, updates: bool = False) -> None:
        """Raises for what a class cannot contain.

        Args:
            statement: Statement of the model function.
            updates: True for one of updates that stay as they are.
        """
        self._check_imported(statement, updates)
        calls = [node for node in nodes(statement, cst.Call) if isinstance(node, cst.Call)]
        for call in calls:
            name = self._script.called(call)
            asks_all = of_whole_model(self._script, call) in _OF_WHOLE_MODEL.values()
            if asks_all and not updates and asked_scope(self._script, call) is not None:
                raise UnconvertibleError(
                    statement, code(call.func), "what a scope has is not known; ask for all, and choose by name"
                )
            if name and not updates and self._script.may_make_layers(name):
                message = "it is of another module and may make layers, which are not converted; convert both together, or write it into the script"
                raise UnconvertibleError(statement, code(call.func), message)
        if self._shim or updates:
            self._check_reached(statement, updates)
            return
        for call in calls:
            if self._is_of_unknown(call):
                raise UnconvertibleError(statement, code(call.func), _UNKNOWN)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _DEFAULTS_OF_SCOPES:
                message = "layers of Keras take nothing from scopes; give it to each layer"
                raise UnconvertibleError(statement, code(call.func), message)
        for name in reads_and_writes(statement)[0]:
            if self._makes_layers(name, frozenset()):
                raise UnconvertibleError(
                    statement, name, "it makes layers; write it as a layer of tf_keras that the model makes in __init__"
                )

    def _check_asked(self, statement: Statement) -> None:
        """Raises for a function that asks for what all layers made: outside of a graph, there is none that it finds."""
        asking = [name for name in self._reached([statement])[1] if self._asks_whole_model(self._own[name])]
        if asking:
            message = (
                "it asks for what all layers made, which only the model knows; ask in the model function, and give it that"
            )
            raise UnconvertibleError(statement, min(asking), message)

    def _is_of_unknown(self, call: cst.Call) -> bool:
        """Returns True for a call of a function that is looked up when the script runs: in a dict, or in what the caller gives."""
        owner, method = call.func, ""
        while isinstance(owner, cst.Attribute):
            method = owner.attr.value
            owner = owner.value
        given = {self._params, *(one.name.value for one in self._more)} - {""}
        if method and simple_name(owner) in self._of_builders and method not in _OF_DICTS:
            given |= self._of_builders if {name for one in call.args for name in _read(one.value)} & self._of_batch else set()
        return isinstance(call.func, cst.Subscript) or (simple_name(owner) in given and method not in _OF_DICTS)

    @functools.cached_property
    def _of_builders(self) -> set[str]:
        """Arguments of the functions around the model function."""
        around = _around(self._script, self._function)
        return {parameter.name.value for one in around for parameter in one.params.params} - self._tests.bound

    @functools.cached_property
    def _of_batch(self) -> set[str]:
        """Names whose values depend on the batch."""
        return tainted_by({self._features, self._labels} - {""}, unwrapped(self._body))[1]

    def _check_imported(self, statement: Statement, updates: bool) -> None:
        """Raises for a name of TensorFlow that a class cannot contain."""
        calls = [node for node in nodes(statement, cst.Call) if isinstance(node, cst.Call)]
        respelled = {self._script.called(call) for call in calls if is_respelled(self._script.called(call), call)}
        replaced = {call.func for call in calls if of_whole_model(self._script, call) or self._is_in_graph(call, updates)}
        self._frozen.update(self._script.origin(call) for call in calls if self._is_frozen(call))
        self._always.update(self._script.origin(call) for call in calls if self._always_trains(call))
        inner = {one.value for one in nodes(statement, cst.Attribute) if isinstance(one, cst.Attribute)}
        for node in nodes(statement, cst.Attribute, cst.Name):
            name = self._script.name(node)
            if name in _REFUSED and node not in replaced:
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), _REFUSED[name])
            known = (
                node in inner
                or name in (*_MODULES, *LOGGERS)
                or layer_function(name)
                or ".ModeKeys" in name
                or name in respelled
            )
            if name.startswith(("tensorflow.contrib.", "tensorflow.estimator.", TPU)) and not known:
                package = "tf.estimator" if name.startswith("tensorflow.estimator.") else "tf.contrib"
                message = f"{package} is not converted; use a core layer or function"
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), message)
            if name in NORMS and node not in {call.func for call in calls} and not self._updates_run(code(statement)):
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), _NEVER_UPDATED)

    def _is_in_graph(self, call: cst.Call, updates: bool) -> bool:
        """Returns True for a call that the graph of a step answers as that of TensorFlow 1 did."""
        name = self._script.called(call)
        asked = self._script.name(call.args[0].value) if name == "tensorflow.get_collection" and call.args else ""
        known = name in STEPS or asked in (UPDATE_OPS, "tensorflow.GraphKeys.TRAINABLE_VARIABLES")
        kept = name in ("tensorflow.control_dependencies", VARIABLE) and (updates or self._shim)
        return (updates and known) or kept or waits_for_checks(self._script, call, self._body)

    def _is_frozen(self, call: cst.Call) -> bool:
        """Returns True for a call of batch norm that trains, and whose averages nothing updates."""
        name = self._script.called(call)
        trains = "contrib" in name or any(one.keyword is not None and one.keyword.value == "training" for one in call.args)
        return name in NORMS and trains and not self._updates_run(code(call))

    def _always_trains(self, call: cst.Call) -> bool:
        """Returns True for a call of batch norm that trains in evaluations, too, as far as the mode tells, and whose averages are updated."""
        name = self._script.called(call)
        said = [one.value for one in call.args if one.keyword is not None and one.keyword.value in ("training", "is_training")]
        trains = self._tests.value(said[0], Mode.EVAL) is not False and code(said[0]) != "False" if said else "contrib" in name
        return name in NORMS and trains and not self._is_frozen(call)

    def _check_reached(self, statement: Statement, updates: bool) -> None:
        """Raises for what a function of the script does that cannot be done in each step."""
        own = [self._own[name] for name in self._reached([statement])[1]]
        calls = [node for one in own for node in nodes(one, cst.Call) if isinstance(node, cst.Call)]
        known = {call.func for call in calls if self._is_in_graph(call, updates)}
        texts = "".join(map(code, own))
        for one, node in ((each, part) for each in (statement, *own) for part in nodes(each, cst.Attribute, cst.Name)):
            name = self._script.name(node)
            if one is not statement and name in _REFUSED and node not in known:
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), _REFUSED[name])
            if name in NORMS and not updates and not self._updates_run(code(statement) + texts):
                if node not in {call.func for call in calls} and one is not statement:
                    raise UnconvertibleError(statement, "tf.layers.batch_normalization", _NEVER_UPDATED)
                self._frozen |= {self._script.origin(call) for call in calls if self._is_frozen(call)}

    def _makes_layers(self, name: str, seen: frozenset[str]) -> bool:
        """Returns True if a function or class of the script makes layers or variables, by itself or by others."""
        if name in self._of_module and name not in self._own | dict.fromkeys(seen):
            return any(self._makes_layers(other, seen | {name}) for other in reads_and_writes(self._of_module[name])[0])
        if name not in self._own or name in seen:
            return False
        named = (self._script.name(node) for node in nodes(self._own[name], cst.Attribute))
        if any(one.startswith(_MAKERS) and (one != ASKED or _SHARES in code(self._own[name])) for one in named):
            return True
        return any(self._makes_layers(other, seen | {name}) for other in reads_and_writes(self._own[name])[0])

    def _reached(self, start: Sequence[cst.CSTNode]) -> tuple[set[str], frozenset[str]]:
        """Returns the imported names in some nodes and in the script's functions and classes that they read, and the names of these."""
        pending, own, found = [*start], set[str](), set[str]()
        while pending:
            one = pending.pop()
            found.update(self._script.name(part) for part in nodes(one, cst.Attribute, cst.Name))
            more = (reads_and_writes(one)[0] & (self._own.keys() | self._of_module.keys())) - own
            pending += [self._own.get(name) or self._of_module[name] for name in more]
            own |= more
        return found, frozenset(own & self._own.keys())

    def _belongs_here(self, name: str) -> bool:
        """Returns True for a function whose layers, metrics or optimizer the class has to hold."""
        if name in self._script.methods:
            return True
        named = [self._script.name(node) for node in nodes(self._own[name], cst.Attribute)]
        trains = any(optimizers.is_optimizer(one) or one.startswith(metrics.PREFIX) for one in named)
        layers = not self._shim and self._makes_layers(name, frozenset())
        return layers or trains or _chooses_by_mode(self._own[name]) or self._keras.calls_layers(name)

    def _updates_run(self, text: str) -> bool:
        """Returns True if the updates of batch norm in a source text are run."""
        asked = ("tensorflow.GraphKeys.UPDATE_OPS", OPTIMIZE_LOSS)
        at_once = "updates_collections=None" in text.replace(" ", "")
        return at_once or any(name in asked for name in self._reached([self._function])[0])

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
        if any(map(self._makes, own)):
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
        entries = [(key, metrics.made(entry, flat), condition) for key, entry, condition in self._entries(value, one)]
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
                self._extra += [(entry, each.name) for each in others]
            else:
                made = metrics.metric(self._script, key, entry, flat)
            found.append(dataclasses.replace(made, condition=condition))
        names = {name for each in found if each.update for name in _read(parsed(f"f({each.update})"))}
        more, measured = self._split(one, names)
        added = [statement for statement in more if statement not in network]
        for call in (one for each in (*added, *measured) for one in nodes(each, cst.Call)):
            if self._script.called(call).startswith("tensorflow.metrics."):
                raise UnconvertibleError(call, self._script.called(call).replace("tensorflow", "tf", 1), _OF_METRICS)
        if _bound([one for one in added if one not in self._branches[Mode.TRAIN].statements]) & _bound(network):
            raise UnconvertibleError(
                self._function, "the model function", "the metrics are those of another network; make it one"
            )
        return [*network, *added], measured, found

    def _kept_metrics(self, network: list[Statement]) -> tuple[cst.BaseExpression, list[Statement]]:
        """Returns the dict of the metrics as it is, and the statements that it needs beside the network."""
        one, value = self._branches[Mode.EVAL], self._specs[Mode.EVAL]["eval_metric_ops"]
        measured = [each for each in needed_for(_read(value), one.statements) if each not in network]
        made = self._reached([*measured, value])[0]
        if any(
            name.startswith(("tensorflow.layers.", "tensorflow.get_variable")) or layer_function(name) or is_keras(name)
            for name in made
        ):
            raise UnconvertibleError(one.spec, "eval_metric_ops", "it makes layers, which the network has to make")
        if not self._may_stand_behind([], network, one, {*_read_by(measured), *_read(value)} - _bound(measured)):
            raise UnconvertibleError(one.spec, "eval_metric_ops", "it reads what only training computes")
        self._check_kept([*measured, cst.SimpleStatementLine([cst.Expr(value)])], network, one)
        return value, measured

    def _check_kept(self, kept: Sequence[Statement], computed: Container[Statement], one: Branch) -> None:
        """Raises for what cannot stay as it is behind the network and the loss."""
        order = list(one.statements)
        for statement in kept:
            self._check(statement, updates=True)
            behind = order[order.index(statement) + 1 :] if statement in order else []
            later = reads_and_writes(statement)[0] & _bound([each for each in behind if each in computed])
            if later:
                raise UnconvertibleError(statement, min(later), REBOUND)

    def _entries(self, value: cst.BaseExpression, one: Branch) -> list[tuple[str, cst.BaseExpression, str]]:
        """Returns the keys of ``eval_metric_ops``, what they are given, in a dict and by assignments behind it, and on which conditions."""
        value, later = _behind(value, unwrapped(one.statements))
        first = later[0] if later and not isinstance(value, cst.Dict | cst.Call) else None
        if isinstance(first, cst.If):
            items, later = [*self._chosen_items(first, simple_name(value), one, ())], later[1:]
        else:
            items = [(key, each, "") for key, each in _dict_items(value, one.spec)]
        chosen = len(items) if isinstance(first, cst.If) else 0
        items += [item for statement in later for item in self._items(statement, one)]
        found = [(key, each, condition) for key, each, condition in items if isinstance(key, cst.SimpleString)]
        if len(found) < len(items):
            raise UnconvertibleError(one.spec, "eval_metric_ops", "a key is not written as a string; write it so")
        keys = [key.evaluated_value for key, _, _ in found]
        of_branches = {(key, condition) for key, (_, _, condition) in zip(keys[:chosen], found, strict=False)}
        if len(of_branches) < chosen or len({*keys[chosen:]} - {*keys[:chosen]}) < len(keys) - chosen:
            raise UnconvertibleError(one.spec, "eval_metric_ops", "a key is given twice; write each metric once")
        return [(str(key.evaluated_value), each, condition) for key, each, condition in found]

    def _chosen_items(
        self, choice: cst.If, name: str, one: Branch, before: tuple[str, ...]
    ) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
        """Yields the items of the dicts that the branches of a test give a name, with the conditions on hyperparameters."""
        test = self._of_hyperparameters(choice.test, one, choice)
        orelse = choice.orelse
        last = [(orelse.body, (*before, f"not ({test})"))] if isinstance(orelse, cst.Else) else []
        for body, conditions in [(choice.body, (*before, test)), *last]:
            only = body.body[0]
            value = assigned_value(only) if isinstance(only, cst.SimpleStatementLine) and len(body.body) == 1 else None
            raises = isinstance(only, cst.SimpleStatementLine) and isinstance(only.body[-1], cst.Raise) and len(body.body) == 1
            if value is None and not raises:  # another statement may add metrics, or what they read
                raise UnconvertibleError(choice, "eval_metric_ops", _NOT_ONE_DICT)
            if value is not None:
                yield from ((key, each, " and ".join(conditions)) for key, each in _dict_items(value, one.spec))
        if isinstance(orelse, cst.If):
            yield from self._chosen_items(orelse, name, one, (*before, f"not ({test})"))

    def _of_hyperparameters(self, test: cst.BaseExpression, one: Branch, statement: Statement) -> str:
        """Returns a test with the values of names in their place; raises if it asks for more than hyperparameters."""
        flat = unwrapped(one.statements)
        for _ in range(_MOST):
            values = {name: assigned(name, flat) for name in _read(test) & self._tests.bound}
            test = with_values(test, {name: value for name, value in values.items() if value is not None})
        if (self._tests.bound | {self._features, self._labels}) & _read(test):
            raise UnconvertibleError(statement, "eval_metric_ops", _NOT_ONE_DICT)
        return code(test)

    def _items(self, statement: Statement, one: Branch) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
        """Yields the assignments to items of a dict, also those below a test of hyperparameters, with the test."""
        if not isinstance(statement, cst.If):
            yield from ((key, each, "") for key, each in _given_items(statement))
            return
        if statement.orelse is not None or not isinstance(statement.body, cst.IndentedBlock):
            raise UnconvertibleError(statement, "eval_metric_ops", _NOT_ONE_DICT)
        test = self._of_hyperparameters(statement.test, one, statement)
        for inner in statement.body.body:
            if not isinstance(inner, cst.SimpleStatementLine):
                raise UnconvertibleError(statement, "eval_metric_ops", _NOT_ONE_DICT)
            yield from ((key, each, test) for key, each in _given_items(inner))

    def _predictions(self, network: list[Statement]) -> tuple[list[Statement], list[Statement], cst.BaseExpression | None]:
        one, value = self._branches.get(Mode.PREDICT), self._specs.get(Mode.PREDICT, {}).get("predictions")
        if one is None or value is None:
            return network, [], None
        needed, late = self._split(one, _read(value))
        if late:
            raise UnconvertibleError(late[0], "the predictions", "they need the labels; compute them without")
        shared = [statement for statement in needed if statement in network or self._makes_variables(statement)]
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
        return self._makes(statement) or any(
            isinstance(each, cst.Call) and (simple_name(each.func) in self._own or self._is_of_unknown(each)) for each in made
        )

    def _notes(self, used: set[Statement]) -> Iterator[Change]:
        for statement in self._left_out(used):
            what, message = code(statement).strip().splitlines()[-1], "left out: no loss, metric or prediction needs it"
            yield Change(self._script.line(statement), what, Outcome.APPROXIMATE, message)
        if self._tests.asks_labels:
            message = "is taken to be there in training and evaluation, and not in prediction, without asking"
            yield Change(self._script.line(self._function), self._labels, Outcome.APPROXIMATE, message)
        host = self._specs[Mode.TRAIN].get("host_call")
        if host is not None:
            message = "left out: it writes summaries; fit writes losses and metrics"
            yield Change(self._script.line(host), f"host_call={code(host)}", Outcome.APPROXIMATE, message)
        for entry, name in self._extra:
            message = f"evaluations also report {name!r}, from which it is computed"
            yield Change(self._script.line(entry), code(entry), Outcome.APPROXIMATE, message)
        reached = [each for one in used if self._shim for each in nodes(one, cst.Call) if isinstance(each, cst.Call)]
        given = self._returned_by_others([*used]) if self._shim else ()
        for unknown in (*filter(self._is_of_unknown, reached), *given):
            message = "what it calls is only known when the script runs; prove the new script with compare"
            yield Change(self._script.line(unknown), code(unknown.func), Outcome.APPROXIMATE, message)
        for call in self._untold:
            message = "says training=False: TensorFlow 1 does not train what is not told to"
            yield Change(self._script.line(call), code(call), Outcome.CONVERTED, message)
        for call in self._frozen:
            message = "momentum is 1: nothing in the script updates its averages, so they stay as they begin; if not meant, take it away"
            yield Change(
                self._script.line(call), code(call.func if isinstance(call, cst.Call) else call), Outcome.APPROXIMATE, message
            )
        for call in self._always:
            message = "if it trains in all modes, evaluations and predictions of Keras change its averages, too; TensorFlow 1 keeps them"
            yield Change(
                self._script.line(call), code(call.func if isinstance(call, cst.Call) else call), Outcome.APPROXIMATE, message
            )
        for key in self._served[1] if self._served is not None else ():
            message = "left out: it is no PredictOutput of the predictions; exports have no such signature"
            yield Change(self._script.line(key), f"export_outputs[{code(key)}]", Outcome.APPROXIMATE, message)

    def _signatures(self) -> tuple[str, ...] | None:
        if self._served is None:
            return None
        names, others = self._served
        exports = (node.attr.value for node in nodes(self._script.module, cst.Attribute) if isinstance(node, cst.Attribute))
        if others and any(name.startswith("export_saved") or name.endswith("Exporter") for name in exports):
            message = "only PredictOutput of the predictions is converted; write the signatures by hand"
            raise UnconvertibleError(self._branches[Mode.PREDICT].spec, "EstimatorSpec(export_outputs=...)", message)
        return tuple(dict.fromkeys([*names, "serving_default"])) if len(names) == 1 else tuple(names)

    @functools.cached_property
    def _served(self) -> tuple[list[str], list[cst.CSTNode]] | None:
        """The names of the signatures that answer with the predictions, and the entries of ``export_outputs`` that do otherwise."""
        one, spec = self._branches.get(Mode.PREDICT), self._specs.get(Mode.PREDICT, {})
        asked = spec.get("export_outputs")
        if one is None or asked is None:
            return None
        known = [code(value) for value in self._values(spec.get("predictions"), one)]
        outputs = self._values(asked, one)[-1]
        if not isinstance(outputs, cst.Dict):
            return [], [asked]
        names, others = list[str](), list[cst.CSTNode]()
        for entry in outputs.elements:
            key, value = (entry.key, self._values(entry.value, one)[-1]) if isinstance(entry, cst.DictElement) else (None, None)
            is_predict = self._script.called(value) == "tensorflow.estimator.export.PredictOutput"
            given = arguments(value, ("outputs",)) if is_predict and isinstance(value, cst.Call) else None
            name = self._text(key, one)
            if name and given and code(given["outputs"]) in known:
                names.append(name)
            else:
                others.append(key or entry.value)
        return names, others

    def _text(self, value: cst.BaseExpression | None, one: Branch) -> str:
        """Returns the text that an expression is; empty for all else."""
        constants = [each for each in (*self._script.module.body, *one.statements) if isinstance(each, cst.SimpleStatementLine)]
        value = assigned(value.value, constants) if isinstance(value, cst.Name) else value
        if value is not None and self._script.name(value).endswith(".DEFAULT_SERVING_SIGNATURE_DEF_KEY"):
            return "serving_default"
        return str(value.evaluated_value) if isinstance(value, cst.SimpleString) else ""

    def _values(self, value: cst.BaseExpression | None, one: Branch) -> list[cst.BaseExpression]:
        """Returns an expression, and what it was assigned if it is a name."""
        made = assigned(value.value, one.statements) if isinstance(value, cst.Name) else None
        return [found for found in (value, made) if found is not None]

    def _makes(self, statement: Statement) -> bool:
        """Returns True for a statement that makes layers or variables, by itself or by functions of the script."""
        return self._makes_variables(statement) or any(self._makes_layers(name, frozenset()) for name in _read(statement))

    def _makes_variables(self, statement: Statement) -> bool:
        names = (self._script.name(node) for node in nodes(statement, cst.Attribute))
        return any(name.startswith(_MAKERS) for name in names)

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
                self._check(statement)
            if "regularizer" in code(statement) and self._makes_variables(statement) and self._adds_penalties():
                message = (
                    "nothing reads this layer, but the loss has its penalty; take the layer out of the old script, or use it"
                )
                raise UnconvertibleError(statement, "the model function", message)
            if not self._is_harmless(statement):
                raise UnconvertibleError(
                    statement, "the model function", "nothing reads what this does; move it out of the function"
                )
        return rest

    def _adds_penalties(self) -> bool:
        """Returns True if the model function asks for the penalties of all layers."""
        calls = (of_whole_model(self._script, node) for node in nodes(self._function, cst.Call))
        return any("losses" in one for one in calls)

    def _check_penalties(self, network: Sequence[Statement]) -> None:
        """Raises for penalties of layers of Keras, which TensorFlow 1 does not add to those of its own layers."""
        reached = [*network, *(self._own[name] for name in self._reached(network)[1])]
        calls = [one for each in reached for one in nodes(each, cst.Call) if isinstance(one, cst.Call)]
        for call in calls if self._adds_penalties() else ():
            given = [one for one in call.args if one.keyword is not None and one.keyword.value.endswith("_regularizer")]
            if is_keras(self._script.called(call)) and any(code(one.value) != "None" for one in given):
                message = "get_regularization_loss has no penalties of layers of Keras; add them to the loss, or take the regularizer away"
                raise UnconvertibleError(call, code(call.func), message)

    def _is_harmless(self, statement: cst.CSTNode) -> bool:
        """Returns True for a statement that only gives values to names, or shows them, perhaps below a test."""
        if isinstance(statement, cst.With) or (isinstance(statement, cst.For) and statement.orelse is None):
            return self._is_harmless(statement.body)
        if isinstance(statement, cst.If):
            branches = [statement.body, *([statement.orelse] if statement.orelse is not None else [])]
            return all(self._is_harmless(one) for one in branches)
        if isinstance(statement, cst.Else | cst.IndentedBlock | cst.SimpleStatementLine):
            inside = statement.body.body if isinstance(statement, cst.Else) else statement.body
            return all(self._is_harmless(one) for one in inside)
        effect = statement.value if isinstance(statement, cst.Expr) else None
        prints = isinstance(effect, cst.Call) and (simple_name(effect.func) == "print" or self._only_shows(effect))
        prints |= isinstance(effect, cst.Call) and _LOGS.fullmatch(code(effect.func)) is not None
        name = self._script.called(effect)
        prints |= bool(name) and not _CHANGES.match(name) and not self._script.may_make_layers(name)
        kinds = (
            cst.Del
            | cst.Assign
            | cst.AnnAssign
            | cst.AugAssign
            | cst.Assert
            | cst.Pass
            | cst.Raise
            | cst.Import
            | cst.ImportFrom
            | cst.FunctionDef
        )
        return isinstance(statement, kinds) or prints or self._script.called(effect).startswith(_WITHOUT_EFFECT)

    def _only_tells(self, statement: Statement) -> bool:
        """Returns True for a call of its own that shows values."""
        only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
        return isinstance(only, cst.Expr) and self._is_harmless(statement)

    def _only_shows(self, call: cst.Call) -> bool:
        """Returns True for a call of a function of the script that has no effect but to show values."""
        function = self._own.get(simple_name(call.func))
        if not isinstance(function, cst.FunctionDef) or simple_name(call.func) in reads_and_writes(function)[0]:
            return False
        return self._is_harmless(function.body)


def _around(script: Script, function: cst.FunctionDef) -> list[cst.FunctionDef]:
    """Returns the functions around a function, the outermost first."""
    every = [one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef) and one is not function]
    return [one for one in every if any(inner is function for inner in nodes(one.body, cst.FunctionDef))]


def _chooses_by_mode(node: cst.CSTNode) -> bool:
    """Returns True for a function of the mode that only returns ``a if test else b``."""
    if not isinstance(node, cst.FunctionDef) or "mode" not in [one.name.value for one in node.params.params]:
        return False
    returned = [one.value for one in nodes(node.body, cst.Return) if isinstance(one, cst.Return)]
    statements = [one for one in node.body.body if not (isinstance(one, cst.SimpleStatementLine) and is_text(one))]
    return len(statements) == 1 and any(isinstance(one, cst.IfExp) for one in returned)


def _given_anywhere(name: str, one: Branch) -> list[cst.BaseExpression]:
    """Returns what the statements of a mode assign to a name, or append to it, in blocks too; nothing if it changes in other ways."""
    found = list[cst.BaseExpression]()
    for node in (part for each in one.statements for part in nodes(each, cst.Assign, cst.AugAssign, cst.Call)):
        if isinstance(node, cst.Assign) and any(simple_name(target.target) == name for target in node.targets):
            found.append(node.value)
        elif isinstance(node, cst.AugAssign) and simple_name(node.target) == name:
            return []
        elif isinstance(node, cst.Call) and code(node.func).startswith(f"{name}."):
            if code(node.func) != f"{name}.append" or len(node.args) != 1:
                return []
            found.append(node.args[0].value)
    return found


def _is_none(value: cst.BaseExpression, one: Branch) -> bool:
    """Returns True for a name that is only given the value None."""
    writers = [each for each in one.statements if simple_name(value) in reads_and_writes(each)[1]]
    values = [assigned_value(each) for each in writers]
    return bool(values) and all(each is not None and code(each) == "None" for each in values)


def _behind(value: cst.BaseExpression, statements: Sequence[Statement]) -> tuple[cst.BaseExpression, list[Statement]]:
    """Returns what a name was given, by way of other names too, and the statements that change it afterwards."""
    later: list[Statement] = []
    for place in range(len(statements) - 1, -1, -1):
        read, written = reads_and_writes(statements[place])
        if simple_name(value) in written:
            given = assigned_value(statements[place])
            if simple_name(value) not in read and given is not None:
                value = given
                changed = [one for one in statements[place + 1 :] if simple_name(given) in reads_and_writes(one)[1]]
                later = [one for one in statements[place + 1 :] if one in later or one in changed]  # of the same dict
            else:
                later.insert(0, statements[place])
    return value, later


def _dict_items(value: cst.BaseExpression, spec: cst.Call) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Returns the keys and values of a dict."""
    if isinstance(value, cst.Call) and code(value.func) == "dict" and all(each.keyword for each in value.args):
        return [(cst.SimpleString(f'"{one.keyword.value}"'), one.value) for one in value.args if one.keyword is not None]
    if not isinstance(value, cst.Dict):
        raise UnconvertibleError(spec, "eval_metric_ops", _NOT_ONE_DICT)
    return [(each.key if isinstance(each, cst.DictElement) else each.value, each.value) for each in value.elements]


def _given_items(statement: Statement) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Returns the keys and values that a statement gives a dict: by an assignment to an item, or by ``update`` with another dict."""
    only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    call = only.value if isinstance(only, cst.Expr) else None
    if (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "update"
        and len(call.args) == 1
    ):
        return _dict_items(call.args[0].value, call)
    target, value = assigned_target(statement), assigned_value(statement)
    if value is None or not isinstance(target, cst.Subscript) or not isinstance(target.value, cst.Name):
        raise UnconvertibleError(statement, "eval_metric_ops", _NOT_ONE_DICT)
    key = target.slice[0].slice
    return [(key.value if isinstance(key, cst.Index) else target, value)]


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
