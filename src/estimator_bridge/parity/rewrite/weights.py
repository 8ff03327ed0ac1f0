"""Values of the old script in the new script's variables and optimizer slots, through the checkpoint converter."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.compat.checkpoint import ConversionReport, convert, read_index
from estimator_bridge.compat.checkpoint.models.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.names.matching import Named, match
from estimator_bridge.compat.checkpoint.reading.tensors import Stored
from estimator_bridge.compat.checkpoint.writing.publish import Options, write_tensors
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.rewrite.feeding import Say, is_regrouped
from estimator_bridge.parity.rewrite.plan import RewritePlan

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
        self._forget_bias = described.get("forget_bias", {})
        self._folder, self._plan, self._say = folder, plan, say
        self._regrouped: dict[str, tuple[str, tuple[int, ...]]] = {}  # old variable -> key and shape of the new one
        self.models = models
        self._optimizers = optimizers
        names = ["model", *(f"model_{i}" for i in range(1, len(models)))]
        kept = ["optimizer", *(f"optimizer_{i}" for i in range(1, len(optimizers)))]
        self._first_step: int | None = None  # global step of the first values that were given back
        self._checkpoint = tf.train.Checkpoint(
            **dict(zip(names, models, strict=False)), **dict(zip(kept, optimizers, strict=False))
        )

        self._keys = _keys_of_namesakes(self._checkpoint)

    def name_of(self, variable: Any) -> str:
        """Returns the name of a variable; for several of one name, e.g. of layers in modules, the key in checkpoints."""
        return self._keys.get(id(variable), str(variable.name.partition(":")[0]))

    def write(self, name: str) -> str:
        """Writes the present values; returns the prefix."""
        for optimizer in self._optimizers:
            vars(optimizer).pop("_coalesced_children", None)  # Keras keeps those of an optimizer that had no slots yet
        return str(self._checkpoint.write(str(self._folder / name)))

    def give_back(self, source: str, like: str, name: str) -> ConversionReport:
        """Gives the variables the values of a checkpoint of the old script.

        Args:
            source: Prefix of the old checkpoint.
            like: Prefix of the present values.
            name: Name of the converted checkpoint.

        Raises:
            BridgeError: Variables of equal shape are ambiguous, or a pair of --map does not exist.
        """
        target = str(self._folder / name)
        report = self._convert(source, target, like)
        if not self._regrouped and (found := self._regroup(report, source, like)):
            self._regrouped = found
            report = self._convert(source, target, like)
        if report.ambiguous:
            raise _ambiguous(report, _names(like))
        kept = [variable for model in self.models for metric in getattr(model, "metrics", ()) for variable in metric.variables]
        rates = (getattr(optimizer, "learning_rate", None) for optimizer in self._optimizers)  # no variables in TensorFlow 1
        kept += [rate for rate in rates if isinstance(rate, tf.Variable)]
        step = _global_step(source)
        if self._first_step is None:
            self._first_step = step
        elif step == self._first_step:  # a training that does not count its steps; the new one's bias corrections go on
            kept += [optimizer.iterations for optimizer in self._optimizers]
        before = [variable.numpy() for variable in kept]
        self._checkpoint.restore(target).expect_partial()
        for variable, value in zip(kept, before, strict=True):
            variable.assign(value)
        if self._plan.is_shaken:
            self._shake()
        return report

    def _shake(self) -> None:
        """Changes each weight by about a unit in its last place, up or down."""
        random = np.random.RandomState(0)
        for variable in (variable for model in self.models for variable in model.trainable_variables):
            value = variable.numpy()
            if value.dtype.kind != "f":  # numpy does not know the last place of a bfloat16
                continue
            signs = random.choice([-1.0, 1.0], value.shape).astype(value.dtype)
            variable.assign(value * (1 + signs * np.finfo(value.dtype).eps))

    def _convert(self, source: str, target: str, like: str) -> ConversionReport:
        given = dict(self._given(source, like)) | {name: key for name, (key, _) in self._regrouped.items()}
        if self._regrouped:
            source = self._with_new_shapes(source)
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
            learning_rate=self._momentum_rate(),
        )

    def _given(self, source: str, like: str) -> Iterator[tuple[str, str]]:
        """Yields the pairs of --map with the whole keys; those of other shapes are regrouped."""
        old, new = read_index(source).entries, read_index(like).entries
        for name, wanted in self._plan.given:
            key = wanted if wanted in new else f"{wanted}{_VALUE}"
            if (
                name in old
                and key in new
                and old[name].shape != new[key].shape
                and is_regrouped(old[name].shape, new[key].shape)
            ):
                self._regrouped[name] = key, new[key].shape
            yield name, key if key in new else wanted

    def _regroup(self, report: ConversionReport, source: str, like: str) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Pairs variables whose shapes only group the same elements otherwise: (120,) and (120, 1)."""
        entries, model = read_index(source).entries, read_object_model(read_index(like))
        here = [Named(name, name, _flat(entries[name])) for name in report.unmatched_sources if name in entries]
        left = {variable.key: variable for variable in model.variables if variable.key in report.unmatched_targets}
        pairs = match(here, [new._replace(entry=_flat(new.entry)) for new in left.values()]).matches
        found = {pair.source: (pair.target, left[pair.target].entry.shape) for pair in pairs}
        found = {name: (key, shape) for name, (key, shape) in found.items() if is_regrouped(entries[name].shape, shape)}
        for name, (key, shape) in found.items():
            self._say(f"{name} of shape {list(entries[name].shape)} is {key.removesuffix(_VALUE)} of shape {list(shape)}")
        return found

    def _with_new_shapes(self, source: str) -> str:
        """Returns the prefix of a copy of a checkpoint, with regrouped variables and slots."""
        reader = tf.train.load_checkpoint(source)
        values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        for name, (_, shape) in self._regrouped.items():
            same = [key for key, value in values.items() if key == name or key.startswith(f"{name}/")]
            values |= {key: values[key].reshape(shape) for key in same if values[key].size == math.prod(shape)}
        prefix = self._folder / "regrouped"
        write_tensors(prefix, values, Options(update_state=False, overwrite=True))
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


def _flat(entry: Stored) -> Stored:
    return entry._replace(shape=(math.prod(entry.shape),))


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


def _keys_of_namesakes(checkpoint: Any) -> dict[int, str]:
    """Returns the keys in a checkpoint of those variables that have the name of another one."""
    view = tf.train.TrackableView(checkpoint)
    paths: dict[int, tuple[Any, str]] = {id(checkpoint): (checkpoint, "")}
    waiting = [checkpoint]
    for thing in waiting:  # the nearest path to each, as TensorFlow takes it
        for name, child in view.children(thing).items():
            if id(child) not in paths:
                paths[id(child)] = child, f"{paths[id(thing)][1]}/{name.replace('.', '..').replace('/', '.S')}"
                waiting.append(child)
    found = {key: (thing.name, path) for key, (thing, path) in paths.items() if isinstance(thing, tf.Variable)}
    counts = Counter(name for name, _ in found.values())
    return {key: f"{path[1:]}{_VALUE}" for key, (name, path) in found.items() if counts[name] > 1}


def _global_step(prefix: str) -> int | None:
    reader = tf.train.load_checkpoint(prefix)
    return int(reader.get_tensor("global_step")) if reader.has_tensor("global_step") else None


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
        fix="Give the pairs with --map FILE, or --accept-order if the order below is right. The pairs in order, as such a file:\n"
        + "\n".join(lines),
    )
