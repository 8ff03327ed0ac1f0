"""Pairs the variables of an old checkpoint with those of a model by name, shape and order, and never guesses."""

import dataclasses
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from estimator_bridge.compat.checkpoint.errors import SEE_NAMES, NamingError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Shape
from estimator_bridge.compat.checkpoint.names.likeness import likely_order
from estimator_bridge.compat.checkpoint.reading.tensors import Stored

How = Literal["map", "name", "end of name", "scope", "shape", "order"]
LONGEST_ENDING = 8  # parts of a name
Label = Callable[[str], str | None]  # a variable's name -> its label, None for a variable to leave out
ShapeAndDtype = tuple[Shape, int]
# Names in tf.contrib, slim and canned Estimators -> names in tf.layers and Keras.
_SAME = {
    "weights": "kernel",
    "biases": "bias",
    "bias_weights": "bias",
    "embedding_weights": "embeddings",
    "depthwise_weights": "depthwise_kernel",
    "pointwise_weights": "pointwise_kernel",
}
_NUMBER = re.compile(r"_?\d+")


class Named(NamedTuple):
    """A variable of either side.

    Attributes:
        key: Name in its checkpoint.
        name: Name to compare, e.g. that of the tf.Variable.
        entry: Shape, dtype and place of the value.
    """

    key: str
    name: str
    entry: Stored

    @property
    def shape_and_dtype(self) -> ShapeAndDtype:
        """The properties that are equal in every pair."""
        return self.entry.shape, self.entry.dtype


@dataclasses.dataclass(frozen=True)
class Match:
    """A pair of variables.

    Attributes:
        source: Key in the old checkpoint.
        target: Key on the other side.
        how: Criterion that paired them.
    """

    source: str
    target: str
    how: How


@dataclasses.dataclass(frozen=True)
class Matching:
    """The pairs, and the variables without a counterpart.

    Attributes:
        matches: Pairs.
        ambiguous: Target key -> sources that fit equally well.
        unmatched_sources: Source keys without a counterpart.
        unmatched_targets: Target keys without a counterpart.
    """

    matches: tuple[Match, ...]
    ambiguous: Mapping[str, tuple[str, ...]]
    unmatched_sources: tuple[str, ...]
    unmatched_targets: tuple[str, ...]


def match(
    sources: Sequence[Named],
    targets: Sequence[Named],
    given: Mapping[str, str] | None = None,
    accept_order: bool = False,
    created: Sequence[str] = (),
) -> Matching:
    """Pairs variables.

    Args:
        sources: Variables of the old checkpoint.
        targets: Variables of the model, in its order.
        given: Source key -> target key or name, decided by the user.
        accept_order: True to pair remaining variables of one shape by words of their names, then in order of creation: ``dense``,
            ``dense_1``, ``dense_10``.
        created: Keys of the old variables in order of creation, if that is known.

    Returns:
        The pairs, and the variables without a counterpart.

    Raises:
        NamingError: ``given`` names a variable that is missing or not unique, or pairs different shapes or dtypes.

    Example:
        >>> from estimator_bridge.compat.checkpoint.format.bundle import Entry
        >>> kernel, bias = Entry(1, (4, 6)), Entry(1, (6,))
        >>> old = [Named("m/h/kernel", "m/h/kernel", kernel), Named("m/h/bias", "m/h/bias", bias)]
        >>> new = [Named("model/w", "sequential/h/kernel", kernel), Named("model/b", "sequential/h/bias", bias)]
        >>> [(pair.source, pair.target, pair.how) for pair in match(old, new).matches]
        [('m/h/kernel', 'model/w', 'end of name'), ('m/h/bias', 'model/b', 'end of name')]
    """
    matcher = _Matcher(sources, targets, created)
    matcher.take_given(given or {})
    matcher.take_unique("name", lambda name: name)
    for length in range(LONGEST_ENDING, 1, -1):
        matcher.take_unique("end of name", functools.partial(ending, length=length))
    for length in range(LONGEST_ENDING, 1, -1):  # a rewrite may have conv3 for CONV3
        matcher.take_unique("end of name", functools.partial(_ending_in_lower_case, length=length))
    matcher.take_unique("end of name", functools.partial(ending, length=2), of_column)
    matcher.give_back_shifted_numbers()
    while matcher.take_by_scope() or matcher.take_unique("shape", role) or matcher.take_unique("shape", _any_name):
        pass
    if accept_order:
        matcher.take_in_order()
    return matcher.result()


def find_by_hand(variables: Iterable[Named], name: str, wanted: str) -> Named:
    """Returns a variable that the user paired by hand.

    Args:
        variables: Variables of the model.
        name: Name of its counterpart, for the message.
        wanted: Key or name of the variable.

    Raises:
        NamingError: There is none, or several have that name.
    """
    found = [variable for variable in variables if wanted in {variable.key, variable.name}]
    if len(found) != 1:
        raise NamingError(
            f"--map names {wanted!r}: {f'{len(found)} variables have' if found else 'no variable has'} this name.",
            received=f"{name} -> {wanted}",
            fix=f"Use a key: {', '.join(variable.key for variable in found)}" if found else SEE_NAMES,
        )
    return found[0]


def _any_name(name: str) -> str:
    return ""


class _Matcher:
    """The variables of both sides that are not paired yet, and the pairs."""

    def __init__(self, sources: Iterable[Named], targets: Iterable[Named], created: Iterable[str]) -> None:
        self._created = {key: place for place, key in enumerate(created)}
        self._sources = {variable.key: variable for variable in sources}
        self._targets = {variable.key: variable for variable in targets}
        self._place = {key: place for place, key in enumerate(self._targets)}
        self._taken: list[tuple[Named, Named, How]] = []

    def take_given(self, given: Mapping[str, str]) -> None:
        for key, wanted in given.items():
            source = self._sources.get(key)
            if source is None:
                message = f"--map names {key!r}: no variable has this name."
                raise NamingError(message, received=f"{key} -> {wanted}", fix=SEE_NAMES)
            target = find_by_hand(self._targets.values(), key, wanted)
            if source.shape_and_dtype != target.shape_and_dtype:
                raise NamingError(
                    f"--map pairs variables of different shapes or dtypes: {key!r} and {wanted!r}.",
                    expected=f"{dtypes.dtype(target.entry.dtype).name} {list(target.entry.shape)}",
                    received=f"{dtypes.dtype(source.entry.dtype).name} {list(source.entry.shape)}",
                    fix="Pair variables of one shape and dtype.",
                )
            self._take(source, target, "map")

    def take_unique(self, how: How, label: Label, target_label: Label | None = None) -> bool:
        """Pairs variables whose shape and label occur once on either side; returns True if there were any."""
        sources = group(self._sources.values(), label)
        targets = group(self._targets.values(), target_label or label)
        found = [
            (here[0], targets[kind][0]) for kind, here in sources.items() if len(here) == 1 and len(targets.get(kind, ())) == 1
        ]
        for source, target in found:
            self._take(source, target, how)
        return bool(found)

    def give_back_shifted_numbers(self) -> None:
        """Undoes pairs such as ``dense_1`` with ``dense_1`` if the numbers of both sides may start differently.

        That is so if ``dense`` is left on this side, and ``dense_2``, of the same shape, on the other.
        """
        left = [group(side.values(), unnumbered).keys() for side in (self._sources, self._targets)]
        taken, self._taken = self._taken, []
        for source, target, how in taken:
            ends = zip((source, target), left, strict=True)
            if how != "map" and all((v.shape_and_dtype, unnumbered(v.name)) in rest for v, rest in ends):
                self._sources[source.key] = source
                self._targets[target.key] = target
            else:
                self._taken.append((source, target, how))

    def take_by_scope(self) -> bool:
        """Pairs variables beside variables that are paired, e.g. the bias of a kernel; names of layers may differ."""
        for level in (1, 2):  # in the same layer, then in the same block of layers
            scopes = find_one_to_one(
                (scope(source.name, level), scope(target.name, level)) for source, target, _ in self._taken
            )
            here = functools.partial(in_scope, level, scopes.get)
            if self.take_unique("scope", here, functools.partial(in_scope, level, str)):
                return True
        return False

    def take_in_order(self) -> None:
        """Pairs variables in order of creation, if that is known: else if their names differ only in numbers."""
        for sources, targets in [*self._groups()]:
            is_known = all(source.key in self._created for source in sources)
            if len(sources) == len(targets) and (is_known or len({unnumbered(source.name) for source in sources}) == 1):
                for source, target in zip(sources, targets, strict=True):
                    self._take(source, target, "order")

    def result(self) -> Matching:
        ambiguous = {
            target.key: tuple(source.key for source in sources) for sources, targets in self._groups() for target in targets
        }
        candidates = {key for keys in ambiguous.values() for key in keys}
        return Matching(
            tuple(Match(source.key, target.key, how) for source, target, how in self._taken),
            ambiguous,
            tuple(key for key in self._sources if key not in candidates),
            tuple(key for key in self._targets if key not in ambiguous),
        )

    def _groups(self) -> Iterator[tuple[list[Named], list[Named]]]:
        """Yields the remaining variables of both sides that may belong together, those that probably do at the same place.

        They have one shape and dtype. Of these, kernels, biases and the like are apart, if both sides have as many of them.
        """
        old, new = (group(side.values(), role) for side in (self._sources, self._targets))
        alike = [kind for kind in old if len(old[kind]) == len(new.get(kind, ()))]
        groups = [(old.pop(kind), new.pop(kind)) for kind in alike]
        sources, targets = (group(itertools.chain(*side.values()), _any_name) for side in (old, new))
        groups += [(sources[kind], targets[kind]) for kind in sources if kind in targets]
        for mine, its in groups:
            mine.sort(key=self._creation)
            its.sort(key=lambda target: self._place[target.key])
            here, there = likely_order([source.name for source in mine], [target.name for target in its])
            yield [mine[place] for place in here], [its[place] for place in there]

    def _creation(self, source: Named) -> tuple[float, list[object]]:
        return self._created.get(source.key, math.inf), natural_order(source)

    def _take(self, source: Named, target: Named, how: How) -> None:
        self._taken.append((source, target, how))
        del self._sources[source.key], self._targets[target.key]


def role(name: str) -> str:
    """Returns the last part of a name in Keras' words.

    Example:
        >>> role("dnn/input_layer/age_embedding/embedding_weights"), role("fc1/biases"), role("dense/kernel")
        ('embeddings', 'bias', 'kernel')
    """
    last = name.rpartition("/")[2]
    return _SAME.get(last, last)


def scope(name: str, level: int = 1) -> str:
    """Returns a name without its last parts: its layer or, with a higher level, a scope around it; "" if there is none.

    Example:
        >>> scope("net/dense_1/kernel"), scope("net/dense_1/kernel", 2), scope("kernel")
        ('net/dense_1', 'net', '')
    """
    return "/".join(name.split("/")[:-level])


def ending(name: str, length: int) -> str | None:
    """Returns the last parts of a name in Keras' words; None if it has fewer.

    Example:
        >>> ending("net/fc1/weights", 2), ending("weights", 2)
        ('fc1/kernel', None)
    """
    parts = name.split("/")
    return "/".join([*parts[-length:-1], role(name)]) if len(parts) >= length else None


def _ending_in_lower_case(name: str, length: int) -> str | None:
    return ending(name.lower(), length)


def of_column(name: str) -> str | None:
    """Returns the end of the name that a column's weights have in linear models of TensorFlow 1; None if no embedding stands for them.

    Example:
        >>> of_column("linear_model/town_embedding/embedding_weights"), ending("linear/linear_model/town/weights", 2)
        ('town/kernel', 'town/kernel')
    """
    column = scope(name).rpartition("/")[2]
    is_embedding = column.endswith("_embedding") and role(name) == "embeddings"
    return f"{column.removesuffix('_embedding')}/kernel" if is_embedding else None


def unnumbered(name: str) -> str:
    """Returns a name without the numbers that count layers.

    Example:
        >>> unnumbered("net/dense_12/kernel"), unnumbered("net/dense/weights")
        ('net/dense/kernel', 'net/dense/kernel')
    """
    return _NUMBER.sub("", f"{scope(name)}/{role(name)}")


def in_scope(level: int, translate: Label, name: str) -> str | None:
    """Returns a variable's translated scope and its role; None without a translation."""
    translated = translate(scope(name, level))
    return None if translated is None else f"{translated}/{role(name)}"


def group(variables: Iterable[Named], label: Label) -> dict[tuple[ShapeAndDtype, str], list[Named]]:
    """Groups variables by shape, dtype and label."""
    found: dict[tuple[ShapeAndDtype, str], list[Named]] = {}
    for variable in variables:
        text = label(variable.name)
        if text is not None:
            found.setdefault((variable.shape_and_dtype, text), []).append(variable)
    return found


def find_one_to_one(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the pairs whose members are in no other pair."""
    known = set(pairs)
    here, there = (Counter(pair[side] for pair in known) for side in (0, 1))
    return {source: target for source, target in known if here[source] == there[target] == 1}


def natural_order(variable: Named) -> list[object]:
    """Returns a key that sorts ``dense`` before ``dense_2`` before ``dense_10``."""
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", variable.name)]
