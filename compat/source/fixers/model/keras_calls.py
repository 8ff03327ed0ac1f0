"""Layers and models of Keras that a model function makes or calls: whether they train, and whether the new model would find them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import Statement, assigned_value, reads_and_writes, unwrapped
from estimator_bridge.compat.source.fixers.model.layers import is_keras
from estimator_bridge.compat.source.fixers.model.updates import only_updates, updates_of_keras
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

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
_KERAS_NORM = "BatchNormalization"
_WITHOUT_VARIABLES = re.compile(
    r"\.(Flatten|Activation|(Leaky)?ReLU|Softmax|Reshape|Permute|Concatenate|Add|Multiply|Average|Maximum|Dot|Subtract|Lambda|Masking|RepeatVector"
    r"|Gaussian\w+|\w*Dropout\w*|\w*Pooling\w*|\w*Padding\w*|UpSampling\w*|Cropping\w*)$"
)
"""Layers of Keras that keep nothing, so that each call may make them."""
_TOLD_BY_PLACE = 2  # arguments of a call of Keras: the inputs, and if it trains


class KerasCalls:
    """Objects of Keras in one model function.

    Args:
        script: Script around the function.
        function: The model function.
        own: Functions and classes of the script, by name.
        reached: Function that returns the imported names in nodes and in what they read of the script, and the names of that.
        shim: True if layers are made each time the network is called.

    Attributes:
        frozen: Calls that make batch norm whose moving averages TensorFlow 1 does not update; known behind ``untold``.
    """

    def __init__(
        self,
        script: Script,
        function: cst.FunctionDef,
        own: Mapping[str, cst.FunctionDef | cst.ClassDef],
        reached: Callable[[Sequence[cst.CSTNode]], tuple[set[str], frozenset[str]]],
        shim: bool,
    ) -> None:
        self._script, self._function, self._own, self._reached, self._shim = script, function, own, reached, shim
        self._body: Sequence[Statement] = ()
        self.frozen: set[cst.CSTNode] = set()

    def makes(self, node: cst.Call) -> bool:
        """Returns True for a call that makes an object of Keras: of Keras itself, or of a function or class of the script."""
        own = self._own.get(simple_name(node.func))
        if self._shim and own is not None and self.calls_layers(simple_name(node.func)):
            return False
        return is_keras(self._script.called(node)) or (own is not None and bool(self._names(own)))

    def _names(self, node: cst.CSTNode) -> set[str]:
        """Returns the names of Keras that make layers, in a node and in the functions and classes of the script that it reads."""
        return {name.rpartition(".")[2] for name in self._reached([node])[0] if is_keras(name)}

    def untold(self, body: Sequence[Statement]) -> frozenset[cst.CSTNode]:
        """Returns the calls that do not say if they train, of what is able to.

        Args:
            body: Statements of the model function, with those of the functions that it calls.

        Raises:
            UnconvertibleError: Layers of Keras would train otherwise, or the new model would not find them.
        """
        self._body = body
        made = {
            name: value
            for one in self._body
            for value in [assigned_value(one)]
            if isinstance(value, cst.Call)
            for name in reads_and_writes(one)[1]
        }
        calls = [node for one in self._body for node in nodes(one, cst.Call) if isinstance(node, cst.Call)]
        called = [(one, one.func if isinstance(one.func, cst.Call) else made.get(simple_name(one.func))) for one in calls]
        objects = [(one, what) for one, what in called if what is not None and self.makes(what)]
        self._check(self._body, [what for _, what in objects])
        known = {part for _, what in objects for part in nodes(what, cst.Call)}
        for one in calls:
            if self._is_norm(one.func) and one not in known:
                message = "it is not known how it is called; give it a name of its own"
                raise UnconvertibleError(one, code(one.func), message)
        told = {code(one.func) for one, _ in objects if _says_training(one)}
        symbolic = any(re.search(r"\bkeras\.(.+\.)?Input$", self._script.called(one)) for one in calls)
        untold = set[cst.CSTNode]()
        for one, what in objects:
            names = sorted(self._names(what))
            averages = [name for name in names if name.startswith(_WITH_AVERAGES)]
            may_train = _says_training(one) or len(one.args) > 1 or self._trains_inside(what)
            if averages and may_train and not self._runs_updates(one):
                norms = self._norms(what)
                if set(averages) - ({_KERAS_NORM} if norms else set()):
                    message = "TensorFlow 1 updates its moving averages only where the script asks for that; decide, and write the class"
                    raise UnconvertibleError(one, averages[0], message)
                self.frozen |= norms
            has_modes = bool(averages) or any(re.search("Dropout|Noise", name) for name in names)
            if not _says_training(one) and len(one.args) < _TOLD_BY_PLACE and (has_modes or code(one.func) in told):
                untold.add(one)
            if has_modes and one in untold and symbolic:
                message = "the call of a whole network of Keras says if it trains; make the network in a function of its own"
                raise UnconvertibleError(one, code(one.func), message)
        return frozenset(untold)

    def _check(self, body: Sequence[Statement], objects: Sequence[cst.Call]) -> None:
        """Raises for objects of the script that keep or make layers of Keras, which would not be part of the model."""
        names, own = self._reached(body)
        if any(name.endswith(".learning_phase_scope") for name in names):
            message = "its block tells layers if they train; give each call the argument training"
            raise UnconvertibleError(self._function, "learning_phase_scope", message)
        classes = [one for name in own if isinstance(one := self._own.get(name), cst.ClassDef)]
        for one in classes:
            if not self._is_of_keras(one) and any(map(self._names, _methods(one, ("__init__", "build")))):
                message = "it keeps layers of Keras, which finds them in layers, models and tf.Modules alone; derive its class from tf.Module"
                raise UnconvertibleError(self._function, one.name.value, message)
        for what in () if self._shim else objects:
            owner = self._own.get(simple_name(what.func))
            called = _called_methods(owner) if isinstance(owner, cst.ClassDef) else ()
            made = [self._script.called(one) for each in called for one in nodes(each, cst.Call)]
            later = any(is_keras(name) and not _WITHOUT_VARIABLES.search(name) for name in made)
            if later:
                message = "it makes layers of Keras each time it is called; make them in its __init__"
                raise UnconvertibleError(what, code(what.func), message)

    def _is_of_keras(self, owner: cst.ClassDef) -> bool:
        """Returns True for a class of layers or models of Keras, or of modules, also by way of other classes of the script."""
        for base in owner.bases:
            other = self._own.get(simple_name(base.value))
            name = self._script.name(base.value)
            if is_keras(name) or name.endswith((".Module", ".Layer", ".Model")):
                return True
            if isinstance(other, cst.ClassDef) and other is not owner and self._is_of_keras(other):
                return True
        return False

    def _trains_inside(self, what: cst.CSTNode) -> bool:
        """Returns True if code of the script that an object of Keras is made from tells a layer to train."""
        own = [self._own[name] for name in self._reached([what])[1] if name in self._own]
        calls = [one for each in own for one in nodes(each, cst.Call) if isinstance(one, cst.Call)]
        return any(_says_training(one) for one in calls)

    def _runs_updates(self, call: cst.Call) -> bool:
        """Returns True if the training runs the updates of an object of Keras, which ``get_updates_for`` tells for its only input."""
        calls = [one for each in self._body for one in nodes(each, cst.Call) if isinstance(one, cst.Call)]
        asked = [one for one in calls if updates_of_keras(one) and code(one.func) == f"{code(call.func)}.get_updates_for"]
        inputs = {code(one.args[0].value) for one in calls if code(one.func) == code(call.func) and one.args}
        flat = unwrapped(self._body)
        lines = [one for one in flat if only_updates(assigned_value(one)) and {*nodes(one, cst.Call)} & {*asked}]
        ops = [
            one.value
            for one in nodes(self._function, cst.Arg)
            if isinstance(one, cst.Arg) and one.keyword and one.keyword.value == "train_op"
        ]
        trained = {simple_name(one) for one in ops} - {""}
        waits = [
            one
            for each in self._body
            for one in nodes(each, cst.With)
            if isinstance(one, cst.With) and reads_and_writes(one)[1] & trained
        ]
        blocks = [item.item for one in waits for item in one.items]
        values = [*ops, *(assigned_value(one) for one in flat if reads_and_writes(one)[1] & trained)]
        run = [one for one in values if self._script.called(one) == "tensorflow.group"]
        run += [one for one in blocks if self._script.called(one) == "tensorflow.control_dependencies"]
        read = {name for one in run if one is not None for name in reads_and_writes(one)[0]}
        inside = {one for each in run if each is not None for one in nodes(each, cst.Call)}
        runs = any(read & reads_and_writes(one)[1] for one in lines) or not inside.isdisjoint(asked)
        return runs and len(inputs) == 1 and {code(one.args[0].value) for one in asked} == inputs

    def _norms(self, made: cst.Call) -> set[cst.CSTNode]:
        """Returns the calls that make batch norm of Keras, whose averages TensorFlow 1 does not update: Keras adds nothing to UPDATE_OPS.

        None if one is not called by its name, or the script asks for updates of Keras.
        """
        every = [made, *(self._own[name] for name in self._reached([made])[1])]
        named = [one for each in every for one in nodes(each, cst.Attribute, cst.Name) if self._is_norm(one)]
        calls = [one for each in every for one in nodes(each, cst.Call) if isinstance(one, cst.Call)]
        found = [one for one in calls if self._is_norm(one.func)]
        asks = any(
            one.attr.value in ("updates", "get_updates_for")
            for one in nodes(self._script.module, cst.Attribute)
            if isinstance(one, cst.Attribute)
        )
        return set() if asks or len(found) < len(named) else {self._script.origin(one) for one in found}

    def _is_norm(self, node: cst.CSTNode) -> bool:
        name = self._script.name(node)
        return is_keras(name) and name.endswith(f".{_KERAS_NORM}")

    def calls_layers(self, name: str) -> bool:
        """Returns True for a function that calls layers of Keras on tensors, and does not make a model of them."""
        function = self._own[name]
        made = [one.func for one in nodes(function, cst.Call) if isinstance(one, cst.Call) and isinstance(one.func, cst.Call)]
        calls = isinstance(function, cst.FunctionDef) and any(is_keras(self._script.called(one)) for one in made)
        return calls and not any(re.search("Model|Sequential|Input|applications", one) for one in self._reached_names(function))

    def _reached_names(self, node: cst.CSTNode) -> set[str]:
        """Returns the names of Keras in a node and in the functions and classes of the script that it reads."""
        return {name for name in self._reached([node])[0] if re.match(r"(tensorflow\.)?(python\.)?keras\.", name)}


def _methods(owner: cst.ClassDef, names: Container[str]) -> list[cst.FunctionDef]:
    """Returns the methods of a class that have one of some names."""
    return [one for one in owner.body.body if isinstance(one, cst.FunctionDef) and one.name.value in names]


def _called_methods(owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """Returns the methods of a class that run when its object is called."""
    pending, found = ["call", "__call__"], list[cst.FunctionDef]()
    while pending:
        for method in _methods(owner, {pending.pop()}):
            if method not in found:
                found.append(method)
                pending += [one.attr.value for one in nodes(method, cst.Attribute) if isinstance(one, cst.Attribute)]
    return found


def _says_training(call: cst.Call) -> bool:
    return any(argument.keyword is not None and argument.keyword.value == "training" for argument in call.args)
