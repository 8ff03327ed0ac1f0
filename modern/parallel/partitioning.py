"""Partitions: variables that the plan cuts into shards, by the partitioners of TensorFlow 1, whatever the script asks for.

Embeddings are looked up where the shards live, and dense weights are put together where they are used. Checkpoints keep the name and the
shape of the whole variable.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf
from tensorflow.python.ops import embedding_ops
from tensorflow.python.ops.variables import PartitionedVariable

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import refused
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.norms import norms_of_one
from estimator_bridge.modern.parallel.plans.plan import PlaceRule
from estimator_bridge.runtime.patching import wrapped
from estimator_bridge.runtime.user_code import is_users

v1 = tf.compat.v1
_SHARD = re.compile(r".+/part_\d+")
_BESIDE_SHARD = re.compile(r"(.+/part_\d+)(/.+)")
_CUT: WeakKeyDictionary[tf.Graph, set[str]] = WeakKeyDictionary()


@contextlib.contextmanager
def partitioned(rules: Sequence[PlaceRule]) -> Iterator[None]:
    """While active, ``tf.get_variable`` cuts the trained variables whose names match a rule with shards.

    A shard starts with its part of what the initializer gives the whole variable. Variables that the script cuts itself stay as they are.

    Args:
        rules: Rules of a plan.

    Raises:
        NotSupportedError: A variable cannot be cut, or the script uses it in a way that TensorFlow 1 has only for whole variables.
    """
    if all(rule.shards == 1 for rule in rules):
        yield
        return

    def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        rule = next((rule for rule in rules if re.fullmatch(rule.match, name)), None)
        is_whole = kwargs.get("trainable") is not False and kwargs.get("partitioner") is None
        if rule is not None and rule.shards > 1 and is_whole:
            given, shape = kwargs.get("initializer"), kwargs.get("shape")
            if shape is None and given is not None and not callable(given):
                shape = tf.convert_to_tensor(given).shape
            rule = fitting(rule, tf.TensorShape(shape), tf.as_dtype(kwargs.get("dtype") or tf.float32))
        if rule is not None and rule.shards > 1 and is_whole:
            kwargs |= {"partitioner": _partitioner(name, rule), "initializer": _sliced(given), "shape": shape}
            _CUT.setdefault(tf.compat.v1.get_default_graph(), set()).add(name)
        return getter(name, *args, **kwargs)

    def look_up(original: Any, params: Any, ids: Any, partition_strategy: str = "mod", *args: Any, **kwargs: Any) -> Any:
        shards = list(params) if isinstance(params, PartitionedVariable | list | tuple) else []
        names = {info.full_name for one in shards if (info := _slice_info(one)) is not None}
        # Row i of the whole variable, as without a plan; "mod" would deal the rows out to the shards.
        strategy = "div" if names and names <= _CUT.get(v1.get_default_graph(), set()) else partition_strategy
        return original(params, ids, strategy, *args, **kwargs)

    scope = v1.variable_scope(v1.get_variable_scope(), custom_getter=get, auxiliary_name_scope=False)
    try:
        with scope, wrapped(embedding_ops, _embedding_lookup_and_transform=look_up):
            yield
        _name_slots()
    except (TypeError, AttributeError) as error:
        if "PartitionedVariable" not in str(error):
            raise
        refusal = NotSupportedError(
            "The script uses a variable that the plan cuts in a way that only whole variables have.",
            expected="lookups, products and the like; not slices or assignments of a variable with shards",
            received=f"{error}; with shards: {', '.join(sorted(_CUT.get(v1.get_default_graph(), ())))}",
            fix="Leave that variable's [[place]] out of the plan, or give it a device.",
        )
        lines = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        refusal.asked_by = next((line for line in reversed(lines) if is_users(line.rpartition(":")[0])), None)
        raise refusal from error


def cut_by_plan(model: ModelGraph) -> Collection[str]:
    """Returns the names of the variables of a graph that ``partitioned`` has cut."""
    return _CUT.get(model.graph, set())


def check_shards(model: ModelGraph, step: Plan) -> None:
    """Refuses a step that computes something from all elements of a shard where it should be from those of the whole variable.

    Args:
        model: Training graph.
        step: Training step of the graph.

    Raises:
        NotSupportedError: It has a norm or the like of one shard or of its gradient, e.g., for ``tf.clip_by_norm`` or LAMB.
    """
    cut = cut_by_plan(model)
    names = (variable.op.name for variable in model.variables())
    shards = {name for name in names if _SHARD.fullmatch(name) and name.rpartition("/")[0] in cut}
    for op, name in norms_of_one(model, step, shards):
        raise refused(
            op,
            f"{op.name!r} ({op.type}) is computed from one shard of a variable that the plan cuts, not from the whole variable.",
            expected="optimizers and clipping that treat each element alike, or the norm of all gradients together",
            received=name,
            fix="Leave that variable's shards out of the plan.",
        )


def _name_slots() -> None:
    """Saves what a script itself keeps beside a shard, as its own optimizer does, as part of the whole variable's, as TensorFlow's slots."""
    variables = {variable.op.name: variable for variable in v1.global_variables()}
    for name, variable in variables.items():
        found = _BESIDE_SHARD.fullmatch(name)
        shard = variables.get(found[1]) if found else None
        info = _slice_info(shard)
        if found and shard is not None and info is not None and _slice_info(variable) is None and variable.shape == shard.shape:
            own = v1.Variable.SaveSliceInfo(f"{info.full_name}{found[2]}", info.full_shape, info.var_offset, info.var_shape)
            variable._set_save_slice_info(own)


def _slice_info(variable: Any) -> Any:
    return variable._get_save_slice_info() if hasattr(variable, "_get_save_slice_info") else None


def fitting(rule: PlaceRule, shape: tf.TensorShape, dtype: tf.DType) -> PlaceRule:
    """Returns a rule with as many shards as a variable has room for, if the rule leaves that open."""
    if not rule.min_bytes:
        return rule
    if rule.axis >= (shape.rank or 0):
        return dataclasses.replace(rule, shards=1)
    numbers = v1.min_max_variable_partitioner(rule.shards, rule.axis, rule.min_bytes)(shape=shape, dtype=dtype)
    return dataclasses.replace(rule, shards=numbers[rule.axis])


def _partitioner(name: str, rule: PlaceRule) -> Callable[..., Any]:
    def cut(shape: Any, dtype: Any) -> Any:
        rank = shape.rank or 0
        if rule.axis >= rank or (shape[rule.axis] or 0) < rule.shards:
            lengths = [length or 0 for length in shape.as_list()] if rank else []
            longest = max(range(rank), key=lambda axis: lengths[axis], default=0)
            nearest = f"shards = {min(rule.shards, lengths[longest])}, axis = {longest}" if max(lengths, default=0) > 1 else ""
            raise NotSupportedError(
                f"The plan cuts {name!r} into {rule.shards} shards along axis {rule.axis}, which its shape does not allow.",
                expected=f"an axis of length {rule.shards} or more",
                received=f"shape {shape}",
                fix=f"{f'Set {nearest}' if nearest else 'Give it a device in place of shards'}, or let the pattern match other variables.",
            )
        return v1.fixed_size_partitioner(rule.shards, rule.axis)(shape=shape, dtype=dtype)

    return cut


def _sliced(initializer: Any) -> Any:
    """Returns an initializer whose values of all shards are those of the whole variable."""
    made = initializer() if isinstance(initializer, type) else initializer
    if made is None or not callable(made):
        return made if made is not None else _sliced(v1.glorot_uniform_initializer())
    wholes: dict[Any, Any] = {}

    def slice_of(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        graph = tf.compat.v1.get_default_graph()
        if graph not in wholes:
            wholes[graph] = made(partition_info.full_shape, dtype)
        return tf.slice(wholes[graph], partition_info.var_offset, shape)

    return slice_of
