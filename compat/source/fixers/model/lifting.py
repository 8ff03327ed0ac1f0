"""Makes the layers of a network once, in ``__init__``: two calls share a layer where TensorFlow 1 gives their variables one name."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import Statement, changed_in_place, reads_and_writes
from estimator_bridge.compat.source.fixers.model.layers import (
    DEFAULTS,
    FUSED_NORMS,
    TRAINING,
    asked_name,
    default_name,
    in_snake_case,
    translated,
)
from estimator_bridge.compat.source.fixers.script import (
    Script,
    arguments,
    children,
    code,
    nodes,
    parsed,
    simple_name,
    with_values,
)

_ELSEWHERE = "make the layer in __init__"
_PERHAPS = (cst.If, cst.While, cst.Try)
"""Blocks whose statements need not run."""
_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_NOT_ONCE = (cst.For, cst.While, cst.Try, cst.Lambda, cst.IfExp, *_COMPREHENSIONS)
"""Parts of a network that may run several times, or not at all."""
_ITERATORS = ("zip", "map", "filter", "enumerate", "reversed", "iter")
"""Functions whose results can be looked through only once."""
_WITHOUT_VARIABLES = ("dropout", "flatten", "max_pooling1d", "max_pooling2d", "average_pooling1d", "average_pooling2d")
"""Layers whose names nothing asks for."""
_NUMBERS = ("int", "float", "len", "max", "min", "str")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer of a model.

    Attributes:
        attribute: Name of the model's attribute.
        made: Expression that makes the layer, or a list of layers.
    """

    attribute: str
    made: str


@dataclasses.dataclass(frozen=True)
class Place:
    """Loops and scopes around a call.

    Attributes:
        loops: Loops, the outermost first.
        scopes: Scopes of variables with the expressions of their names, the outermost first.
    """

    loops: tuple[cst.For, ...]
    scopes: tuple[tuple[cst.With, cst.BaseExpression], ...]


class _Turns(NamedTuple):
    """Layers of one kind, without names, that a loop makes in one scope: in each turn equally many."""

    loop: cst.For
    each: int
    length: str
    branches: dict[cst.If, bool]


@dataclasses.dataclass(frozen=True)
class _Named:
    layer: Layer
    branches: dict[cst.If, bool]  # tests around it: True in the other branch


class Lifting:
    """Makes the layers of a network; one object for each model.

    Args:
        script: Script around the network.
        network: Statements of the network.
        own: Names that are bound in the network and depend on its inputs: no layer can be made from their values.
        keeps_names: True if the names of variables matter.

    Attributes:
        layers: The layers, in the order in which they are called.
        items: For each loop the lists of layers that it takes items from, with the names of the items.
        taken: Names whose values layers were made from.
        keeps_names: True if the names of variables matter.
    """

    def __init__(self, script: Script, network: Sequence[Statement], own: set[str], keeps_names: bool) -> None:
        lines = [line for statement in network for line in nodes(statement, cst.SimpleStatementLine)]
        self._script = script
        self._own = own
        self.keeps_names = keeps_names
        self._bound = {name for statement in network for name in reads_and_writes(statement)[1]}
        taken = {simple_name(one) for part in (*network, script.module) for one in nodes(part, cst.Name)}
        numbered = (f"turn_{number}" for number in itertools.count(2))
        self._counter = next(one for one in itertools.chain(["turn"], numbered) if one not in taken)  # of the turns of a loop
        self._times = Counter(name for line in lines for name in reads_and_writes(line)[1])
        self._counts: Counter[tuple[cst.With | None, str]] = Counter()
        self._looped: set[tuple[str, cst.For]] = set()
        self._numbered: dict[tuple[cst.With | None, str], list[_Turns]] = {}  # loops that made layers in a scope
        self._named: dict[tuple[str, str], _Named] = {}
        self._branches: dict[cst.If, bool] = {}
        self._before: dict[cst.CSTNode, tuple[cst.If, Counter[tuple[cst.With | None, str]]]] = {}  # of the other branch
        self._after: dict[cst.CSTNode, Counter[tuple[cst.With | None, str]]] = {}  # the first branch of a test
        self._readers: dict[str, cst.Call] = {}  # names of which layers were made
        self._given: dict[str, cst.BaseExpression] = {}  # last values of names, of those that depend on nothing in the network
        self._constants = _constants(script)
        assigns = [one for part in (script.module, *lines) for one in nodes(part, cst.Assign) if isinstance(one, cst.Assign)]
        self._iterators = {
            simple_name(target.target) for one in assigns if _is_iterator(one.value) for target in one.targets
        } - {""}
        self._entered: dict[str, set[cst.With]] = {}  # blocks that open a scope, by the scope's name
        self._counting = set[str]()  # scopes with names that loops count
        self._opened: list[tuple[set[str], set[str]]] = [
            (set(), set())
        ]  # names in each scope: those that are written, and counted ones
        self._scopes: dict[cst.CSTNode, int] = {}  # number of scopes that a block opens
        self._unsure: set[cst.CSTNode] = set()  # blocks whose scopes may get a number behind their names
        self._changed = changed_in_place(network, [one for one in script.module.body if isinstance(one, cst.FunctionDef)])
        self._lost: set[str] = set()  # targets of loops that have other values now, which are not known
        self._old: dict[cst.If, dict[str, cst.BaseExpression | None]] = {}  # values before a test of the names that it binds
        self._inside = 0
        self._turns: list[frozenset[str]] = []  # targets of the loops around
        self.layers: list[Layer] = []
        self._objects: dict[cst.CSTNode, str] = {}
        self.items: dict[cst.For, dict[str, str]] = {}
        self.taken: set[str] = set()

    def visit(self, node: cst.CSTNode, of_mode: bool) -> None:
        """Notes where a test begins, and where its other branch does: each branch counts layers from the same numbers.

        Args:
            node: Part of the network that is visited.
            of_mode: True for a test of the mode. Its branches share variables; those of other tests are never in one graph.
        """
        if node in self._before:
            test, before = self._before.pop(node)
            self._forget(test)
            self._after[test], self._counts = self._counts, before
            if test in self._branches:
                self._branches[test] = True
        if isinstance(node, cst.With):
            self._open(node)
        if isinstance(node, cst.If):
            self._old[node] = {name: self._given.get(name) for name in reads_and_writes(node)[1]}
        if isinstance(node, _PERHAPS):
            self._inside += not isinstance(node, cst.If)
            self._forget(node)
        if isinstance(node, cst.For):
            self._forget(node)
            self._turns.append(reads_and_writes(node.target)[0])
        if isinstance(node, cst.If):
            if not of_mode:
                self._branches[node] = False
            if node.orelse is not None:
                self._before[node.orelse] = node, self._counts.copy()

    def leave(self, node: cst.CSTNode) -> None:
        """Notes where a part of the network ends.

        Raises:
            UnconvertibleError: A statement gives a name another value, and a layer was made from the one before: ``__init__`` makes all layers from the last.
        """
        self._close(node)
        if isinstance(node, cst.If):
            self._branches.pop(node, None)
            self._counts |= self._after.pop(node, Counter())
        if isinstance(node, _PERHAPS):
            self._inside -= not isinstance(node, cst.If)
            self._forget(node)
        if isinstance(node, cst.If):
            for name, before in self._old.pop(node).items():
                value = self._chosen(node, name, before) if not self._inside and name not in self._changed else None
                if value is None:
                    self._lose(name)
                else:
                    self._given[name] = value
        if isinstance(node, cst.For):
            self._forget(node)
            self._lost -= self._turns.pop()
        if isinstance(node, cst.SimpleStatementLine):
            self._assign(node)

    def _chosen(self, test: cst.If, name: str, before: cst.BaseExpression | None) -> cst.BaseExpression | None:
        """Returns the value that a test gives to a name, as an expression; None if it is not of plain values."""
        condition = _folded(self.resolved(test.test, of_name=True))
        values = [before, before]
        for place, block in enumerate((test.body, test.orelse.body if isinstance(test.orelse, cst.Else) else None)):
            lines = [one for one in block.body if name in reads_and_writes(one)[1]] if block is not None else []
            if len(lines) > 1 or any(not isinstance(one, cst.SimpleStatementLine) for one in lines):
                return None
            if lines:
                value = plain_value(cst.ensure_type(lines[0], cst.SimpleStatementLine), name)
                values[place] = self.resolved(value, of_name=True) if value is not None else None
        if isinstance(test.orelse, cst.If):
            values[1] = self._chosen(test.orelse, name, before)
        first, second = values
        if code(condition) in ("True", "False"):
            first = second = values[code(condition) == "False"]
        if first is None or second is None or any(nodes(condition, cst.Call)):
            return None
        whole = first if first is second else parsed(f"{_in_brackets(first)} if {code(condition)} else {_in_brackets(second)}")
        return None if self._is_changing(whole) else whole

    def _forget(self, block: cst.CSTNode) -> None:
        for name in reads_and_writes(block)[1]:
            self._given.pop(name, None)

    def _assign(self, statement: cst.SimpleStatementLine) -> None:
        """Takes the values that a statement gives to names."""
        for name in reads_and_writes(statement)[1]:
            before = self._given.get(name) if isinstance(statement.body[0], cst.AugAssign) else None
            if isinstance(before, cst.Name | cst.Attribute | cst.Subscript):
                self._changed |= reads_and_writes(before)[0]  # of a list, it changes the list
            if name in self._readers:
                message = f"it depends on {name}, which gets another value behind it; give that one another name"
                raise UnconvertibleError(self._readers[name], code(self._readers[name].func), message)
            value = plain_value(statement, name)
            value = self.resolved(value, of_name=True) if value is not None else None
            self._given.pop(name, None)
            self._lost.discard(name)
            if value is not None and not self._inside and not self._is_changing(value) and name not in self._changed:
                self._given[name] = value
            else:
                self._lose(name)

    def _lose(self, name: str) -> None:
        """Notes that a loop's target has another value than that of its turn."""
        if any(name in targets for targets in self._turns):
            self._lost.add(name)

    def _is_changing(self, value: cst.BaseExpression) -> bool:
        """Returns True for an expression that is not the same in ``__init__``, or behind its place."""
        changing = (self._bound | self._own).difference({"training"}, *self._turns) | self._lost | self._changed
        return bool(reads_and_writes(value)[0] & changing)

    def call(self, old: cst.Call, new: cst.Call, place: Place) -> str:
        """Returns the call of the layer that replaces a call of ``tf.layers``.

        Args:
            old: Call as it is in the script.
            new: The same call with converted arguments.
            place: Loops and scopes around the call.

        Raises:
            UnconvertibleError: The call depends on values of the network, or has arguments that Keras does not know.
        """
        keras, function, default, arguments, always = translated(self._script, old, new)
        if function == "layer_norm" and code(arguments.get("axis", cst.Integer("1"))) != "-1":
            raise UnconvertibleError(old, code(old.func), "it normalizes more than the last axis; make the layer in __init__")
        inputs = [code(arguments.pop("inputs"))]
        training = arguments.pop("training", None)
        self.taken.update(name for value in arguments.values() for name in reads_and_writes(value)[0])
        rate = self.resolved(arguments["rate"]) if "rate" in arguments else None
        in_training = _rate_in_training(rate) if code(training or parsed("None")) in ("True", "training") else None
        if in_training is not None:
            arguments["rate"], training = in_training, cst.Name("training")
        if function in TRAINING:
            inputs.append(f"training={TRAINING[function] if training is None else code(training)}")
        given = {key: self.resolved(value, of_name=key == "name") for key, value in arguments.items()}
        asked = given.pop("name", None)
        asked = None if asked is None or code(asked) == "None" else asked
        base, pieces = self._name(old, default, asked, place)
        self._note(old, default, asked, pieces)
        iterables = [self.resolved(loop.iter) for loop in place.loops]
        targets = [name for loop in place.loops for name in reads_and_writes(loop.target)[0]]
        if any(loop in self.items and simple_name(loop.iter) in self._iterators for loop in place.loops):
            message = "the loop runs over an iterator, which ends with the first list of layers; give it a list"
            raise UnconvertibleError(old, code(old.func), message)
        if len({*targets}) < len(targets):
            raise UnconvertibleError(old, code(old.func), f"two loops around it give one name a value; {_ELSEWHERE}")
        self._check(old, [*given.values(), *pieces, *iterables], place.loops, {self._counter})
        values = {**DEFAULTS.get(function, {}), **always, **{key: code(value) for key, value in given.items()}}
        name = _joined(pieces)
        if name:
            values["name"] = name
        package = "" if keras in FUSED_NORMS else "tf_keras.layers."
        made = f"{package}{keras}({', '.join(f'{key}={value}' for key, value in values.items())})"
        for loop, iterable in reversed(list(zip(place.loops, iterables, strict=True))):
            turn = f"{code(loop.target)} in {code(iterable)}"
            if self._counter in {simple_name(one) for piece in pieces for one in nodes(piece, cst.Name)}:
                turn = f"{self._counter}, {target_of(loop)} in enumerate({code(iterable)})"
            made = f"[{made} for {turn}]"
        self._check_entered(old, (keras, name), pieces, place)
        attribute = self._attribute(old, (keras, name), f"{base}_layers" if place.loops else base, made)
        return f"{self._item(attribute, place.loops)}({', '.join(inputs)})"

    def variable(self, scopes: Sequence[cst.BaseExpression], name: cst.BaseExpression) -> str:
        """Returns the expression of a layer's variable that is asked for by its name; empty if no layer before has it.

        Args:
            scopes: Names of the scopes around.
            name: Name that is asked for.
        """
        pieces = [self.resolved(one, of_name=True) for one in (*scopes, name)]
        owner, _, own = "/".join(map(_text, pieces)).rpartition("/")
        found = [named for (_, one), named in self._named.items() if one == f'"{owner}"' and self._is_made(named, own)]
        return f"self.{found[0].layer.attribute}.{own}" if len(found) == 1 and all(map(_is_written, pieces)) else ""

    def _is_made(self, named: _Named, variable: str) -> bool:
        """Returns True if a layer has a variable in each call that comes here."""
        known = variable in OF_LAYERS and not (variable == "bias" and "use_bias" in named.layer.made)
        return known and all(self._branches.get(test, not side) == side for test, side in named.branches.items())

    def _is_made_with(self, branches: dict[cst.If, bool]) -> bool:
        """Returns True for what is made in branches that may be in one graph with this place."""
        return all(self._branches.get(test, side) == side for test, side in branches.items())

    def made_once(self, call: cst.Call, old: cst.Call) -> str:
        """Returns the attribute for an object of Keras that the script makes itself: one for each place that makes it.

        Raises:
            UnconvertibleError: The call depends on values of the network.
        """
        if old in self._objects:
            return self._objects[old]
        name = code(call.func).rpartition(".")[2]
        self._check(call, [argument.value for argument in call.args], ())
        attribute = self._free(in_snake_case(name))
        self.layers.append(Layer(attribute, code(call)))
        self._objects[old] = attribute
        return attribute

    def _name(
        self, old: cst.Call, default: str, name: cst.BaseExpression | None, place: Place
    ) -> tuple[str, list[cst.BaseExpression]]:
        """Returns a base for the attribute, and the parts of the name that TensorFlow 1 gives to a layer.

        There are no parts where Keras counts as TensorFlow 1 does: for layers without a name in a loop, and those behind it.
        """
        if name is None and place.loops and default in _WITHOUT_VARIABLES:
            return default, []
        is_numbered = bool(self._numbered.get((None, default))) or (self._of_each_turn(default, place) or 0) > 1
        of_looped = any(default == looped for looped, _ in self._looped)
        if name is None and not place.scopes and (of_looped or (place.loops and not is_numbered)):
            if place.loops and (default, place.loops[0]) in self._looped:
                message = f"a second layer of its kind in a loop, without a name; {_ELSEWHERE}"
                raise UnconvertibleError(old, code(old.func), message)
            self._looped.update((default, loop) for loop in place.loops[:1])
            return default, []
        name = name if name is not None else self._number(old, default, place)
        turns = {name for loop in place.loops for name in reads_and_writes(loop.target)[0]}
        scopes = [self.resolved(one, of_name=True) for _, one in place.scopes]
        named = turns | self._constants - self._bound
        if not all(simple_name(one) in named or any(nodes(one, cst.SimpleString, cst.FormattedString)) for one in scopes):
            raise UnconvertibleError(old, code(old.func), f"its variable scope has no name that is written here; {_ELSEWHERE}")
        pieces = [*scopes, name]
        read = {one for piece in pieces for one in reads_and_writes(piece)[0]}
        if self._counter not in read and not all(read & reads_and_writes(loop.target)[0] for loop in place.loops):
            raise UnconvertibleError(old, code(old.func), f"its name is the same in each turn of a loop; {_ELSEWHERE}")
        texts = [str(one.evaluated_value) for one in pieces if isinstance(one, cst.SimpleString)]
        if len(texts) == len(pieces):
            return re.sub(r"\W", "_", "_".join(texts)), pieces
        letters = re.search(r"""["']([A-Za-z]+)""", code(name))
        return letters[1] if letters else default, pieces

    def _note(
        self, old: cst.Call, default: str, asked: cst.BaseExpression | None, pieces: Sequence[cst.BaseExpression]
    ) -> None:
        """Notes the name of a layer; raises if it has none, and TensorFlow 1 counts on because of one that is written."""
        written, counted = self._opened[-1]
        if asked is not None:
            written.add(_text(asked))
            return
        own = _text(pieces[-1]) if pieces else default
        if own in written and default not in _WITHOUT_VARIABLES:
            message = f"something else is called {own}, so TensorFlow 1 gives it another number; give it a name"
            raise UnconvertibleError(old, code(old.func), message)
        counted.add(own)

    def _number(self, old: cst.Call, default: str, place: Place) -> cst.BaseExpression:
        """Returns the last part of the name that TensorFlow 1 gives to a layer without one: of the second one of its kind ``dense_1``."""
        scope = place.scopes[-1][0] if place.scopes else None
        key = scope, default
        count = self._counts[key]
        self._counts[key] += 1
        turns = self._numbered.setdefault(key, [])
        before = [one for one in turns if one.loop not in place.loops and self._is_made_with(one.branches)]
        terms = [_times(one.each, one.length) for one in before]
        own = count - sum(one.each for one in before)
        if own < 0 or any(not one.branches.keys() <= self._branches.keys() for one in turns):
            message = f"a loop in a branch makes layers without names, which its number depends on; {_ELSEWHERE}"
            raise UnconvertibleError(old, code(old.func), message)
        if any(scope is None or loop in {*nodes(scope, cst.For)} for loop in place.loops):
            each, inside = self._of_each_turn(default, place), {*nodes(place.loops[0], cst.If)}
            if not each or len(place.loops) > 1 or simple_name(place.loops[0].iter) in self._iterators:
                return cst.SimpleString(f'"{default}"')
            if all(one.loop is not place.loops[0] for one in turns):
                around = {test: side for test, side in self._branches.items() if test not in inside}
                turns.append(_Turns(place.loops[0], each, _length(self.resolved(place.loops[0].iter)), around))
            terms.append(_times(each, self._counter))
        if not terms:
            return cst.SimpleString(f'"{default}_{own}"' if own else f'"{default}"')
        number = " + ".join([*terms, *([str(own)] if own else [])])
        return parsed(f'"{default}" + ("_" + str({number})' + (")" if own else f' if {number} else "")'))

    def _of_each_turn(self, default: str, place: Place) -> int | None:
        """Returns how many layers of a kind, without names, a loop makes in each turn; None if it is not known."""
        if not place.loops:
            return None
        counting = _Counting(self._script, default, {scope for scope, _ in place.scopes}, dict(self._given))
        return counting.of(place.loops[0].body)

    def _check_entered(self, old: cst.Call, key: tuple[str, str], pieces: Sequence[cst.BaseExpression], place: Place) -> None:
        """Raises for a new layer in a scope that is entered again and whose names a loop counts: it may be one of those from before."""
        if not pieces or not place.scopes:
            return
        scope = _joined(pieces[:-1])
        entered = self._entered.setdefault(scope, set())
        entered.add(place.scopes[-1][0])
        if self._counter in reads_and_writes(pieces[-1])[0]:
            self._counting.add(scope)
        if scope in self._counting and len(entered) > 1 and key not in self._named:
            message = (
                f"its scope is entered again, where it may be a layer from before, whose number a loop counts; {_ELSEWHERE}"
            )
            raise UnconvertibleError(old, code(old.func), message)

    def _attribute(self, old: cst.Call, key: tuple[str, str], base: str, made: str) -> str:
        """Returns the attribute of a layer with the name of another one, or of a new layer."""
        named = self._named.get(key) if key[1] else None
        if named is not None and named.layer.made == made:
            return named.layer.attribute
        exclusive = named is not None and not self._is_made_with(named.branches)
        without_variables = key[0] in ("Dropout", "Flatten") or "Pooling" in key[0]
        if named is not None and not exclusive and not without_variables:
            message = f"another layer with other arguments is called {key[1]} as well; {_ELSEWHERE}"
            raise UnconvertibleError(old, code(old.func), message)
        layer = Layer(self._free(base), made)
        self.layers.append(layer)
        self._named[key] = _Named(layer, dict(self._branches))
        return layer.attribute

    def _item(self, attribute: str, loops: Sequence[cst.For]) -> str:
        """Returns the expression of a layer inside of loops."""
        found = f"self.{attribute}"
        for loop in loops:
            item = attribute.replace("_layers", "_layer") if loop is loops[-1] else attribute
            while item in self._bound:
                item += "_"
            found = self.items.setdefault(loop, {}).setdefault(found, item)
        return found

    def _open(self, block: cst.With) -> None:
        """Notes the scopes that a block opens: one with a default name gets a number if its name is there already."""
        for item in block.items:
            called = item.item if self._script.called(item.item) == "tensorflow.variable_scope" else None
            given = arguments(called, ("name_or_scope", "default_name")) if isinstance(called, cst.Call) else None
            if not given or "name_or_scope" not in given:
                continue
            name = self.resolved(given["name_or_scope"], of_name=True)
            default = given.get("default_name") if code(name) == "None" else None
            text = _text(name if default is None else default)
            written, counted = self._opened[-1]
            if default is not None and (text in written | counted or self._turns or not isinstance(default, cst.SimpleString)):
                self._unsure.add(block)
            written.add(text)
            self._opened.append((set(), set()))
            self._scopes[block] = self._scopes.get(block, 0) + 1

    def _close(self, block: cst.CSTNode) -> None:
        for _ in range(self._scopes.pop(block, 0)):
            self._opened.pop()

    def default_scope(self, scope: cst.With, name: cst.BaseExpression) -> cst.BaseExpression:
        """Returns the name of a scope that has only a default name, to which TensorFlow 1 adds a number if the name is there already.

        Raises:
            UnconvertibleError: It may be.
        """
        if scope in self._unsure:
            message = f"something else may have the default name {code(name)}, too; give it a name"
            raise UnconvertibleError(scope.items[0].item, "tf.variable_scope", message)
        return name

    def resolved(self, value: cst.BaseExpression, of_name: bool = False) -> cst.BaseExpression:
        """Returns an expression with the values of names that change in the network in their place; in a layer's name, of all names."""
        names = {name: one for name, one in self._given.items() if of_name or self._times[name] > 1 or name in self._own}
        return with_values(value, names)

    def _free(self, attribute: str) -> str:
        taken = {layer.attribute for layer in self.layers}
        attribute = attribute if attribute.isidentifier() else f"layer_{attribute}"
        while attribute in taken or attribute in _OF_MODEL:
            attribute += "_"
        return attribute

    def _check(
        self, old: cst.Call, values: Sequence[cst.BaseExpression], loops: Sequence[cst.For], known: Set[str] = frozenset()
    ) -> None:
        read = {name for value in values for name in reads_and_writes(value)[0]} - known
        lost = read & self._lost
        read -= {name for loop in loops for name in reads_and_writes(loop.target)[0]}
        if read & self._own or lost:
            message = (
                f"it depends on {min(lost or read & self._own)}, a value of the network; make the layer of tf_keras in __init__"
            )
            raise UnconvertibleError(old, code(old.func), message)
        self._readers.update(dict.fromkeys(read, old))


class _Counting:
    """Counts layers of one kind, without names.

    Args:
        script: Script around the network.
        default: Name of the kind.
        scopes: Blocks whose scopes count; others have numbers of their own.
        known: Values of names before.
    """

    def __init__(self, script: Script, default: str, scopes: Set[cst.CSTNode], known: dict[str, cst.BaseExpression]) -> None:
        self._script, self._default, self._scopes, self._known = script, default, scopes, known

    def of(self, node: cst.CSTNode) -> int | None:
        """Returns how many layers a node makes; None if it is not always the same."""
        if isinstance(node, cst.Break | cst.Continue):
            return None
        opens = isinstance(node, cst.With) and any(
            self._script.called(one.item) == "tensorflow.variable_scope" for one in node.items
        )
        if opens and node not in self._scopes:
            return 0
        if isinstance(node, cst.If):
            before = dict(self._known)
            first = self.of(node.body)
            self._known = before
            other = self.of(node.orelse) if node.orelse is not None else 0
            self._known = {name: one for name, one in before.items() if name not in reads_and_writes(node)[1]}
            counts = [self.of(node.test), first if first == other else None]
        else:
            counts = [self.of(one) for one in children(node)]
        if isinstance(node, _NOT_ONCE) and any(one != 0 for one in counts):
            return None
        if isinstance(node, cst.SimpleStatementLine):
            values = {name: plain_value(node, name) for name in reads_and_writes(node)[1]}
            self._known |= {name: one if one is not None else parsed("...") for name, one in values.items()}
        own = self._own(node) if isinstance(node, cst.Call) else 0
        return None if own is None or None in counts else own + sum(filter(None, counts))

    def _own(self, call: cst.Call) -> int | None:
        if default_name(self._script, call) != self._default:
            return 0
        name = with_values(asked_name(call), self._known)
        if any(nodes(name, cst.SimpleString, cst.FormattedString)):
            return 0
        return 1 if code(name) == "None" else None


def target_of(loop: cst.For) -> str:
    """Returns the target of a loop as one expression: ``(a, b)`` of ``for a, b in pairs``."""
    target = code(loop.target)
    return f"({target})" if isinstance(loop.target, cst.Tuple) and not loop.target.lpar else target


def _is_iterator(value: cst.BaseExpression) -> bool:
    """Returns True for what can be looked through only once."""
    return isinstance(value, cst.GeneratorExp) or (isinstance(value, cst.Call) and simple_name(value.func) in _ITERATORS)


def _times(each: int, number: str) -> str:
    return number if each == 1 else f"{each} * {number}"


def _length(iterable: cst.BaseExpression) -> str:
    """Returns the expression of how many turns a loop has."""
    is_call = isinstance(iterable, cst.Call) and simple_name(iterable.func) != "range"
    return f"len([*{code(iterable)}])" if is_call or isinstance(iterable, cst.GeneratorExp) else f"len({code(iterable)})"


def _constants(script: Script) -> set[str]:
    """Returns the names that a script's own statements give a text."""
    statements = [one.body[0] for one in script.module.body if isinstance(one, cst.SimpleStatementLine)]
    texts = [one for one in statements if isinstance(one, cst.Assign) and isinstance(one.value, cst.SimpleString)]
    return {simple_name(one.targets[0].target) for one in texts} - {""}


def _is_written(name: cst.BaseExpression) -> bool:
    return isinstance(name, cst.SimpleString)


def _text(name: cst.BaseExpression) -> str:
    """Returns a name without its quotes; of one that is computed, the expression."""
    return str(name.evaluated_value) if isinstance(name, cst.SimpleString) else code(name)


def _folded(condition: cst.BaseExpression) -> cst.BaseExpression:
    """Returns True or False for a test if something that is written here is None; other conditions as they are."""
    compared = condition.comparisons if isinstance(condition, cst.Comparison) else ()
    if len(compared) != 1 or code(compared[0].comparator) != "None" or not isinstance(compared[0].operator, cst.Is | cst.IsNot):
        return condition
    assert isinstance(condition, cst.Comparison)
    is_none = code(condition.left) == "None"
    if (
        not is_none
        and not isinstance(condition.left, cst.BaseNumber | cst.SimpleString)
        and code(condition.left) not in ("True", "False")
    ):
        return condition
    return cst.Name(str(is_none is isinstance(compared[0].operator, cst.Is)))


def _in_brackets(value: cst.BaseExpression) -> str:
    return f"({code(value)})" if isinstance(value, cst.IfExp) and not value.lpar else code(value)


def plain_value(statement: cst.SimpleStatementLine, name: str) -> cst.BaseExpression | None:
    """Returns the value that an assignment gives to a name, if it is the same wherever it is written."""
    only = statement.body[0]
    if not isinstance(only, cst.Assign) or not all(simple_name(one.target) == name for one in only.targets):
        return None
    return None if any(map(_makes_objects, nodes(only.value, cst.Call, cst.Lambda, *_COMPREHENSIONS))) else only.value


def _makes_objects(node: cst.CSTNode) -> bool:
    """Returns True unless an expression is a call that only computes a number or a text."""
    called = node.func if isinstance(node, cst.Call) else None
    return not (simple_name(called) in _NUMBERS or (isinstance(called, cst.Attribute) and called.attr.value == "format"))


def _rate_in_training(rate: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """Returns a dropout's rate in training, if nothing is dropped elsewhere: of ``0.4 if training else 0.0``, or 1 less such a choice."""
    kept = isinstance(rate, cst.BinaryOperation) and isinstance(rate.operator, cst.Subtract) and code(rate.left) == "1.0"
    choice = rate.right if isinstance(rate, cst.BinaryOperation) and kept else rate
    if not isinstance(choice, cst.IfExp) or simple_name(choice.test) != "training":
        return None
    if code(choice.orelse) not in (("1.0", "1", "1.") if kept else ("0.0", "0", "0.")):
        return None
    return parsed(f"1.0 - ({code(choice.body)})") if kept else choice.body


def _joined(pieces: Sequence[cst.BaseExpression]) -> str:
    """Returns the expression of names with slashes between them; empty for none."""
    parts, text = [], ""
    for place, piece in enumerate(pieces):
        text += "/" if place else ""
        if isinstance(piece, cst.SimpleString):
            text += str(piece.evaluated_value)
            continue
        value: cst.BaseExpression = piece
        if (
            isinstance(piece, cst.BinaryOperation)
            and isinstance(piece.operator, cst.Add)
            and isinstance(piece.left, cst.SimpleString)
        ):
            text, value = text + str(piece.left.evaluated_value), piece.right
        written = code(value)
        bare = isinstance(value, cst.Name | cst.Call | cst.FormattedString) or len(pieces) == 1 or bool(value.lpar)
        parts += [f'"{text}"'] * bool(text) + [written if bare else f"({written})"]
        text = ""
    return " + ".join([*parts, f'"{text}"'] if text else parts)


OF_LAYERS = ("kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance")
"""Variables that Keras gives the names of TensorFlow 1."""
_OF_MODEL = frozenset(
    {
        "layers",
        "loss",
        "metrics",
        "params",
        "config",
        "model_dir",
        "inputs",
        "outputs",
        "optimizer",
        "name",
        "call",
        "build",
        "dtype",
        "weights",
        "losses",
        "input",
        "output",
    }
)
"""Attributes that a model has already."""
