"""Writes a model function that was taken apart as a class of Keras."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.branches import not_training
from estimator_bridge.compat.source.fixers.model.flow import (
    MODES,
    Mode,
    Statement,
    bound_in_any_case,
    is_text,
    mode_name,
    needed_for,
    reads_and_writes,
    tainted_by,
    unwrapped,
)
from estimator_bridge.compat.source.fixers.model.function.analysis import INITIAL
from estimator_bridge.compat.source.fixers.model.function.definitions import ASKED
from estimator_bridge.compat.source.fixers.model.function.parts import ModelFunction
from estimator_bridge.compat.source.fixers.model.function.whole_model import COUNTED, asked_scope, of_whole_model
from estimator_bridge.compat.source.fixers.model.layers import (
    EQUAL,
    VARIABLE,
    frozen,
    in_network,
    is_contrib,
    is_layer_of_keras,
    layer_function,
    of_core,
    of_network,
)
from estimator_bridge.compat.source.fixers.model.lifting import OF_LAYERS, Lifting, Place, plain_value, target_of
from estimator_bridge.compat.source.fixers.script import SPEC, Script, arguments, code, makes, nodes, parsed, simple_name

_CLASS = """
class NAME(tf_keras.Model):
    DOCSTRING

    def __init__(ALL_ARGUMENTS):
        super().__init__(autocast=False)  # features keep their types
        MORE
        self.params = params or {}
        self.config = config or {}
        self.model_dir = model_dir or self.config.get("model_dir")
        self.mean_loss = tf_keras.metrics.Mean(name="loss")
        CONDITIONS
        self.eval_metrics = METRICS
        SIGNATURES
        PREPARED
        LAYERS
        self.compile(optimizer=OPTIMIZER)

    def call(self, GIVEN, training=False):
        PAIR
        PARAMS
        NETWORK
        return OUTPUTS

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        LOSS_INPUTS
        LOSS
        self.mean_loss.update_state(LOSS_VALUE)
        return LOSS_VALUE

    def compute_metrics(self, x, y, y_pred, sample_weight):
        METRIC_INPUTS
        MEASURED
        UPDATES
        return RESULTS
"""
_EVALUATION = """
    def test_step(self, data):
        x, y, sample_weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        WITH_LABELS
        y_pred = self(x, training=False)
        EVALUATED
        return EVALUATION_RESULTS
"""
_OTHER_LOSS = """
    def evaluation_loss(self, x, y, y_pred):
        EVALUATION_INPUTS
        EVALUATION
        return EVALUATION_LOSS
"""
_METRICS = """
    def eval_metric_ops(self, x, y, y_pred):
        \"\"\"Returns the value and the update of each metric, in a graph.\"\"\"
        KEPT_INPUTS
        KEPT
        return KEPT_METRICS

    def reset_metrics(self):
        super().reset_metrics()
        self.metrics_of_graph.reset()
"""
_INITIAL = """
    def load_initial_values(self):
        \"\"\"Gives variables the values of another checkpoint, before the first step.\"\"\"
        INITIAL_VALUES
"""
_UPDATES = """
    @tf.compat.v1.keras.utils.track_tf1_style_variables
    def update(self, x, y, y_pred):
        \"\"\"Computes the loss of a batch, and updates the variables.\"\"\"
        with GRAPH_OF_UPDATES(self), SAME_NAMES:
            UPDATE_INPUTS
            LOSS
            KEPT_UPDATES
        self.mean_loss.update_state(LOSS_VALUE)

    def train_step(self, data):
        x, y, sample_weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        WITH_LABELS
        y_pred = self(x, training=True)
        self.update(x, y, y_pred)
        return self.compute_metrics(x, y, y_pred, sample_weight)
"""
_PAIRED = """
    def STEP(self, data):
        x, y, sample_weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        return super().STEP(((x, y), y, sample_weight))
"""
GRAPH, LOADER, KEPT_METRICS = "graph_of_updates", "init_from_checkpoint", "MetricsOfGraph"
"""Functions of the new script: below the first, updates stay as they are; the second gives variables the values of a checkpoint; the last
computes metrics that stay as they are."""
_UNTRACKED = (
    '        object.__setattr__(self, "params", params or {})  # Keras would save what they hold, as an optimizer, twice'
)
_COUNTER = "tf_keras.optimizers.legacy.SGD(0.0)"
"""Optimizer that only counts the steps."""
_RESULTS = "{metric.name: metric.result() for metric in self.metrics}"
SHIM = "@tf.compat.v1.keras.utils.track_tf1_style_variables"
_SCOPE = "tf.compat.v1.variable_scope(tf.compat.v1.get_variable_scope())"
"""Context manager behind which names of layers without a name are counted anew, as each graph of TensorFlow 1 does."""
_PLAIN = 'with tf.name_scope(""):  # names of variables begin with those of their layers, as in TensorFlow 1'
_AGAIN = f"with {_SCOPE}:  # each call makes the same names"
_BOTH = (
    f'with {_SCOPE}, tf.name_scope(""):  # names of variables are the same in each call, and begin with those of their layers'
)
_WITHOUT_NAME_SCOPE = cst.Arg(cst.Name("False"), cst.Name("auxiliary_name_scope"), equal=EQUAL)
_VARIABLES = (
    VARIABLE,
    "tensorflow.get_variable",
    "tensorflow.nn.rnn_cell.",
    "tensorflow.nn.dynamic_rnn",
    "tensorflow.nn.bidirectional_dynamic_rnn",
)
_ARGUMENTS = frozenset(
    {"self", "params", "model_dir", "config", "x", "y", "y_pred", "sample_weight", "data", "features_and_labels"}
)
"""Arguments of the methods of a class."""
_AROUND = (cst.For, cst.While, cst.With, cst.FunctionDef, cst.Lambda, cst.BaseComp)
_STATEMENTS = (cst.SimpleStatementLine, cst.If, cst.For, cst.While, cst.With, cst.Try, cst.FunctionDef)
_PREDICT = """
    def predict_step(self, data):
        FEATURES = data[0] if isinstance(data, tuple) else data
        RECEIVED
        y_pred = self(FEATURES, training=False)
        PREDICT_INPUTS
        PREDICTED
        return PREDICTIONS
"""


_PREDICT_ANEW = f"""
    {SHIM}
    def predict_step(self, data):
        FEATURES = data[0] if isinstance(data, tuple) else data
        RECEIVED
        with SAME_NAMES:
            PREDICT_PARAMS
            PREDICTED
            return PREDICTIONS
"""


def class_name(function: str) -> str:
    """Returns the name of a model function's class.

    Example:
        >>> class_name("cnn_model_fn"), class_name("my_model"), class_name("model_fn")
        ('CnnModel', 'MyModel', 'Model')
    """
    words = [word for word in function.removesuffix("_fn").strip("_").split("_") if word]
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name.endswith("Model") else f"{name}Model"


def write_class(script: Script, parts: ModelFunction) -> cst.ClassDef:
    """Returns the class of a model function.

    Args:
        script: Script around the function.
        parts: The function's parts.
    """
    return _Writer(script, parts).written()


class _Writer:
    def __init__(self, script: Script, parts: ModelFunction) -> None:
        self._script = script
        self._parts = parts
        flat = unwrapped(parts.network)
        blocks = [one.name for each in parts.network for one in nodes(each, cst.AsName) if isinstance(one, cst.AsName)]
        made = [one for one in flat if any(script.called(each).startswith(_VARIABLES) for each in nodes(one, cst.Call))]
        of_graph = {simple_name(one) for one in blocks}.union(*(reads_and_writes(one)[1] for one in made))
        _, own = tainted_by({parts.features, parts.labels, "mode", "training"} - {""} | of_graph, flat)
        self._constant = [one for one in flat if not reads_and_writes(one)[1] & own]
        calls = (each for one in parts.network for each in nodes(one, cst.Call))
        has_layers = any(layer_function(script.called(one)) for one in calls)
        self._lifting = Lifting(script, parts.network, own, has_layers and self._reads_names())

    def _whole_network(self, changed: Sequence[Statement]) -> list[Statement]:
        """Returns the statements that ``__init__`` has not taken, behind None for what they bind below a test alone, such as that of labels."""
        parts = self._parts
        bound = {*bound_in_any_case(changed), parts.features, parts.labels, *(one.name.value for one in parts.more)}
        first = [_line(f"{name} = None") for name in parts.outputs if name not in bound]
        return [*first, *_without_taken(changed, (self._lifting.taken | self._script.modules.keys()) - set(parts.outputs))]

    def written(self) -> cst.ClassDef:
        parts = self._parts
        loss, in_evaluation = (self._in_mode(mode, parts.loss, parts.loss_value) for mode in (Mode.TRAIN, Mode.EVAL))
        values = [self._value(parts.loss_value, mode) for mode in (Mode.TRAIN, Mode.EVAL)]
        depends = [*map(code, loss), values[0]] != [*map(code, in_evaluation), values[1]]
        other_loss = parts.evaluation or ((parts.loss, parts.loss_value) if depends else None)
        text = _CLASS
        if parts.predictions is not None:
            text += _PREDICT_ANEW if parts.predicts_anew else _PREDICT
        if parts.updates:
            text = (
                text.replace(
                    "        self.compile", "        self.made = {}  # variables of the updates\n        self.compile"
                ).replace("        self.params = params or {}", _UNTRACKED)
                + _UPDATES
            )
        kept = parts.kept_metrics
        text += (
            (_OTHER_LOSS if other_loss else "")
            + (_EVALUATION if other_loss or kept else "")
            + (_METRICS if kept else "")
            + (_INITIAL if parts.initial else "")
        )
        if kept:
            line = "self.eval_metrics = METRICS"
            text = text.replace(line, f"{line}\n        self.metrics_of_graph = {KEPT_METRICS}(self)")
        evaluation, evaluation_loss = other_loss or ((), parts.loss_value)
        evaluated = (
            "mean_loss.update_state(self.evaluation_loss(x, y, y_pred))"
            if other_loss
            else "compute_loss(x, y, y_pred, sample_weight)"
        )
        around = ""
        makes = self._makes_variables()
        if makes:
            text = text.replace("    def call", f"    {SHIM}\n    def call")
            around = _AGAIN
        elif self._reads_names():
            around = _PLAIN
        if parts.reads_labels:
            steps = ("train_step", "test_step")
            text += "".join(_PAIRED.replace("STEP", step) for step in steps if f"def {step}(" not in text)
            text = text.replace("self(FEATURES, training=False)", "self((FEATURES, None), training=False)")
        changed = self._changed(self._in_scopes(parts.network), self._lifting)
        if makes and parts.shimmed is None and self._lifting.keeps_names:
            around = _BOTH
        text = text.replace("        NETWORK\n", f"        {around}\n            NETWORK\n") if around else text
        predicted = self._predicted_anew() if parts.predicts_anew else self._in_mode(Mode.PREDICT, parts.predicted)
        network = self._whole_network(changed)
        made = [_line(f"self.{layer.attribute} = {layer.made}") for layer in self._lifting.layers]
        prepared = self._in_order({*parts.prepared, *needed_for(_read(made), self._constant)})
        computed = ", ".join(one.entry for one in parts.metrics if not one.update)
        before = self._hyperparameters([], *(parsed(one.condition) for one in parts.metrics if one.condition))
        more = sorted(parts.more, key=lambda one: one.default is not None)
        bound = (f"{one.name.value}={code(one.default)}" if one.default is not None else one.name.value for one in more)
        words = {
            "NAME": class_name(parts.node.name.value),
            "METRICS": "{" + ", ".join(one.entry for one in parts.metrics if one.update) + "}",
            "RESULTS": f"{_RESULTS} | {{{computed}}}" if computed else _RESULTS,
            "OPTIMIZER": parts.optimizer or _COUNTER,
            "GRAPH_OF_UPDATES": GRAPH,
            "SAME_NAMES": _SCOPE,
            "OUTPUTS": "{" + ", ".join(f'"{name}": {name}' for name in parts.outputs) + "}",
            "LOSS_VALUE": self._value(parts.loss_value, Mode.TRAIN),
            "EVALUATED": f"self.{evaluated}",
            "EVALUATION_LOSS": self._value(evaluation_loss, Mode.EVAL),
            "EVALUATION_RESULTS": "self.compute_metrics(x, y, y_pred, sample_weight)"
            + (" | self.metrics_of_graph(x, y, y_pred)" if kept else ""),
            "FEATURES": parts.features,
            "GIVEN": "features_and_labels" if parts.reads_labels else parts.features,
            "ALL_ARGUMENTS": ", ".join(["self", *bound, "params=None", "model_dir=None", "config=None"]),
            "KEPT_METRICS": code(kept) if kept else "",
            "PREDICTIONS": code(parts.predictions) if parts.predictions is not None else "",
        }
        blocks: dict[str, Sequence[Statement]] = {
            "MORE": [
                *(_line(f"self.{self._attribute(one)} = {one.name.value}") for one in parts.more),
                *([_line("self.reads_labels = True")] if parts.reads_labels and parts.initial else []),
            ],
            "DOCSTRING": [self._docstring()],
            "CONDITIONS": before,
            "PREPARED": [
                *([] if before else self._hyperparameters(prepared, *made, parsed(parts.optimizer or _COUNTER))),
                *self._in_mode(Mode.TRAIN, prepared),
            ],
            "LAYERS": made,
            "SIGNATURES": [_line(f"self.signature_names = {_signatures(parts.signatures)}")]
            if parts.signatures is not None
            else [],
            "PARAMS": [*self._params(network), *self._mode(network)],
            "PAIR": [_line(f"{parts.features}, {parts.labels} = features_and_labels")] if parts.reads_labels else [],
            "WITH_LABELS": [_line("x = x, y  # the network has the labels, too")] if parts.reads_labels else [],
            "NETWORK": network,
            "LOSS_INPUTS": self._inputs(parts.loss, [parts.loss_value]),
            "LOSS": loss,
            "INITIAL_VALUES": [*self._params(parts.initial), *self._in_mode(Mode.TRAIN, parts.initial)],
            "UPDATE_INPUTS": self._update_inputs(),
            "KEPT_UPDATES": self._changed(parts.updates, updates=True),
            "EVALUATION_INPUTS": self._inputs(evaluation, [evaluation_loss]) if other_loss else [],
            "EVALUATION": self._in_mode(Mode.EVAL, evaluation, evaluation_loss),
            "METRIC_INPUTS": self._inputs(*((), []) if kept else (parts.measured, self._updates())),
            "MEASURED": [] if kept else self._in_mode(Mode.EVAL, parts.measured),
            "KEPT_INPUTS": self._inputs(parts.measured, [kept]) if kept else [],
            "KEPT": self._in_mode(Mode.EVAL, parts.measured, kept) if kept else [],
            "UPDATES": self._updates(),
            "RECEIVED": [*self._params(parts.received), *self._changed(parts.received)],
            "PREDICT_INPUTS": self._inputs(
                parts.predicted, [parts.predictions] if parts.predictions is not None else [], own="features"
            ),
            "PREDICT_PARAMS": self._params(parts.predicted, *([parts.predictions] if parts.predictions is not None else [])),
            "PREDICTED": predicted,
        }
        for word, value in words.items():
            text = re.sub(rf"\b{word}\b", lambda _, value=value: value, text)  # type: ignore[misc]
        written = cst.parse_module(text.strip("\n") + "\n", cst.PartialParserConfig(default_indent="    ")).body[0]
        filled = written.visit(_Blocks(blocks))
        assert isinstance(filled, cst.ClassDef)
        self._check_names(filled)
        left = [one for one in nodes(filled, cst.Attribute) if code(one) in ("tf.layers", "tf.compat.v1.layers")]
        if left and parts.shimmed is None:
            raise UnconvertibleError(parts.node, "tf.layers", "a call of it is not made a layer of __init__; make it there")
        return filled

    def _predicted_anew(self) -> list[Statement]:
        """Returns the statements of a network of predictions, whose layers are found by their names."""
        inside = self._changed(self._in_scopes(self._parts.predicted), self._lifting, predicts=True)
        visited = [self._chosen(one, Mode.PREDICT) for one in inside]
        changed = [one for one in visited if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
        given = {"training": "False", "mode": f'"{MODES[Mode.PREDICT.value]}"', self._parts.labels: "None"}
        return [*(_line(f"{name} = {value}") for name, value in given.items() if name in _read(changed)), *changed]

    def _in_scopes(self, statements: Sequence[Statement]) -> list[Statement]:
        """Returns statements of the network with the scopes of variables around them."""
        network: list[Statement] = [*statements]
        for scope in reversed(self._parts.scopes):
            inside = {*nodes(scope, *_STATEMENTS)}
            first = next((place for place, one in enumerate(statements) if one in inside), None)
            if first is not None:
                network[first:] = [scope.with_changes(body=cst.IndentedBlock(network[first:]))]
        return network

    def _check_names(self, written: cst.ClassDef) -> None:
        """Raises if a method reads a name of the model function that has no value in it."""
        parts = self._parts
        every = (
            *parts.node.body.body,
            *parts.network,
            *parts.loss,
            *parts.measured,
            *parts.predicted,
            *parts.prepared,
            *parts.updates,
            *parts.initial,
            *(parts.evaluation[0] if parts.evaluation else ()),
        )
        bound = {name for statement in every for name in reads_and_writes(statement)[1]}
        bound |= {parameter.name.value for parameter in self._parts.node.params.params}
        outside = {name for statement in every for name in reads_and_writes(statement)[0]} - bound
        bound |= {"training"} - reads_and_writes(parts.node.body)[0]  # an argument of some methods
        given = {one.name.value for one in parts.more} & {*_ARGUMENTS, "training"}
        for name in sorted(outside & _ARGUMENTS | given):
            message = "it is a name of the script and an argument of the class; call it otherwise in the script"
            raise UnconvertibleError(parts.node, name, message)
        for method in (one for one in written.body.body if isinstance(one, cst.FunctionDef)):
            known = {parameter.name.value for parameter in method.params.params}
            read, assigned = reads_and_writes(method.body)
            missing = (read & bound) - assigned - known
            if missing:
                name = min(missing)
                message = (
                    f"{method.name.value} would read it, where it has no value; compute it there, or give it to the network"
                )
                raise UnconvertibleError(self._parts.node, name, message)

    def _docstring(self) -> Statement:
        first = self._parts.node.body.body[0]
        if isinstance(first, cst.SimpleStatementLine) and is_text(first):
            return first
        return _line(f'"""The model of ``{self._parts.node.name.value}``."""')

    def _in_order(self, statements: set[Statement]) -> list[Statement]:
        order = dict.fromkeys([*self._constant, *self._parts.prepared])
        texts = {
            code(statement): statement for statement in order if statement in statements
        }  # of one that is there twice, one
        return list(texts.values())

    def _makes_variables(self) -> bool:
        return self._parts.shimmed is not None or any(name.startswith(_VARIABLES) for name in self._parts.reached)

    def _reads_names(self) -> bool:
        """Returns True if the script looks at names, asks for the variables below a scope, or loads some by their names."""
        module = self._script.module
        reads = any(isinstance(one, cst.Attribute) and one.attr.value == "name" for one in nodes(module, cst.Attribute))
        asks = any(asked_scope(self._script, one) is not None for one in nodes(module, cst.Call))
        return reads or asks or bool(self._parts.initial)

    def _updates(self) -> list[Statement]:
        updates = (
            (one, f'self.eval_metrics["{one.name}"].update_state({one.update})') for one in self._parts.metrics if one.update
        )
        texts = (f"if {one.condition}:\n    {update}\n" if one.condition else update for one, update in updates)
        return [_statement(text) for text in texts]

    def _params(self, statements: Iterable[Statement], *values: cst.CSTNode) -> list[Statement]:
        """Returns the assignments of the arguments beside features, labels and mode that statements read."""
        read = _read([*statements, *values])
        more = [one for one in self._parts.more if one.name.value in read]
        lines = [_line(f"{one.name.value} = self.{self._attribute(one)}") for one in more]
        return [*self._hyperparameters(statements, *values), *lines]

    def _hyperparameters(self, statements: Iterable[Statement], *values: cst.CSTNode) -> list[Statement]:
        name = self._parts.params
        return [_line(f"{name} = self.params")] if name and name in _read([*statements, *values]) else []

    def _attribute(self, argument: cst.Param) -> str:
        """Returns the attribute for an argument that only the script knows; tf_keras.Model has some of the same names."""
        return f"of_script_{argument.name.value}"

    def _mode(self, network: Sequence[Statement]) -> list[Statement]:
        """Returns the assignment of the mode, if what the network gives it to does not tell evaluation from prediction, or need not."""
        inside = {
            node for one in self._script.module.body if makes(self._script, one, SPEC) for node in nodes(one, cst.Attribute)
        }
        others = {
            mode_name(self._script.name(node)) for node in nodes(self._script.module, cst.Attribute) if node not in inside
        }
        known = {"EVAL", "PREDICT"}.isdisjoint(others) and self._given_to_own(network)
        asked = "mode" in _read(network) and (known or self._parts.predicts_anew)
        return [_line('mode = "train" if training else "eval"')] if asked else []

    def _given_to_own(self, network: Sequence[Statement]) -> bool:
        """Returns True if only functions of the script take the mode."""
        own = {one.name.value for one in self._script.module.body if isinstance(one, cst.FunctionDef)}
        calls = [node for one in network for node in nodes(one, cst.Call) if isinstance(node, cst.Call)]
        own |= {simple_name(call.func) for call in calls if not self._script.called(call)} - {""}  # names of functions
        return all(
            simple_name(call.func) in own for call in calls if any(simple_name(one.value) == "mode" for one in call.args)
        )

    def _inputs(self, statements: Sequence[Statement], values: Sequence[cst.CSTNode], own: str = "") -> list[Statement]:
        """Returns the assignments that give a method the names that it reads."""
        parts, read = self._parts, _read([*statements, *values])
        given = {parts.features: "x[0]" if parts.reads_labels else "x"} if own != "features" else {}
        if own != "features" and parts.labels:
            given[parts.labels] = "y"
        given |= {name: f'y_pred["{name}"]' for name in parts.outputs}
        lines = [_line(f"{name} = {value}") for name, value in given.items() if name in read and name != value]
        return [*self._params(statements, *values), *lines]

    def _update_inputs(self) -> list[Statement]:
        """Returns the assignments that give the updates the names that they and the loss read."""
        parts = self._parts
        every = [*parts.loss, *parts.updates]
        in_mode = self._in_mode(Mode.TRAIN, every, parts.loss_value, updates=True)
        return [*self._inputs(every, [parts.loss_value]), *in_mode[: -len(every)]]

    def _in_mode(
        self, mode: Mode, statements: Iterable[Statement], *values: cst.BaseExpression, updates: bool = False
    ) -> list[Statement]:
        """Returns statements of a method that only one mode calls, behind the assignments that tell which.

        Args:
            mode: The mode.
            statements: Statements of the model function.
            values: Expressions that the method also has.
            updates: See ``_changed``.
        """
        visited = [self._chosen(one, mode) for one in self._changed(statements, updates=updates)]
        changed = [one for one in visited if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
        read = _read([*changed, *values])
        given = {"training": str(mode is Mode.TRAIN)} if not self._parts.has_training else {}
        given |= {"mode": f'"{MODES[mode.value]}"'}
        return [*(_line(f"{name} = {value}") for name, value in given.items() if name in read), *changed]

    def _chosen(self, node: cst.CSTNode, mode: Mode) -> cst.CSTNode:
        """Returns a node in which a choice by the mode is made; a variable of the script may have the name ``training``, too."""
        changed = node if self._parts.has_training else node.visit(_Chosen(mode is Mode.TRAIN))
        assert isinstance(changed, cst.CSTNode)
        return changed

    def _value(self, value: cst.BaseExpression, mode: Mode) -> str:
        """Returns the source of an expression of the model function in a method that only one mode calls."""
        changed = value.visit(_InMethod(self._script, self._parts, None, False))
        assert isinstance(changed, cst.CSTNode)
        return code(self._chosen(changed, mode))

    def _changed(
        self, statements: Iterable[Statement], lifting: Lifting | None = None, updates: bool = False, predicts: bool = False
    ) -> list[Statement]:
        """Returns statements in which the mode is the argument ``training``, and the model answers for all its layers.

        Args:
            statements: Statements of the model function.
            lifting: Layers that ``__init__`` makes.
            updates: True for updates that stay: the graph of a step has the collection of trained variables.
            predicts: True for a network of predictions alone.
        """
        visited = [
            statement.visit(_InMethod(self._script, self._parts, lifting, updates, predicts)) for statement in statements
        ]
        changed = [part for one in visited for part in (one if isinstance(one, cst.FlattenSentinel) else [one])]
        changed = [one for one in changed if not isinstance(one, cst.CSTNode) or code(one).strip() != "training = training"]
        return [one for one in changed if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]


class _InMethod(cst.CSTTransformer):
    """Changes the statements of a method of the model."""

    def __init__(
        self, script: Script, parts: ModelFunction, lifting: Lifting | None, updates: bool, predicts: bool = False
    ) -> None:
        super().__init__()
        self._script = script
        self._updates = updates
        self._predicts = predicts
        self._parts = parts
        self._tests = parts.tests
        self._lifting = lifting
        self._made: dict[cst.CSTNode, cst.BaseExpression] = {}
        self._around: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _AROUND):
            self._around.append(node)
        if self._lifting is not None:
            self._lifting.visit(node, of_mode=isinstance(node, cst.If) and None not in self._values(node.test))
        return self._replacement(node) is None

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if isinstance(original_node, _AROUND):
            self._around.pop()
        if self._lifting is not None:
            self._lifting.leave(original_node)
        if isinstance(original_node, cst.Call) and isinstance(updated_node, cst.Call):
            call = self._call(original_node, updated_node)
            if call is not None:
                return call
        if isinstance(original_node, cst.For) and isinstance(updated_node, cst.For) and self._parts.shimmed is None:
            return self._with_layers(original_node, updated_node)
        if isinstance(original_node, cst.With) and isinstance(updated_node, cst.With) and self._keeps_names:
            return self._without_name_scopes(original_node, updated_node)
        replacement = self._replacement(original_node)
        if replacement is None and isinstance(updated_node, cst.BooleanOperation):
            return _without_constant(updated_node)
        return updated_node if replacement is None else replacement

    def _call(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression | None:
        """Returns what a call becomes; None if its name alone says that."""
        if self._script.called(old) == INITIAL:
            return new.with_changes(func=cst.Name(LOADER), args=[cst.Arg(cst.Name("self")), *new.args])
        if layer_function(self._script.called(old)):
            return self._layer(old, new)
        in_network = (self._lifting is not None or self._parts.shimmed is not None) and not self._updates
        text = of_network(self._script, old, new) if in_network else None
        if text is not None:
            return parsed(text)
        if self._script.origin(old) in self._parts.untold:
            return not_training(new)
        if self._script.called(old) == "tensorflow.get_variable" and self._parts.shimmed is None:
            return self._variable(old)
        return new.with_changes(args=[*new.args, _WITHOUT_NAME_SCOPE]) if self._is_scope_of_layers(old) else None

    def _variable(self, old: cst.Call) -> cst.BaseExpression | None:
        """Returns the variable of a layer that a call asks for; None for other variables."""
        name = (arguments(old, ("name", "shape", "dtype", "initializer")) or {}).get("name")
        if self._lifting is None or name is None:
            return None
        try:
            scopes = [scope for node in self._around if isinstance(node, cst.With) for scope in self._scopes(node)]
            text = self._lifting.variable([one for one in scopes if self._script.called(one) != ASKED], name)
        except UnconvertibleError:
            text = ""
        if not text and "/" in code(name) and code(name).strip("\"'").rpartition("/")[2] in OF_LAYERS:
            message = "it may be a variable of a layer, which Keras makes; take it from the layer"
            raise UnconvertibleError(old, code(old.func), message)
        return parsed(text) if text else None

    @property
    def _keeps_names(self) -> bool:
        """True in a network whose layers have whole names of their own, and whose variables' names are read."""
        return self._lifting is not None and self._lifting.keeps_names and self._parts.shimmed is None

    def _without_name_scopes(self, old: cst.With, new: cst.With) -> cst.CSTNode:
        """Returns a block without scopes of names, which Keras would put before the names of variables."""
        named = [self._script.called(one.item) == "tensorflow.name_scope" and one.asname is None for one in old.items]
        kept = [item for item, is_named in zip(new.items, named, strict=True) if not is_named]
        if len(kept) == len(named):
            return new
        if kept:
            return new.with_changes(items=[*kept[:-1], kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
        first, *others = new.body.body
        assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        lines = [*new.leading_lines, *first.leading_lines]
        return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *others])  # type: ignore[return-value]

    def _is_scope_of_layers(self, node: cst.CSTNode) -> bool:
        asked = self._keeps_names and self._script.called(node) == "tensorflow.variable_scope"
        return asked and "auxiliary_name_scope" not in code(node)

    def _layer(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        if self._script.origin(old) in self._parts.frozen:
            new = frozen(old, new)
        if self._parts.shimmed is not None:
            return parsed(of_core(self._script, old, new)) if is_contrib(self._script.called(old)) else new
        name = self._script.called(old).replace("tensorflow", "tf", 1)
        if self._lifting is None and name == "tf.layers.flatten" and len(new.args) == 1:
            return parsed(f"tf_keras.layers.Flatten()({code(new.args[0].value)})")
        loops = tuple(node for node in self._around if isinstance(node, cst.For))
        blocks = [node for node in self._around if isinstance(node, cst.With)]
        trained = [one.value for one in old.args if one.keyword is not None and one.keyword.value == "trainable"]
        if any(self._tests.value(one, Mode.TRAIN) for one in trained):  # no other mode trains
            calls = (node for one in self._parts.loss for node in nodes(one, cst.Call))
            if any("self.trainable_variables" in of_whole_model(self._script, node) for node in calls):
                message = (
                    "its variables are not trainable in evaluations, and the loss asks for those that are; take trainable away"
                )
                raise UnconvertibleError(old, name, message)
            kept = [one for one in new.args if one.keyword is None or one.keyword.value != "trainable"]
            new = new.with_changes(args=kept)
        if self._lifting is None or len(loops) + len(blocks) < len(self._around):
            raise UnconvertibleError(old, name, "it is called in a function, or behind the labels; make its layer in __init__")
        place = Place(loops, tuple((node, scope) for node in blocks for scope in self._scopes(node)))
        return parsed(self._lifting.call(old, new, place))

    def _keras_object(self, made: cst.Call) -> str:
        """Returns the attribute that holds an object of Keras, which a model makes once."""
        new = cst.ensure_type(made.visit(_Freezing({code(one) for one in self._parts.frozen})), cst.Call)
        in_call = self._lifting is not None and self._parts.shimmed is not None
        if in_call and is_layer_of_keras(self._script.called(made)):
            return in_network(self._script, made, new)
        if self._lifting is None or any(not isinstance(node, cst.With) for node in self._around):
            name = code(made.func)
            raise UnconvertibleError(
                made, name, "it is made in a function or a loop, or behind the labels; make it in __init__"
            )
        return f"self.{self._lifting.made_once(new, made)}"

    def _scopes(self, node: cst.With) -> Iterator[cst.BaseExpression]:
        """Yields the names of the scopes of variables that a block opens."""
        for item in node.items:
            name = self._script.called(item.item)
            if name in ("tensorflow.name_scope", "tensorflow.control_dependencies"):
                continue
            given = arguments(item.item, ("name_or_scope", "default_name")) if isinstance(item.item, cst.Call) else None
            known = given is not None and given.keys() <= {"name_or_scope", "default_name", "reuse", "values"}
            first = given.get("name_or_scope") if given is not None and known else None
            default = given.get("default_name") if given is not None else None
            if first is not None and default is not None and self._lifting is not None:
                first = self._lifting.resolved(first, of_name=True)
                first = self._lifting.default_scope(node, default) if code(first) == "None" else first
            if name != "tensorflow.variable_scope" or first is None:
                raise UnconvertibleError(
                    item.item, "with", "layers are made in a block that is no plain variable scope; take it away"
                )
            yield first

    def _with_layers(self, old: cst.For, new: cst.For) -> cst.For:
        """Returns a loop that also takes a layer from each list that was made for it."""
        items = self._lifting.items.get(old) if self._lifting is not None else None
        if not items:
            return new
        header = cst.parse_statement(
            f"for {', '.join([target_of(old), *items.values()])} in zip({', '.join([code(old.iter), *items])}):\n    pass\n"
        )
        assert isinstance(header, cst.For)
        return new.with_changes(target=header.target, iter=header.iter)

    def _replacement(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        mode = mode_name(self._script.name(node)) if isinstance(node, cst.Attribute) else ""
        if mode:
            return parsed(f'"{MODES[mode]}"')
        whole = of_whole_model(self._script, node)
        if whole and not (self._updates and any(one in whole for one in ("self.trainable_variables", COUNTED))):
            return parsed(whole)
        if isinstance(node, cst.Call) and self._parts.makes_keras(node):
            if node not in self._made:
                self._made[node] = parsed(self._keras_object(node))
            return self._made[node]
        if not isinstance(node, cst.Comparison | cst.BooleanOperation | cst.UnaryOperation):
            return None
        values = self._values(node)
        if None in values:
            return None
        if self._predicts:
            return parsed(str(values[2]))
        if values[1] != values[2] and not self._parts.predicts_anew:
            raise UnconvertibleError(
                node, "the model function", "the network differs between evaluation and prediction; make it one"
            )
        if values[0] != values[1] and self._parts.has_training:
            raise UnconvertibleError(node, "training", "the variable of that name is not the mode; give it another name")
        texts = {(True, False): "training", (False, True): "not training", (True, True): "True", (False, False): "False"}
        return parsed(texts[bool(values[0]), bool(values[1])])

    def _values(self, test: cst.BaseExpression) -> list[bool | None]:
        """Returns what a test of the mode is in training, evaluation and prediction; None for other tests."""
        return [self._tests.value(test, mode) for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT)]


def _without_constant(test: cst.BooleanOperation) -> cst.BaseExpression:
    """Returns what is left of ``x and True`` and ``x or False``."""
    constant = "True" if isinstance(test.operator, cst.And) else "False"
    left, right = (code(one) == constant for one in (test.left, test.right))
    return test.left if right else test.right if left else test


def _without_taken(network: Sequence[Statement], taken: set[str]) -> list[Statement]:
    """Returns the statements without those that give a value to a name which layers were made from, and nothing reads any more."""
    unread = _Unread(taken - _read(network))
    changed = [statement.visit(unread) for statement in network]
    return [one for one in changed if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]


class _Unread(cst.CSTTransformer):
    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self._names = names

    def visit_If(self, node: cst.If) -> bool:
        return False  # its branches would be empty

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        goes = any(plain_value(updated_node, name) for name in self._names) and not _comments(updated_node)
        return cst.RemoveFromParent() if goes else updated_node


class _Freezing(cst.CSTTransformer):
    """Makes the averages of batch norms stay as they begin."""

    def __init__(self, norms: Set[str]) -> None:
        super().__init__()
        self._norms = norms

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        return frozen(original_node, updated_node) if code(original_node) in self._norms else updated_node


class _Chosen(cst.CSTTransformer):
    """Takes the value of a choice by the mode that a method has."""

    def __init__(self, training: bool) -> None:
        super().__init__()
        self._training = training

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return "training" not in reads_and_writes(node.body)[1].union(one.name.value for one in node.params.params)

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        if simple_name(updated_node.test) != "training":
            return updated_node
        return updated_node.body if self._training else updated_node.orelse


class _Blocks(cst.CSTTransformer):
    """Puts statements in the place of the words that stand for them."""

    def __init__(self, blocks: dict[str, Sequence[Statement]]) -> None:
        super().__init__()
        self._blocks = blocks

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[Statement] | cst.RemovalSentinel:
        only = updated_node.body[0]
        word = only.value.value if isinstance(only, cst.Expr) and isinstance(only.value, cst.Name) else ""
        if word not in self._blocks:
            return updated_node
        statements = self._blocks[word]
        return cst.FlattenSentinel(statements) if statements else cst.RemoveFromParent()

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        first, *others = updated_node.body or [_statement("pass")]
        assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        lines = itertools.dropwhile(lambda line: line.comment is None, first.leading_lines)
        return updated_node.with_changes(body=[first.with_changes(leading_lines=[*lines]), *others])


def _signatures(keys: Mapping[str, str]) -> Mapping[str, str] | list[str]:
    """Returns the names of signatures, with the keys of predictions if some answer with one of them alone."""
    return keys if any(keys.values()) else list(keys)


def _line(text: str) -> cst.SimpleStatementLine:
    statement = _statement(text)
    assert isinstance(statement, cst.SimpleStatementLine)
    return statement


def _statement(text: str) -> Statement:
    statement = cst.parse_statement(text, cst.PartialParserConfig(default_indent="    "))
    assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    return statement


def _read(values: Iterable[cst.CSTNode]) -> set[str]:
    return {name for value in values for name in reads_and_writes(value)[0]}


def lost_comments(old: Iterable[cst.CSTNode], new: cst.CSTNode) -> list[str]:
    """Returns the comments in some nodes that are not in another one, in the order of the source."""
    kept = Counter(_comments(new))
    lost = []
    for comment in (comment for node in old for comment in _comments(node)):
        kept[comment] -= 1
        if kept[comment] < 0:
            lost.append(comment)
    return lost


def _comments(node: cst.CSTNode) -> list[str]:
    return [comment.value for comment in nodes(node, cst.Comment) if isinstance(comment, cst.Comment)]
