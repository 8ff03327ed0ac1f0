"""ModernConfig as flat settings by dotted name, for rules, and as nested dictionaries, for files."""

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from estimator_bridge.compat.config.model import LISTS, SECTIONS, ConfigPart, ModernConfig, Strategy
from estimator_bridge.compat.config.reading import kinds
from estimator_bridge.compat.config.reading.kinds import conform
from estimator_bridge.compat.config.tables.graph_options import OPTIONS
from estimator_bridge.errors import BridgeError

_OPTIONS = "graph.options"
"""Setting that contains further settings by name."""


def flatten(config: ModernConfig) -> dict[str, Any]:
    """Returns the settings of a ModernConfig.

    Args:
        config: Modern configuration.

    Returns:
        Dotted name -> value; settings that are not set are absent.

    Example:
        >>> from estimator_bridge.compat.config.model import Graph, ModernConfig
        >>> flatten(ModernConfig(graph=Graph(jit=True, options={"remapping": False})))
        {'graph.jit': True, 'graph.options.remapping': False}
    """
    flat: dict[str, Any] = {}
    for section in SECTIONS:
        values = getattr(config, section)
        flat |= {f"{section}.{field.name}": getattr(values, field.name) for field in dataclasses.fields(values)}
    flat |= {name: getattr(config, name) for name in LISTS}
    flat |= {f"{_OPTIONS}.{key}": value for key, value in flat.pop(_OPTIONS).items()}
    return {name: value for name, value in flat.items() if value is not None and value not in ({}, ())}


def unflatten(settings: Mapping[str, Any]) -> ModernConfig:
    """Returns the ModernConfig of flat settings: the inverse of ``flatten``.

    Args:
        settings: Dotted name -> value.

    Raises:
        BridgeError: A name is no setting, or a value has the wrong type.

    Example:
        >>> unflatten({"threads.intra_op": 2}).threads
        Threads(intra_op=2, inter_op=None)
    """
    tree: dict[str, Any] = {}
    for name, value in settings.items():
        *outer, last = name.split(".", 2 if name.startswith(f"{_OPTIONS}.") else -1)
        inside = tree
        for part in outer:
            inside = inside.setdefault(part, {})
        inside[last] = value
    return from_dict(tree)


def to_dict(config: ModernConfig) -> dict[str, Any]:
    """Returns a ModernConfig as nested dictionaries and lists, which JSON and TOML can hold.

    Args:
        config: Modern configuration; settings that are not set are left out.

    Example:
        >>> from estimator_bridge.compat.config.model import ModernConfig, ConfigPart
        >>> to_dict(ModernConfig(callbacks=(ConfigPart("StopAtStep", {"last_step": 5}),)))
        {'callbacks': [{'kind': 'StopAtStep', 'arguments': {'last_step': 5}}]}
    """
    tree: dict[str, Any] = {section: _plain(getattr(config, section)) for section in (*SECTIONS, *LISTS)}
    return {section: values for section, values in tree.items() if values}


def from_dict(tree: Mapping[str, Any]) -> ModernConfig:
    """Returns the ModernConfig of nested dictionaries: the inverse of ``to_dict``.

    Args:
        tree: Section -> field -> value.

    Raises:
        BridgeError: A key is unknown, or its value has the wrong type.

    Example:
        >>> from_dict({"checkpoint": {"max_to_keep": "all"}}).checkpoint.max_to_keep
        'all'
    """
    _known(tree, (*SECTIONS, *LISTS), "a section of a ModernConfig")
    arguments: dict[str, Any] = {name: _section(name, cls, tree[name]) for name, cls in SECTIONS.items() if name in tree}
    if "strategy" in arguments:
        _check_strategy(arguments["strategy"])
    if "graph" in arguments:
        _known(arguments["graph"].options, OPTIONS, "an option that TensorFlow acts on", "graph.options.")
    arguments |= {name: tuple(_part(name, one) for one in _list(name, tree[name])) for name in LISTS if name in tree}
    return ModernConfig(**arguments)


def checkpoint_folder(config: ModernConfig, model_dir: str) -> str:
    """Returns the folder of this process's checkpoints: all workers have to save, and model_dir is the chief's.

    Args:
        config: Modern configuration.
        model_dir: Folder of the job.

    Returns:
        model_dir, or a folder inside of it that is never read.

    Example:
        >>> checkpoint_folder(ModernConfig(), "model")
        'model'
    """
    own = config.cluster
    chief = own.task_type == "chief" or (own.task_type == "worker" and own.task_id == 0 and "chief" not in own.jobs)
    if config.strategy.name != "MultiWorkerMirroredStrategy" or not own.jobs or chief or own.task_type == "evaluator":
        return model_dir
    return f"{model_dir}/workertemp_{own.task_type}_{own.task_id}"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = ((field.name, _plain(getattr(value, field.name))) for field in dataclasses.fields(value))
        return {name: one for name, one in fields if one is not None and one != {}}
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def _section(name: str, cls: type[Any], values: Any) -> Any:
    if not isinstance(values, Mapping):
        raise BridgeError(f"{name} is not a section.", expected="its fields by name", received=values)
    types = typing.get_type_hints(cls)
    _known(values, types, "a field of its section", f"{name}.")
    return cls(**{field: conform(value, types[field], f"{name}.{field}") for field, value in values.items()})


def _check_strategy(own: Strategy) -> None:
    for name in ("partitioner", "evaluation"):
        given = getattr(own, name)
        if given and not isinstance(given.get("kind"), str):
            what, expected = f"strategy.{name} does not name a class.", '{"kind": ..., argument: value}'
            raise BridgeError(what, expected=expected, received=given)
    names = ((own.name, kinds.STRATEGIES), (own.cross_device_ops, kinds.CROSS_DEVICE_OPS), (own.communication, kinds.COMMUNICATION),
             (own.evaluation.get("kind"), kinds.STRATEGIES), (own.partitioner.get("kind"), kinds.PARTITIONERS))  # fmt: skip
    for named, known in names:
        _known([] if named is None else [named], known, "a class or an implementation of tf.distribute", "strategy: ")
    if own.num_packs is not None and own.cross_device_ops not in kinds.PACKING:
        what, expected = "strategy.num_packs: nothing here packs gradients.", " or ".join(kinds.PACKING)
        raise BridgeError(what, expected=f"strategy.cross_device_ops: {expected}", received=own.cross_device_ops)
    if own.partitioner:
        given = {key: value for key, value in own.partitioner.items() if key != "kind"}
        kinds.PARTITIONERS[own.partitioner["kind"]].check(given, f"strategy.partitioner: {own.partitioner['kind']}")
    if own.evaluation:
        _section("strategy.evaluation", Strategy, {key: value for key, value in own.evaluation.items() if key != "kind"})


def _list(name: str, values: Any) -> Iterable[Any]:
    if not isinstance(values, list | tuple):
        raise BridgeError(f"{name} is not a list.", expected='[{"kind": ..., "arguments": {...}}]', received=values)
    return values


def _part(name: str, one: Any) -> ConfigPart:
    if isinstance(one, ConfigPart):
        one = {"kind": one.kind, "arguments": one.arguments}
    if not isinstance(one, Mapping) or not {"kind"} <= set(one) <= {"kind", "arguments"}:
        what, expected = f"{name} contains an element of the wrong form.", '{"kind": ..., "arguments": {...}}'
        raise BridgeError(what, expected=expected, received=one)
    _known([one["kind"]], kinds.PARTS[name], f"a kind of {name}")
    part = ConfigPart(one["kind"], conform(one.get("arguments", {}), Mapping[str, Any], f"{name}.arguments"))
    kinds.PARTS[name][part.kind].check(part.arguments, f"{name}: {part.kind}")
    return part


def _known(given: Iterable[str], known: Iterable[str], what: str, prefix: str = "") -> None:
    names = list(known)
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, 1)
            fix = f"Did you mean {prefix}{near[0]}?" if near else None
            raise BridgeError(f"{prefix}{key} is not {what}.", expected=", ".join(names), received=key, fix=fix)
