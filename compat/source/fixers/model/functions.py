"""Takes a model function apart: network, loss, metrics, predictions and optimizer."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model import metrics, optimizers
from estimator_bridge.compat.source.fixers.model.branches import unified
from estimator_bridge.compat.source.fixers.model.flow import (
    Branch,
    Mode,
    ModeTests,
    Statement,
    assigned,
    assigned_value,
    branch,
    is_text,
    needed_for,
    reads_and_writes,
    tainted_by,
)
from estimator_bridge.compat.source.fixers.model.inlining import inlined
from estimator_bridge.compat.source.fixers.model.layers import is_keras, layer_function
from estimator_bridge.compat.source.fixers.model.updates import OPTIMIZE_LOSS, find_updates
from estimator_bridge.compat.source.fixers.script import LOGGERS, Arguments, Script, arguments, code, nodes, simple_name
from estimator_bridge.compat.source.fixers.surface import is_respelled

_SPEC = ("mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs", "training_chief_hooks",
         "training_hooks", "scaffold", "evaluation_hooks", "prediction_hooks")  # fmt: skip
_KNOWN = frozenset(_SPEC[:5])
OF_WHOLE_MODEL = {
    "tensorflow.trainable_variables": "self.trainable_variables",
    "tensorflow.losses.get_regularization_loss": "tf.add_n(self.losses)",
}
"""Calls that ask for what all layers made, and what a method of the model asks."""
_REFUSED = {
    "tensorflow.train.get_global_step": "the network or its loss depends on the step; count steps in the model",
    "tensorflow.train.get_or_create_global_step": "the network or its loss depends on the step; count steps in the model",
    "tensorflow.Variable": "each step would make it anew; make it in __init__ of the model",
    "tensorflow.get_collection": "collections are not filled outside of a graph; keep the tensors in variables",
    "tensorflow.add_to_collection": "collections are not filled outside of a graph; keep the tensors in variables",
    "tensorflow.losses.get_total_loss": "losses are not collected outside of a graph; add them up",
    "tensorflow.losses.get_losses": "losses are not collected outside of a graph; add them up",
    "tensorflow.control_dependencies": "there is no order of operations to force; put them one after another",
    "tensorflow.placeholder": "there are no placeholders outside of a graph; take the value from the features",
    "tensorflow.Session": "there are no sessions in a model; use tensors as values",
    "tensorflow.get_default_graph": "there is no graph to ask; use the model's own variables",
    "tensorflow.train.init_from_checkpoint": "values are loaded once, after the first call; use tf.train.load_checkpoint there",
}


_WITH_AVERAGES = (
    "BatchNormalization",
    "SyncBatchNormalization",
    "ResNet",
    "Inception",
    "MobileNet",
    "DenseNet",
    "NASNet",
    "Xception",
)
"""Layers of Keras with moving averages, and prefixes of the networks that contain such layers."""
_MAKERS = ("tensorflow.layers.", "tensorflow.get_variable", "tensorflow.variable_scope", "tensorflow.feature_column.input_layer",
           "tensorflow.feature_column.linear_model", "tensorflow.contrib.")  # fmt: skip
_NORMS = (
    "tensorflow.layers.batch_normalization",
    "tensorflow.layers.BatchNormalization",
    "tensorflow.contrib.layers.batch_norm",
)
_NEVER_UPDATED = "its moving averages are never updated, for UPDATE_OPS is not run; decide if that is meant"
_WITHOUT_EFFECT = ("tensorflow.summary.", "tensorflow.logging.", "tensorflow.identity", "logging.", "tensorflow.assert_")
"""Calls that train nothing; ``fit`` writes losses and metrics by its own callback."""


@dataclasses.dataclass(frozen=True)
class ModelFunction:
    """The parts of a model function.

    Attributes:
        node: The function.
        features: Name of the first argument.
        labels: Name of the argument for the labels; empty if there is none.
        params: Name of the argument for hyperparameters; empty if there is none.
        tests: Conditions on the mode.
        network: Statements that need neither labels nor trained variables.
        loss: Statements of the loss that need them.
        loss_value: The loss.
        measured: Statements that metrics need beside the network's.
        metrics: Metrics of an evaluation.
        predicted: Statements that predictions need beside the network's.
        predictions: The predictions.
        prepared: Statements that the optimizer needs.
        optimizer: Expression that makes the Keras optimizer.
        left_out: Statements that nothing needs: they write summaries, or give names to unused tensors.
        inlined: Functions of the script whose bodies the parts contain.
        signatures: Names of the signatures that answer with the predictions; None if ``export_outputs`` says nothing.
        makes_keras: Function that returns True for a call that makes a layer or a model of Keras.
        shimmed: Functions and classes of the script that make layers each time they are called; None if ``__init__`` makes all layers.
    """

    node: cst.FunctionDef
    features: str
    labels: str
    params: str
    tests: ModeTests
    network: tuple[Statement, ...]
    loss: tuple[Statement, ...]
    loss_value: cst.BaseExpression
    measured: tuple[Statement, ...]
    metrics: tuple[metrics.Metric, ...]
    predicted: tuple[Statement, ...]
    predictions: cst.BaseExpression | None
    prepared: tuple[Statement, ...]
    optimizer: str
    left_out: tuple[Statement, ...]
    inlined: tuple[str, ...]
    signatures: tuple[str, ...] | None
    makes_keras: Callable[[cst.Call], bool]
    shimmed: frozenset[str] | None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names that the network gives to the loss, the metrics and the predictions, in the order in which they are bound."""
        wanted: set[str] = set()
        for statements in (self.loss, self.measured, self.predicted):
            for statement in statements:
                wanted |= reads_and_writes(statement)[0]
        for value in (self.loss_value, self.predictions):
            wanted |= _read(value) if value is not None else set()
        wanted |= {name for one in self.metrics for name in _read(cst.parse_expression(f"f({one.update})"))}
        bound = (name for statement in self.network for name in sorted(reads_and_writes(statement)[1]))
        return tuple(name for name in dict.fromkeys(bound) if name in wanted)


def take_apart(script: Script, function: cst.FunctionDef, shim: bool = False) -> ModelFunction:
    """Finds the parts of a model function.

    Args:
        script: Script around the function.
        function: The function.
        shim: Layers are made each time the network is called, below TensorFlow's own ``track_tf1_style_variables``.

    Raises:
        UnconvertibleError: A part is not of a form that this module knows.
    """
    return _Analysis(script, function, shim).result()


class _Analysis:
    def __init__(self, script: Script, function: cst.FunctionDef, shim: bool) -> None:
        self._script = script
        self._function = function
        self._shim = shim
        names = [parameter.name.value for parameter in function.params.params]
        if not names or function.params.star_kwarg or "mode" not in names:
            raise UnconvertibleError(function, "the model function", "its arguments must be features, labels, mode and params")
        self._features = names[0]
        self._labels = "labels" if "labels" in names else ""
        self._params = "params" if "params" in names else ""
        self._own = {one.name.value: one for one in script.module.body if isinstance(one, cst.FunctionDef | cst.ClassDef)}
        functions = {name: one for name, one in self._own.items() if isinstance(one, cst.FunctionDef)}
        body = [one for one in function.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
        self._body, self._inlined = inlined(script, body, functions, self._belongs_here)
        if "config" in names and any("config" in reads_and_writes(one)[0] for one in self._body):
            raise UnconvertibleError(function, "config", "the model function reads it; take the value from params")
        self._tests = ModeTests(script, "mode", self._body)
        self._check_keras()
        found = {mode: branch(script, self._tests, self._body, mode) for mode in Mode}
        if found[Mode.TRAIN] is None:
            raise UnconvertibleError(function, "the model function", "it returns nothing in training; return an EstimatorSpec")
        self._branches = unified(script, {mode: one for mode, one in found.items() if one is not None})
        self._specs = {mode: self._spec(one) for mode, one in self._branches.items()}

    def result(self) -> ModelFunction:
        """Returns the parts."""
        train, spec = self._branches[Mode.TRAIN], self._specs[Mode.TRAIN]
        loss_value = spec.get("loss")
        if loss_value is None:
            raise UnconvertibleError(train.spec, "EstimatorSpec", "it has no loss in training; give it one")
        network, loss = self._split(train, _read(loss_value))
        self._same_loss(loss_value, {*network, *loss})
        network, measured, found = self._metrics(network)
        network, predicted, predictions = self._predictions(network)
        updates = find_updates(self._script, train.statements, spec, self._check, {self._features, self._labels})
        used = {*network, *loss, *measured, *predicted, *self._of_specs()}
        return ModelFunction(
            self._function, self._features, self._labels, self._params, self._tests,
            tuple(self._in_order(network)), tuple(loss), loss_value, tuple(measured), tuple(found), tuple(predicted), predictions,
            updates.prepared, updates.optimizer, tuple(self._left_out(used)),
            tuple(self._inlined), self._signatures(), self._makes_keras, self._reached(network)[1] if self._shim else None,
        )  # fmt: skip

    def _spec(self, one: Branch) -> Arguments:
        given = arguments(one.spec, _SPEC)
        if given is not None:
            given = {name: value for name, value in given.items() if "hooks" not in name or not self._only_log(value, one)}
        unknown = sorted(given.keys() - _KNOWN - {"export_outputs"}) if given is not None else ["*"]
        if given is None or unknown:
            raise UnconvertibleError(
                one.spec, f"EstimatorSpec({unknown[0]}=...)", "there is no fixer for it; write it as a callback of fit"
            )
        return {name: value for name, value in given.items() if code(value) != "None"}

    def _only_log(self, hooks: cst.BaseExpression, one: Branch) -> bool:
        """Returns True for a list of hooks that show values and change nothing."""
        if isinstance(hooks, cst.Name):
            hooks = assigned(hooks.value, one.statements) or hooks
        if not isinstance(hooks, cst.List | cst.Tuple):
            return False
        values = [element.value for element in hooks.elements]
        made = [assigned(value.value, one.statements) if isinstance(value, cst.Name) else value for value in values]
        return all(self._script.called(value) in LOGGERS for value in made)

    def _split(self, one: Branch, names: set[str]) -> tuple[list[Statement], list[Statement]]:
        """Returns the statements that names need: those of the network, and those that need labels or trained variables."""
        needed = needed_for(names, one.statements)
        later = [statement for statement in needed if self._asks_whole_model(statement)]
        late_names = {name for statement in later for name in reads_and_writes(statement)[1]}
        tainted, _ = tainted_by({self._labels, *late_names} - {""}, needed)
        late = [statement for statement in needed if statement in tainted or statement in later]
        network = [statement for statement in needed if statement not in late]
        for statement in needed:
            self._check(statement)
        return network, late

    def _asks_whole_model(self, statement: Statement) -> bool:
        return any(self._script.name(node) in OF_WHOLE_MODEL for node in nodes(statement, cst.Attribute, cst.Name))

    def _check(self, statement: Statement) -> None:
        calls = [node for node in nodes(statement, cst.Call) if isinstance(node, cst.Call)]
        respelled = {self._script.called(call) for call in calls if is_respelled(self._script.called(call), call)}
        for node in nodes(statement, cst.Attribute, cst.Name):
            name = self._script.name(node)
            if name in _REFUSED:
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), _REFUSED[name])
            known = name == "tensorflow.contrib.layers" or layer_function(name) or ".ModeKeys" in name or name in respelled
            if name.startswith("tensorflow.contrib.") and not known:
                raise UnconvertibleError(
                    statement, name.replace("tensorflow", "tf", 1), "tf.contrib is not converted; use a core layer or function"
                )
            if name in _NORMS and not self._updates_run(code(statement)):
                raise UnconvertibleError(statement, "tf.layers.batch_normalization", _NEVER_UPDATED)
        if self._shim:
            self._check_reached(statement)
        for name in reads_and_writes(statement)[0]:
            if not self._shim and self._makes_layers(name, frozenset()):
                raise UnconvertibleError(
                    statement, name, "it makes layers; write it as a layer of tf_keras that the model makes in __init__"
                )

    def _check_reached(self, statement: Statement) -> None:
        """Raises for what a function of the script does that cannot be done in each step."""
        named, own = self._reached([statement])
        texts = "".join(code(self._own[name]) for name in own)
        for name in named:
            if name in _REFUSED:
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), _REFUSED[name])
            if name in _NORMS and not self._updates_run(code(statement) + texts):
                raise UnconvertibleError(statement, "tf.layers.batch_normalization", _NEVER_UPDATED)

    def _makes_layers(self, name: str, seen: frozenset[str]) -> bool:
        """Returns True if a function or class of the script makes layers or variables, by itself or by others."""
        if name not in self._own or name in seen:
            return False
        named = (self._script.name(node) for node in nodes(self._own[name], cst.Attribute))
        if any(one.startswith(_MAKERS) for one in named):
            return True
        return any(self._makes_layers(other, seen | {name}) for other in reads_and_writes(self._own[name])[0])

    def _makes_keras(self, node: cst.Call) -> bool:
        """Returns True for a call that makes an object of Keras: of Keras itself, or of a function or class of the script."""
        own = self._own.get(simple_name(node.func))
        return is_keras(self._script.called(node)) or (own is not None and bool(self._keras_names(own)))

    def _keras_names(self, node: cst.CSTNode) -> set[str]:
        """Returns the names of Keras that make layers, in a node and in the functions and classes of the script that it reads."""
        return {name.rpartition(".")[2] for name in self._reached([node])[0] if is_keras(name)}

    def _reached(self, start: Sequence[cst.CSTNode]) -> tuple[set[str], frozenset[str]]:
        """Returns the imported names in some nodes and in the script's functions and classes that they read, and the names of these."""
        pending, own, found = [*start], set[str](), set[str]()
        while pending:
            one = pending.pop()
            found.update(self._script.name(part) for part in nodes(one, cst.Attribute, cst.Name))
            more = (reads_and_writes(one)[0] & self._own.keys()) - own
            pending += [self._own[name] for name in more]
            own |= more
        return found, frozenset(own)

    def _check_keras(self) -> None:
        """Raises if layers of Keras would train otherwise: Keras tells them the mode, TensorFlow 1 did not."""
        made = {
            name: value
            for one in self._body
            for value in [assigned_value(one)]
            if isinstance(value, cst.Call)
            for name in reads_and_writes(one)[1]
        }
        calls = [node for one in self._body for node in nodes(one, cst.Call) if isinstance(node, cst.Call)]
        called = [(one, one.func if isinstance(one.func, cst.Call) else made.get(simple_name(one.func))) for one in calls]
        objects = [(one, what) for one, what in called if what is not None and self._makes_keras(what)]
        for one, what in objects:
            names = sorted(self._keras_names(what))
            averages = next((name for name in names if name.startswith(_WITH_AVERAGES)), None)
            if averages:
                message = (
                    "TensorFlow 1 updates its moving averages only where the script asks for that; decide, and write the class"
                )
                raise UnconvertibleError(one, averages, message)
            has_training = any(argument.keyword is not None and argument.keyword.value == "training" for argument in one.args)
            if any(re.search("Dropout|Noise", name) for name in names) and not has_training:
                message = (
                    "it is called without training, so TensorFlow 1 never drops anything; pass training=False if that is meant"
                )
                raise UnconvertibleError(one, code(one.func), message)

    def _belongs_here(self, name: str) -> bool:
        """Returns True for a function whose layers or whose optimizer the class has to hold."""
        trains = (optimizers.is_optimizer(self._script.name(node)) for node in nodes(self._own[name], cst.Attribute))
        return (not self._shim and self._makes_layers(name, frozenset())) or any(trains)

    def _updates_run(self, text: str) -> bool:
        """Returns True if the updates of batch norm in a source text are run."""
        asked = ("tensorflow.GraphKeys.UPDATE_OPS", OPTIMIZE_LOSS)
        at_once = "updates_collections=None" in text.replace(" ", "")
        return at_once or any(self._script.name(node) in asked for node in nodes(self._function, cst.Attribute))

    def _same_loss(self, loss_value: cst.BaseExpression, known: set[Statement]) -> None:
        evaluation = self._branches.get(Mode.EVAL)
        value = self._specs.get(Mode.EVAL, {}).get("loss")
        if evaluation is None or value is None:
            return
        network, loss = self._split(evaluation, _read(value))
        if code(value) != code(loss_value) or {*network, *loss} != known:
            message = (
                "network or loss of training and evaluation are different statements; choose by an argument in one statement"
            )
            raise UnconvertibleError(self._function, "the model function", message)

    def _metrics(self, network: list[Statement]) -> tuple[list[Statement], list[Statement], list[metrics.Metric]]:
        one, value = self._branches.get(Mode.EVAL), self._specs.get(Mode.EVAL, {}).get("eval_metric_ops")
        if one is None or value is None:
            return network, [], []
        entries = value if not isinstance(value, cst.Name) else assigned(value.value, one.statements) or value
        if isinstance(entries, cst.Call) and code(entries.func) == "dict" and all(one.keyword for one in entries.args):
            named = [(one.keyword.value, one.value) for one in entries.args if one.keyword is not None]
            entries = cst.Dict([cst.DictElement(cst.SimpleString(f'"{name}"'), one) for name, one in named])
        if not isinstance(entries, cst.Dict):
            raise UnconvertibleError(one.spec, "eval_metric_ops", "it is not written as one dict; write it so")
        found, names = [], set()
        for element in entries.elements:
            if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                raise UnconvertibleError(one.spec, "eval_metric_ops", "a key is not written as a string; write it so")
            call = element.value
            if isinstance(call, cst.Name):
                call = assigned(call.value, one.statements) or call
            found.append(metrics.metric(self._script, str(element.key.evaluated_value), call))
            names |= _read(cst.parse_expression(f"f({found[-1].update})"))
        more, measured = self._split(one, names)
        added = [statement for statement in more if statement not in network]
        if _bound([one for one in added if one not in self._branches[Mode.TRAIN].statements]) & _bound(network):
            raise UnconvertibleError(
                self._function, "the model function", "the metrics are those of another network; make it one"
            )
        return [*network, *added], measured, found

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
        if all(statement in everywhere for statement in shared) and not reads_other:
            return [*network, *(statement for statement in shared if statement not in network)], rest, value
        message = (
            "the network in prediction is made of other statements than in training; choose by an argument in one statement"
        )
        raise UnconvertibleError(self._function, "the model function", message)

    def _signatures(self) -> tuple[str, ...] | None:
        one, spec = self._branches.get(Mode.PREDICT), self._specs.get(Mode.PREDICT, {})
        asked = spec.get("export_outputs")
        if one is None or asked is None:
            return None
        known = [code(value) for value in self._values(spec.get("predictions"), one)]
        outputs = self._values(asked, one)[-1]
        entries = outputs.elements if isinstance(outputs, cst.Dict) else ()
        names = []
        for entry in entries:
            key, value = (entry.key, self._values(entry.value, one)[-1]) if isinstance(entry, cst.DictElement) else (None, None)
            is_predict = self._script.called(value) == "tensorflow.estimator.export.PredictOutput"
            given = arguments(value, ("outputs",)) if is_predict and isinstance(value, cst.Call) else None
            name = self._text(key, one)
            if name and given and code(given["outputs"]) in known:
                names.append(name)
            elif self._exports():
                message = "only PredictOutput of the predictions is converted; write the signatures by hand"
                raise UnconvertibleError(one.spec, "EstimatorSpec(export_outputs=...)", message)
        return tuple(dict.fromkeys([*names, "serving_default"])) if len(names) == 1 else tuple(names)

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

    def _exports(self) -> bool:
        found = (node.attr.value for node in nodes(self._script.module, cst.Attribute) if isinstance(node, cst.Attribute))
        return any(name.startswith("export_saved") or name.endswith("Exporter") for name in found)

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
        rest = [statement for statement in every if statement not in used and not is_text(statement)]
        for statement in rest:
            self._check(statement)
            for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else [None]:
                effect = small.value if isinstance(small, cst.Expr) else None
                harmless = isinstance(small, cst.Assign | cst.AnnAssign | cst.Assert | cst.Pass | cst.Import | cst.ImportFrom)
                prints = isinstance(effect, cst.Call) and simple_name(effect.func) == "print"
                if not harmless and not prints and not self._script.called(effect).startswith(_WITHOUT_EFFECT):
                    raise UnconvertibleError(
                        statement, "the model function", "nothing reads what this does; move it out of the function"
                    )
        return rest


def _bound(statements: Sequence[Statement]) -> set[str]:
    return {name for statement in statements for name in reads_and_writes(statement)[1]}


def _read(value: cst.CSTNode) -> set[str]:
    return set(reads_and_writes(value)[0])
