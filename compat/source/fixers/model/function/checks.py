"""Checks for statements of a model function that a class of Keras cannot contain."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import (
    Mode,
    ModeTests,
    Statement,
    assigned,
    assigned_target,
    assigned_value,
    reads_and_writes,
    rebound,
    root_of,
    tainted_by,
    unwrapped,
)
from estimator_bridge.compat.source.fixers.model.function.definitions import Definitions, around
from estimator_bridge.compat.source.fixers.model.function.whole_model import (
    COUNTED,
    OF_WHOLE_MODEL,
    asked_scope,
    of_whole_model,
)
from estimator_bridge.compat.source.fixers.model.layers import VARIABLE, layer_function
from estimator_bridge.compat.source.fixers.model.updates import NORMS, STEPS, UPDATE_OPS, waits_for_checks
from estimator_bridge.compat.source.fixers.script import LOGGERS, TPU, Script, code, nodes, simple_name
from estimator_bridge.compat.source.fixers.surface import is_respelled

_REFUSED = {
    **dict.fromkeys(STEPS, "the network or its loss depends on the step, which nothing here counts; count steps in the model"),
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
OF_GRAPHS = frozenset(f"tensorflow.{kind}_variables" for kind in ("all", "global", "local", "model", "moving_average"))
"""Functions whose answer is empty outside of a graph."""
_DEFAULTS_OF_SCOPES = frozenset({"set_custom_getter", "set_initializer", "set_partitioner", "set_regularizer"})
"""Methods of a scope that change how its variables are made."""
_MODULES = ("tensorflow.contrib.layers", "tensorflow.contrib.slim")
"""Modules of contrib to which a model function may give a name."""
UNKNOWN = "what it calls is only known when the script runs, and may make layers; call a function of the script by its name"
_OUTSIDE = {"tensorflow", "keras", "tf_keras", "numpy", *sys.stdlib_module_names}
"""Packages whose objects are known, or make no layers."""
_NEVER_UPDATED = "its moving averages are never updated, for UPDATE_OPS is not run; decide if that is meant"
_ASSIGNMENT = re.compile(r"assign(_\w+)?|scatter_(nd_)?(add|div|max|min|mul|sub|update)")
"""Functions and methods that change a variable."""
_COUNTING = ("minimize", "apply_gradients", "optimize_loss", "create_train_op", "assign_add", "get_train_op")
"""Functions and methods that count a step, if they are given the count."""
_OF_DICTS = frozenset(
    {"get", "items", "keys", "values", "copy", "pop", "setdefault", "update", "parse", "to_json", "add_hparam", "set_hparam"}
)
"""Methods of hyperparameters that make no layers."""
_OF_TEXTS = frozenset({"endswith", "format", "join", "lower", "replace", "split", "startswith", "strip", "upper"})
"""Methods of a hyperparameter that is a text, such as ``params.units.split(",")``."""


class Checks:
    """Looks at the statements of a model function.

    Args:
        script: Script around the function.
        function: The function.
        found: Functions and classes that it finds by name.
        body: Its statements.
        tests: Its tests of the mode.
        batch: Names of its arguments for features and labels.
        given: Names of its other arguments.
        shim: Layers are made each time the network is called.
        frozen: Calls of batch norm whose averages never change; more are added to them.
    """

    def __init__(
        self, script: Script, function: cst.FunctionDef, found: Definitions, body: Sequence[Statement], tests: ModeTests,
        batch: Set[str], given: Set[str], shim: bool, frozen: set[cst.CSTNode]
    ) -> None:  # fmt: skip
        self._script, self._function, self._found, self._body, self._tests = script, function, found, body, tests
        self._batch, self._given, self._shim, self.frozen = batch, given, shim, frozen
        self.always: set[cst.CSTNode] = set()
        """Calls of batch norm that train in evaluations, too."""

    def check(self, statement: Statement, updates: bool = False, network: bool = False, late: bool = False) -> None:
        """Raises for what a class cannot contain.

        Args:
            statement: Statement of the model function.
            updates: True for one of updates that stay as they are.
            network: True for one whose variables the model has.
            late: True for one behind the labels.
        """
        self._check_assignments(() if updates else [statement])
        self._check_imported(statement, updates, network)
        calls = [node for node in nodes(statement, cst.Call) if isinstance(node, cst.Call)]
        for call in calls:
            name = self._script.called(call)
            asks_all = of_whole_model(self._script, call) in OF_WHOLE_MODEL.values()
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
            if self.is_of_unknown(call) and not (late and self.is_loss(call)):
                raise UnconvertibleError(statement, code(call.func), UNKNOWN)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _DEFAULTS_OF_SCOPES:
                message = "layers of Keras take nothing from scopes; give it to each layer"
                raise UnconvertibleError(statement, code(call.func), message)
        for name in reads_and_writes(statement)[0]:
            if self._found.makes_layers(name):
                raise UnconvertibleError(
                    statement, name, "it makes layers; write it as a layer of tf_keras that the model makes in __init__"
                )

    def _check_assignments(self, statements: Sequence[Statement]) -> None:
        """Raises for an assignment to a variable that nothing needs: TensorFlow 1 does not run it, and a step of Keras does."""
        own = [self._found.own[name] for name in self._found.reached(statements)[1]]
        for one in (each for part in (*statements, *own) for each in nodes(part, cst.Expr, cst.Assign)):
            value = one.value if isinstance(one, cst.Expr | cst.Assign) else None
            bound = {simple_name(target.target) for target in one.targets} if isinstance(one, cst.Assign) else set()
            method = value.func.attr.value if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) else ""
            is_read = bound and (bound == {""} or bound & self._read)
            if isinstance(value, cst.Call) and _ASSIGNMENT.fullmatch(method) and not is_read:
                message = "TensorFlow 1 runs it only if something else needs it, and a step of Keras always; take it away, or give its value to what follows"
                raise UnconvertibleError(one, code(value.func), message)

    @functools.cached_property
    def _read(self) -> set[str]:
        """Names that the model function and its own functions read."""
        return {name for one in (*self._body, *self._found.own.values()) for name in reads_and_writes(one)[0]}

    def check_asked(self, statement: Statement) -> None:
        """Raises for a function that asks for what all layers made: outside of a graph, there is none that it finds."""
        asking = [name for name in self._found.reached([statement])[1] if self._found.asks_whole_model(self._found.own[name])]
        if asking:
            message = (
                "it asks for what all layers made, which only the model knows; ask in the model function, and give it that"
            )
            raise UnconvertibleError(statement, min(asking), message)

    def is_of_unknown(self, call: cst.Call) -> bool:
        """Returns True for a call of a function that is looked up when the script runs: in a dict, or in what the caller gives."""
        owner, method = call.func, ""
        while isinstance(owner, cst.Attribute):
            method = owner.attr.value
            owner = owner.value
        given = {*self._given}
        read = {name for one in call.args for name in reads_and_writes(one.value)[0]}
        if simple_name(owner) in self._of_builders and method not in _OF_DICTS and read & self._of_batch:
            given |= self._of_builders
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _OF_TEXTS:
            return False
        is_looked_up = isinstance(call.func, cst.Subscript) or simple_name(call.func) in self._looked_up
        return is_looked_up or (simple_name(owner) in given and method not in _OF_DICTS)

    def is_loss(self, call: cst.Call) -> bool:
        """Returns True for a call that gets the labels without the features: behind the labels, it makes no layers."""
        read = {name for one in call.args for name in reads_and_writes(one.value)[0]}
        return bool(read & self._of_labels) and not read & self._of_features

    @functools.cached_property
    def _looked_up(self) -> set[str]:
        """Names that are given what the caller gives below a key: ``extract = params["extractor"]``."""
        bindings = Counter(name for statement in self._body for name in rebound(statement))
        values = {simple_name(assigned_target(one)): assigned_value(one) for one in unwrapped(self._body)}
        return {
            name
            for name, value in values.items()
            if isinstance(value, cst.Subscript | cst.Attribute) and root_of(value) in self._given and bindings[name] == 1
        }

    @functools.cached_property
    def _of_builders(self) -> set[str]:
        """Arguments of the functions around the model function."""
        outer = around(self._script, self._function)
        return {parameter.name.value for one in outer for parameter in one.params.params} - self._tests.bound

    @functools.cached_property
    def _of_batch(self) -> set[str]:
        """Names whose values depend on the batch."""
        return tainted_by(self._batch, unwrapped(self._body))[1]

    @functools.cached_property
    def _of_labels(self) -> set[str]:
        """Names whose values depend on the labels."""
        return tainted_by(self._tests.of_labels, unwrapped(self._body))[1]

    @functools.cached_property
    def _of_features(self) -> set[str]:
        """Names of the features, and of what is made of them without layers."""
        plain = [one for one in unwrapped(self._body) if not self._found.makes(one)]
        return tainted_by(self._batch - self._tests.of_labels, plain)[1]

    def _check_imported(self, statement: Statement, updates: bool, network: bool) -> None:
        """Raises for a name of TensorFlow that a class cannot contain."""
        calls = [node for node in nodes(statement, cst.Call) if isinstance(node, cst.Call)]
        respelled = {self._script.called(call) for call in calls if is_respelled(self._script.called(call), call)}
        asked = {call.func: of_whole_model(self._script, call) for call in calls}
        replaced = {call.func for call in calls if self._is_in_graph(call, updates)}
        replaced |= {function for function, whole in asked.items() if whole and (whole != COUNTED or self._counts_steps)}
        replaced |= {call.func for call in calls if network and self._script.called(call) == VARIABLE}
        self.frozen.update(self._script.origin(call) for call in calls if self._is_frozen(call))
        self.always.update(self._script.origin(call) for call in calls if self._always_trains(call))
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
            if name in NORMS and node not in {call.func for call in calls} and not self._found.updates_run(code(statement)):
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), _NEVER_UPDATED)

    @functools.cached_property
    def _counts_steps(self) -> bool:
        """Returns True if an optimizer or an update gets the count of steps: else TensorFlow 1 counts none, and Keras does."""
        calls = [one for one in nodes(self._function, cst.Call) if isinstance(one, cst.Call)]
        named = {
            simple_name(assigned_target(one))
            for one in unwrapped(self._body)
            if self._script.called(assigned_value(one)) in STEPS
        }
        return any(
            self._script.called(each.value) in STEPS or simple_name(each.value) in named
            for call in calls
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _COUNTING
            for each in call.args
        )

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
        return name in NORMS and trains and not self._found.updates_run(code(call))

    def _always_trains(self, call: cst.Call) -> bool:
        """Returns True for a call of batch norm that trains in evaluations, too, as far as the mode tells, and whose averages are updated."""
        name = self._script.called(call)
        said = [one.value for one in call.args if one.keyword is not None and one.keyword.value in ("training", "is_training")]
        trains = self._tests.value(said[0], Mode.EVAL) is not False and code(said[0]) != "False" if said else "contrib" in name
        return name in NORMS and trains and not self._is_frozen(call)

    def _check_reached(self, statement: Statement, updates: bool) -> None:
        """Raises for what a function of the script does that cannot be done in each step."""
        own = [self._found.own[name] for name in self._found.reached([statement])[1]]
        calls = [node for one in own for node in nodes(one, cst.Call) if isinstance(node, cst.Call)]
        known = {call.func for call in calls if self._is_in_graph(call, updates)}
        texts = "".join(map(code, own))
        for one, node in ((each, part) for each in (statement, *own) for part in nodes(each, cst.Attribute, cst.Name)):
            name = self._script.name(node)
            if one is not statement and name in _REFUSED and node not in known:
                raise UnconvertibleError(statement, name.replace("tensorflow", "tf", 1), _REFUSED[name])
            if name in NORMS and not updates and not self._found.updates_run(code(statement) + texts):
                if node not in {call.func for call in calls} and one is not statement:
                    raise UnconvertibleError(statement, "tf.layers.batch_normalization", _NEVER_UPDATED)
                self.frozen |= {self._script.origin(call) for call in calls if self._is_frozen(call)}

    def returned_by_others(self, statements: Sequence[Statement]) -> Iterator[cst.Call]:
        """Yields the calls of what a function of another module returned."""
        values = {name: assigned(name, statements) for one in statements for name in reads_and_writes(one)[1]}
        of_module = [one for one in self._script.module.body if isinstance(one, cst.SimpleStatementLine)]
        values = {name: assigned(name, of_module) for one in statements for name in reads_and_writes(one)[0]} | values
        makers = {name: self._script.called(value) for name, value in values.items() if isinstance(value, cst.Call)}
        given = {name for name, maker in makers.items() if maker and maker.partition(".")[0] not in _OUTSIDE}
        given |= {
            name for name, value in values.items() if isinstance(value, cst.Call) and simple_name(value.func) == "getattr"
        }
        for call in (each for one in statements for each in nodes(one, cst.Call)):
            if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value in given:
                yield call
