"""Values of the old script in the new script's variables and optimizer slots, through the checkpoint converter."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.compat.checkpoint import ConversionReport, Index, convert, read_index
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Shape
from estimator_bridge.compat.checkpoint.models.object_graph import read_graph, read_object_model
from estimator_bridge.compat.checkpoint.names.matching import Matching, Named, match
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.tensors import Stored
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import Options, publish, write_tensors
from estimator_bridge.compat.checkpoint.writing.staging import ScratchDisk
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.result import Thresholds
from estimator_bridge.parity.rewrite.feeding import Say, is_regrouped
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.values import equal_arrays, read_value

_SCRATCH = Options(update_state=False, overwrite=True)
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Weights:
    """The variables of the new script's models and optimizers.

    Args:
        folder: Folder of the new side's checkpoints.
        plan: Comparison.
        models: Outermost models.
        optimizers: Optimizers that are no attribute of a model.
        say: Function that takes notes.
        described: Event of the old side with the names of its variables in order of creation, and the forget_bias of LSTM cells.
    """

    def __init__(
        self,
        folder: Path,
        plan: RewritePlan,
        models: Sequence[Any],
        optimizers: Sequence[Any],
        say: Say,
        described: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._created = [name for name, *_ in described.get("variables", ())]
        self._untrained = {name for name, *_, is_trained in described.get("variables", ()) if not is_trained}
        self._forget_bias = described.get("forget_bias", {})
        self._folder, self._plan, self._say = folder, plan, say
        self._regrouped: dict[str, tuple[str, Shape]] = {}  # old variable -> key and shape of the new one
        self._orders: dict[str, Any] = {}  # old variable -> its row for each row of the new one
        self._is_paired = False
        self.old_names: dict[int, str] = {}  # handle of a trained variable -> name of its counterpart
        self.models = models
        self._optimizers = optimizers
        names = ["model", *(f"model_{i}" for i in range(1, len(models)))]
        kept = ["optimizer", *(f"optimizer_{i}" for i in range(1, len(optimizers)))]
        self._first_step: int | None = None  # global step of the first values that were given back
        self._checkpoint = tf.train.Checkpoint(
            **dict(zip(names, models, strict=False)), **dict(zip(kept, optimizers, strict=False))
        )

        self._paths: dict[int, tuple[Any, str]] = {}  # what the checkpoint consisted of when TensorFlow wrote it last
        self._graph = b""  # its object graph
        self._variables: dict[str, Any] = {}  # key -> variable; empty if only TensorFlow can read and write all values
        self._keys = _keys_of_namesakes(_paths_of(self._checkpoint))

    def name_of(self, variable: Any) -> str:
        """Returns the name of a variable; for several of one name, e.g. of layers in modules, the key in checkpoints."""
        return self._keys.get(id(variable), str(variable.name.partition(":")[0]))

    def is_like(self, other: Weights) -> bool:
        """Returns True if other models and optimizers have variables of the same shapes at the same paths."""
        mine, its = (
            {path: thing.shape for thing, path in _paths_of(one._checkpoint).values() if isinstance(thing, tf.Variable)}
            for one in (self, other)
        )
        return mine == its

    def changed(self, report: ConversionReport, like: str, name: str) -> list[str]:
        """Returns the old names of the variables and slots to which a conversion gave other values, but for rounding; see ``give_back``."""
        before, after = (read_index(prefix) for prefix in (like, str(self._folder / name)))
        pairs = [(one.source, one.target) for one in report.matches] + [(slot.source, slot.target) for slot in report.slots]
        return [
            source
            for source, key in pairs
            if source
            and key in before.entries
            and not equal_arrays(read_value(before, key), read_value(after, key), Thresholds())
        ]

    def write(self, name: str) -> str:
        """Writes the present values; returns the prefix."""
        for optimizer in self._optimizers:
            vars(optimizer).pop("_coalesced_children", None)  # Keras keeps those of an optimizer that had no slots yet
        prefix = str(self._folder / name)
        paths = _paths_of(self._checkpoint)
        if self._variables and _content(paths) == _content(self._paths):
            # TensorFlow would take longer than a step of a small model.
            values: dict[str, Any] = {key: _tensor(variable) for key, variable in self._variables.items()}
            values[OBJECT_GRAPH] = tensors.of_strings([self._graph], ())
            write_tensors(prefix, values, _SCRATCH, ScratchDisk())
            return prefix
        self._checkpoint.write(prefix)
        index = read_index(prefix)
        self._paths, self._variables, (self._graph, _) = paths, _variables_of(index, paths), read_graph(index)
        return prefix

    def give_back(self, source: str, like: str, name: str, own: Collection[str] = ()) -> ConversionReport:
        """Gives the variables the values of a checkpoint of the old script.

        Args:
            source: Prefix of the old checkpoint.
            like: Prefix of the present values.
            name: Name of the converted checkpoint.
            own: Variables of the old script whose counterparts keep their values.

        Raises:
            BridgeError: Variables of equal shape are ambiguous, or a pair of --map does not exist.
        """
        target = str(self._folder / name)
        report = self._convert(source, target, like)
        if not self._is_paired:
            report = self._pair_all(report, source, target, like)
        sources = {match.target: match.source for match in report.matches if match.source not in self._untrained}
        self.old_names = {
            id(part.handle): sources[f"{path}{_VALUE}"]
            for thing, path in self._paths.values()
            if f"{path}{_VALUE}" in sources and isinstance(thing, tf.Variable)
            for part in getattr(thing, "values", [thing])  # of a variable of a strategy
        }
        kept = [variable for model in self.models for metric in getattr(model, "metrics", ()) for variable in metric.variables]
        keys = {match.target for match in report.matches if match.source in own}
        kept += [thing for thing, path in self._paths.values() if f"{path}{_VALUE}" in keys]
        rates = (getattr(optimizer, "learning_rate", None) for optimizer in self._optimizers)  # no variables in TensorFlow 1
        kept += [rate for rate in rates if isinstance(rate, tf.Variable)]
        step = _global_step(source)
        if self._first_step is None:
            self._first_step = step
        elif step == self._first_step:  # a training that does not count its steps; the new one's bias corrections go on
            kept += [optimizer.iterations for optimizer in self._optimizers]
        before = [variable.numpy() for variable in kept]
        self._restore(target)
        for variable, value in zip(kept, before, strict=True):
            variable.assign(value)
        if self._plan.is_shaken:
            self._shake()
        return report

    def _restore(self, prefix: str) -> None:
        """Gives the variables the values of a checkpoint, as far as it has them."""
        if not self._variables:
            self._checkpoint.restore(prefix).expect_partial()
            return
        index = read_index(prefix)
        for key in self._variables.keys() & index.entries.keys():
            self._variables[key].assign(read_value(index, key))

    def _shake(self) -> None:
        """Changes each weight by about a unit in its last place, up or down."""
        random = np.random.RandomState(0)
        for variable in (variable for model in self.models for variable in model.trainable_variables):
            value = variable.numpy()
            if value.dtype.kind != "f":  # numpy does not know the last place of a bfloat16
                continue
            signs = random.choice([-1.0, 1.0], value.shape).astype(value.dtype)
            variable.assign(value * (1 + signs * np.finfo(value.dtype).eps))

    def _pair_all(self, report: ConversionReport, source: str, target: str, like: str) -> ConversionReport:
        """Pairs what the converter leaves, finds the rows of tables, and returns the report of the conversion that follows from it."""
        report = self._regroup(report, source, target, like)
        if report.ambiguous:
            raise _ambiguous(report, _names(like))
        self._orders = dict(self._other_orders(report, target, like))
        self._is_paired = True
        return self._convert(source, target, like) if self._orders else report

    def _convert(self, source: str, target: str, like: str) -> ConversionReport:
        given = dict(self._given(source, like)) | {name: key for name, (key, _) in self._regrouped.items()}
        if self._regrouped or self._orders:
            source = self._with_new_layout(source)
        return convert(
            source,
            target,
            like=like,
            given=given,
            accept_order=self._plan.accept_order,
            created=self._created,
            known_forget_bias=self._forget_bias,
            forget_bias=self._plan.forget_bias,
            allow_unmatched=True,
            overwrite=True,
            is_scratch=True,
            learning_rate=self._momentum_rate(),
        )

    def _given(self, source: str, like: str) -> Iterator[tuple[str, str]]:
        """Yields the pairs of --map with the whole keys; those of other shapes are regrouped."""
        if not self._plan.given:
            return
        old, new = read_index(source).entries, read_index(like).entries
        keys = {name: key for key, name in _names(like).items()}
        for name, wanted in self._plan.given:
            key = wanted if wanted in new else keys.get(wanted, f"{wanted}{_VALUE}")
            if (
                name in old
                and key in new
                and old[name].shape != new[key].shape
                and is_regrouped(old[name].shape, new[key].shape)
            ):
                self._regrouped[name] = key, new[key].shape
            yield name, key if key in new else wanted

    def _regroup(self, report: ConversionReport, source: str, target: str, like: str) -> ConversionReport:
        """Pairs variables whose shapes only group the same elements otherwise: (120,) and (120, 1)."""
        old, model = read_index(source).entries, read_object_model(read_index(like))
        new = {variable.key: variable for variable in model.variables}
        found = self._match_alike(report, old, new)
        paired = {name for pair in found.matches for name in (pair.source, pair.target)}
        if found.ambiguous:
            others = {key: names for key, names in report.ambiguous.items() if key not in paired | found.ambiguous.keys()}
            return dataclasses.replace(report, ambiguous={**found.ambiguous, **others})
        here = [Named(name, name, old[name]) for name in report.unmatched_sources if name in old]
        there = [new[key] for key in report.unmatched_targets if key in new]
        mine, its = ([_flat(one) for one in side if one.key not in paired] for side in (here, there))
        for name, key, _ in map(dataclasses.astuple, (*found.matches, *match(mine, its).matches)):
            shape = new[key].entry.shape
            if is_regrouped(old[name].shape, shape):
                self._say(f"{name} of shape {list(old[name].shape)} is {key.removesuffix(_VALUE)} of shape {list(shape)}")
                self._regrouped[name] = key, shape
        return self._convert(source, target, like) if self._regrouped else report

    def _match_alike(self, report: ConversionReport, old: Mapping[str, Stored], new: Mapping[str, Named]) -> Matching:
        """Pairs trained variables that are left, and ambiguous ones, by their shapes without dimensions of 1."""
        trained = self._trained_keys()
        unsure = {  # those of recurrent layers stand for several variables of other shapes
            key: names for key, names in report.ambiguous.items() if key in new and old[names[0]].shape == new[key].entry.shape
        }
        sources = [name for name in report.unmatched_sources if name in old and name not in self._untrained]
        sources += dict.fromkeys(itertools.chain(*unsure.values()))
        targets = [key for key in (*report.unmatched_targets, *unsure) if key in trained or key in unsure]
        return match(
            [_squeezed(Named(name, name, old[name])) for name in sources],
            [_squeezed(variable) for key, variable in new.items() if key in targets],
            accept_order=self._plan.accept_order,
            created=self._created,
        )

    def _trained_keys(self) -> set[str]:
        """Returns the keys of the models' trainable variables."""
        trained = {id(variable) for model in self.models for variable in model.trainable_variables}
        return {f"{path}{_VALUE}" for key, (_, path) in self._paths.items() if key in trained}

    def _other_orders(self, report: ConversionReport, target: str, like: str) -> Iterator[tuple[str, Any]]:
        """Yields the tables that neither script trains and whose own rows are the old ones in another order.

        The new script finds its rows by ids of its own, e.g. of a vocabulary that has the unknown word first. Trained tables
        have random values, or rows that the other side's order would not tell from a fault.
        """
        old, new, trained = read_index(target), read_index(like), self._trained_keys()
        for name, key, _ in map(dataclasses.astuple, report.matches):
            if name not in self._untrained or key in trained:
                continue
            order = row_order(read_value(old, key), read_value(new, key))
            if order is not None:
                self._say(
                    f"{key.removesuffix(_VALUE)} keeps its own values: they are the rows of {name} in another order, and neither "
                    "script trains them. Rows that no recorded batch reads are not compared."
                )
                yield name, order

    def _with_new_layout(self, source: str) -> str:
        """Returns the prefix of a copy of a checkpoint, with regrouped variables and slots, and rows in the new script's order."""
        draft = Draft(read_index(source))
        for name, (_, shape) in self._regrouped.items():
            for key, entry in list(draft.entries.items()):
                if (key == name or key.startswith(f"{name}/")) and math.prod(entry.shape) == math.prod(shape):
                    size = dtypes.num_bytes(entry.dtype, shape)
                    draft.put(key, tensors.Tensor(entry.dtype, shape, size, draft.reader(key)))
        for name, order in self._orders.items():
            entry = draft.entries[name]
            size, read = dtypes.num_bytes(entry.dtype, entry.shape), functools.partial(_rows, draft.reader(name), order)
            draft.put(name, tensors.Tensor(entry.dtype, entry.shape, size, read))
        prefix = self._folder / "regrouped"
        publish(draft, prefix, _SCRATCH, ScratchDisk())
        return str(prefix)

    def _momentum_rate(self) -> float | None:
        """Returns the learning rate of the next step if a slot of Keras contains it and a schedule gives it; else None."""
        found = [
            optimizer for optimizer in self._optimizers if hasattr(optimizer, "momentum") and type(optimizer).__name__ == "SGD"
        ]
        for optimizer in found:
            rate = getattr(optimizer, "_learning_rate", None)  # the other family keeps a schedule as learning_rate
            rate = getattr(optimizer, "learning_rate", None) if rate is None else rate
            if callable(rate) and not isinstance(rate, tf.Variable) and optimizer.momentum:
                return float(rate(optimizer.iterations))
        return None


def _flat(variable: Named) -> Named:
    return variable._replace(entry=variable.entry._replace(shape=(math.prod(variable.entry.shape),)))


def _squeezed(variable: Named) -> Named:
    shape = tuple(size for size in variable.entry.shape if size != 1)
    return variable._replace(entry=variable.entry._replace(shape=shape))


def row_order(old: Any, new: Any) -> Any | None:
    """Returns the old row of each new one, if a table has exactly the old rows in another order; else None.

    Args:
        old, new: Arrays of the two sides.

    Example:
        >>> row_order(np.array([[1, 2], [3, 4], [5, 6]]), np.array([[5, 6], [1, 2], [3, 4]])).tolist()
        [2, 0, 1]
        >>> row_order(np.array([1, 2]), np.array([1, 3])) is row_order(np.array([1, 2]), np.array([1, 2])) is None
        True
    """
    if old.shape != new.shape or not old.size or not old.ndim or old.dtype.hasobject:
        return None
    rows = [np.ascontiguousarray(side).reshape(len(side), -1) for side in (old, new)]
    keys = [side.view(np.dtype((np.void, side.itemsize * side.shape[1]))).ravel() for side in rows]
    here, there = (np.argsort(side, kind="stable") for side in keys)
    order = np.empty_like(here)
    order[there] = here
    is_other = not np.array_equal(order, np.arange(len(order)))
    return order if is_other and keys[0][order].tobytes() == keys[1].tobytes() else None


def _rows(read: Callable[[], Iterable[bytes]], order: Any) -> list[bytes]:
    """Returns the bytes of a variable's rows in another order."""
    rows = np.frombuffer(b"".join(read()), np.uint8).reshape(len(order), -1)
    return [rows[order].tobytes()]


def build_optimizer(optimizer: Any, variables: Sequence[Any]) -> None:
    """Makes the slots of an optimizer of either family."""
    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    elif hasattr(optimizer, "_create_all_weights"):  # tf_keras.optimizers.legacy
        with contextlib.suppress(NotImplementedError):
            optimizer._create_all_weights(variables)


def _names(prefix: str) -> dict[str, str]:
    """Returns the key of each variable of a checkpoint -> its name, if no other variable has it: users know the names of layers."""
    model = read_object_model(read_index(prefix))
    variables = model.variables
    counts = Counter(variable.name for variable in variables)
    return {variable.key: variable.name for variable in variables if variable.name and counts[variable.name] == 1}


def _tensor(variable: Any) -> tensors.Tensor:
    """Returns a variable as a tensor to write, whose bytes are copied when it is written: not those of all variables at once."""
    number, shape = dtypes.number(variable.dtype.name), tuple(variable.shape)
    return tensors.Tensor(number, shape, dtypes.num_bytes(number, shape), lambda: [variable.numpy().tobytes()])


def _variables_of(index: Index, paths: Mapping[int, tuple[Any, str]]) -> dict[str, Any]:
    """Returns the variable of each key of a checkpoint; none if only TensorFlow can write all of its values.

    TensorFlow writes values of other things, values in another form, and variables whose shape is not fully defined.

    Args:
        index: Index of the checkpoint, which has the present values.
        paths: Things that were written, and their paths.
    """
    found = {f"{path}{_VALUE}": thing for thing, path in paths.values() if isinstance(thing, tf.Variable)}
    if found.keys() != index.entries.keys() - {OBJECT_GRAPH} or not all(one.shape.is_fully_defined() for one in found.values()):
        return {}
    is_same = all(
        dtypes.dtype(index.entries[key].dtype).size and read_value(index, key).tobytes() == variable.numpy().tobytes()
        for key, variable in found.items()
    )
    return found if is_same else {}


def _paths_of(checkpoint: Any) -> dict[int, tuple[Any, str]]:
    """Returns the id of each thing that a checkpoint writes -> the thing, and its path."""
    view = tf.train.TrackableView(checkpoint)
    paths: dict[int, tuple[Any, str]] = {id(checkpoint): (checkpoint, "")}
    waiting = [checkpoint]
    for thing in waiting:  # the nearest path to each, as TensorFlow takes it
        for name, child in view.children(thing).items():
            if id(child) not in paths:
                paths[id(child)] = child, f"{paths[id(thing)][1]}/{_escaped(name)}".lstrip("/")
                waiting.append(child)
    known = list(paths.values())
    for optimizer, path in known:  # a legacy one keeps its slots beside their variables
        for name in getattr(optimizer, "get_slot_names", list)():
            for variable, owner in known:
                slot = _slot(optimizer, variable, name)
                if slot is not None:
                    paths.setdefault(id(slot), (slot, f"{owner}/.OPTIMIZER_SLOT/{path}/{_escaped(name)}"))
    return paths


def _content(paths: Mapping[int, tuple[Any, str]]) -> list[tuple[str, Any]]:
    """Returns each path with its variable, or with the type of anything else: TensorFlow makes some lists anew each time."""
    return [(path, id(thing) if isinstance(thing, tf.Variable) else type(thing)) for thing, path in paths.values()]


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _slot(optimizer: Any, variable: Any, name: str) -> Any:
    """Returns a variable's slot in a legacy optimizer; None if it has none."""
    if not isinstance(variable, tf.Variable):
        return None
    with contextlib.suppress(AttributeError, KeyError):  # as TensorFlow asks for it
        return optimizer.get_slot(variable, name)
    return None


def _keys_of_namesakes(paths: Mapping[int, tuple[Any, str]]) -> dict[int, str]:
    """Returns the keys in a checkpoint of those variables that have the name of another one."""
    found = {key: (thing.name, path) for key, (thing, path) in paths.items() if isinstance(thing, tf.Variable)}
    counts = Counter(name for name, _ in found.values())
    return {key: f"{path}{_VALUE}" for key, (name, path) in found.items() if counts[name] > 1}


def _global_step(prefix: str) -> int | None:
    index = read_index(prefix)
    return int(read_value(index, "global_step")) if "global_step" in index.entries else None


def _ambiguous(report: ConversionReport, names: Mapping[str, str]) -> BridgeError:
    by_sources: dict[tuple[str, ...], list[str]] = {}
    for target, sources in report.ambiguous.items():
        by_sources.setdefault(sources, []).append(names.get(target, target.removesuffix(_VALUE)))
    lines = []
    for sources, targets in by_sources.items():
        lines += [f"    {source} = {target}" for source, target in zip(sources, targets, strict=False)]
        if len(sources) != len(targets):
            lines.append(
                f"    # {len(sources)} old and {len(targets)} new variables: {', '.join(sources)}; {', '.join(targets)}"
            )
    return BridgeError(
        "Variables of equal shape cannot be paired by their names.",
        expected="one counterpart for each variable of the new script",
        received=f"{len(report.ambiguous)} ambiguous variables",
        fix="Give the pairs with --map FILE, or --accept-order if those below are right; with --resume FOLDER from the first run on, "
        "only the new script runs again. The probable pairs, as such a file:\n" + "\n".join(lines),
    )
