"""Where configs come from: ConfigProto files, TF_CONFIG, RunConfig as JSON, and what this package prints."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.config.cluster import tf_config
from estimator_bridge.compat.config.legacy import LegacyConfig
from estimator_bridge.compat.config.legacy_types import checked
from estimator_bridge.compat.config.model import LISTS, SECTIONS, Part
from estimator_bridge.compat.config.positions import Document, read_object
from estimator_bridge.compat.config.proto.fields import set_fields
from estimator_bridge.compat.config.proto.reading import is_text, read_binary, read_json, read_text
from estimator_bridge.compat.config.tables import DISTRIBUTE_CONFIG, RUN_CONFIG, TF_CONFIG
from estimator_bridge.compat.config.tables.run_config import normal
from estimator_bridge.errors import BridgeError

KINDS = ("config-proto", "tf-config", "run-config", "modern")
OBJECTS = (
    "TF_CONFIG",
    "session_config",
    "tpu_config",
    "train_distribute",
    "eval_distribute",
    "experimental_distribute",
    "train_spec",
    "eval_spec",
    "partitioner",
    "sync_replicas_optimizer",
)
"""Keys of a RunConfig's JSON that hold objects."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A file or a variable that was read.

    Attributes:
        name: for errors.
        kind: one of KINDS.
        where: position of a field by its dotted name.
        legacy: what it says, unless it is a modern configuration.
        modern: nested dictionaries of a ModernConfig, if it is one.
    """

    name: str
    kind: str
    where: Callable[[str], str]
    legacy: LegacyConfig = dataclasses.field(default_factory=LegacyConfig)
    modern: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def read_source(source: str, kind: str | None = None, *, resolve_hosts: bool = False) -> Source:
    """Reads a configuration.

    Args:
        source: path of a file, or ``env`` for the TF_CONFIG of this process.
        kind: one of KINDS; found out by default.
        resolve_hosts: look the hosts of a TF_CONFIG up.

    Returns:
        What was read.

    Raises:
        BridgeError: with the position, for what is none of these.
    """
    if source == "env":
        _refuse_other(source, kind, "tf-config")
        return _tf_config(tf_config.from_environment(), resolve_hosts)
    data = _bytes(source)
    if not data.strip():
        raise BridgeError(f"{source}, line 1, column 1: the file is empty.", expected=", ".join(KINDS))
    if not is_text(data):
        _refuse_other(source, kind, "config-proto")
        return _proto(source, "", set_fields(read_binary(data, source)))
    text = data.decode()
    found = kind or _kind(source, text)
    if found == "config-proto":
        return _proto(source, text, set_fields(read_text(text, source)))
    if found == "modern" and not text.lstrip().startswith("{"):
        return Source(source, "modern", lambda name: source, modern=_toml(text, source))
    document = _as_printed(read_object(text, source, "a TF_CONFIG, a RunConfig or a ModernConfig as JSON"))
    if found == "modern" or (kind is None and _is_modern(document.value)):
        return Source(source, "modern", lambda name: document.where(tuple(name.split("."))), modern=document.value)
    if found == "tf-config" or (kind is None and _is_tf_config(document.value)):
        return _tf_config(document, resolve_hosts)
    return _run_config(document, resolve_hosts)


def with_tf_config(source: Source, environment: Source) -> Source:
    """A legacy configuration under the TF_CONFIG of its environment; what the configuration itself says wins.

    Args:
        source: what was read.
        environment: a TF_CONFIG that was read.

    Returns:
        Both, merged.

    Raises:
        BridgeError: where the two do not fit each other.
    """
    merged = tf_config.merge(environment.legacy.tf_config or {}, source.legacy.tf_config or {})
    together = Document(merged, {}, f"{source.name} and {environment.name}")
    tf_config.check(together, chief_needed=source.legacy.train_distribute is None and bool(merged.get("cluster", {}).get("ps")))
    return dataclasses.replace(source, legacy=dataclasses.replace(source.legacy, tf_config=merged))


def legacy_of(document: Document, *, resolve_hosts: bool = False) -> LegacyConfig:
    """A RunConfig, and what stands around it, from JSON.

    Args:
        document: RunConfig's properties by name; beside them TF_CONFIG, train_spec, eval_spec, partitioner and
            sync_replicas_optimizer. Strategies, hooks and exporters are ``{"class": name, argument: value}``, or just the name.
        resolve_hosts: look the hosts of its TF_CONFIG up.

    Returns:
        The configuration.

    Raises:
        BridgeError: with the position, for a key that is none and for a value of the wrong type.

    Example:
        >>> legacy_of(read_object('{"train_distribute": "MirroredStrategy"}', "run.json")).train_distribute
        Part(kind='MirroredStrategy', arguments={})
    """
    value = document.value
    for key in value:
        if key not in RUN_CONFIG and key not in OBJECTS:
            near = difflib.get_close_matches(key, [*RUN_CONFIG.names, *OBJECTS], 1)
            raise BridgeError(
                f"{document.where((key,))}: {key} is no property of a RunConfig.",
                expected=", ".join([*RUN_CONFIG.names, *(name for name in OBJECTS if name not in RUN_CONFIG)]),
                received=key,
                fix=f"Did you mean {near[0]}?" if near else None,
            )
    distribute = _object(document, "experimental_distribute") or {}
    for key in distribute:
        if key not in DISTRIBUTE_CONFIG:
            where = document.where(("experimental_distribute", key))
            raise BridgeError(
                f"{where}: {key} is no field of a DistributeConfig.", expected=", ".join(DISTRIBUTE_CONFIG.names), received=key
            )
    _check_task(document)
    train, evaluation = _object(document, "train_spec"), _object(document, "eval_spec")
    return LegacyConfig(
        session_config=_session(document),
        run_config=_values(document, "", normal({key: one for key, one in value.items() if key not in OBJECTS})),
        tpu_config=_values(document, "tpu_config", _object(document, "tpu_config")),
        tf_config=_nested_tf_config(document, resolve_hosts),
        train_distribute=_one_strategy(document, "train_distribute", distribute),
        eval_distribute=_one_strategy(document, "eval_distribute", distribute),
        remote_cluster=distribute.get("remote_cluster"),
        train_spec=_values(document, "train_spec", _without(train, "hooks")),
        eval_spec=_values(document, "eval_spec", _eval_steps(_without(evaluation, "exporters"))),
        hooks=_parts(document, train, "hooks"),
        exporters=_parts(document, evaluation, "exporters"),
        partitioner=_part(document, "partitioner", value.get("partitioner")),
        sync_replicas=_values(document, "sync_replicas_optimizer", _object(document, "sync_replicas_optimizer")),
    )


def _bytes(source: str) -> bytes:
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise BridgeError(
            f"{source} cannot be read.", expected="a file, or env for TF_CONFIG", received=error.strerror, fix="Check the path."
        ) from None


def _refuse_other(source: str, asked: str | None, only: str) -> None:
    if asked not in {None, only}:
        raise BridgeError(f"{source} can only be a {only}.", expected=f"--kind {only}, or none", received=f"--kind {asked}")


def _kind(source: str, text: str) -> str:
    if text.lstrip().startswith("{") or source.endswith(".json"):
        return "json"
    return "modern" if source.endswith(".toml") else "config-proto"


def _as_printed(document: Document) -> Document:
    """What ``--format json`` prints holds the configuration beside the report."""
    for side in ("modern", "legacy"):
        if set(document.value) == {side, "report"} and isinstance(document.value[side], dict):
            return _inside(document, side)
    return document


def _inside(document: Document, key: str) -> Document:
    places = {path[1:]: place for path, place in document.places.items() if path[:1] == (key,)}
    return Document(document.value[key], places, document.source)


def _is_modern(value: Mapping[str, Any]) -> bool:
    if set(value) == {"cluster"} and isinstance(value["cluster"], dict):
        return "jobs" in value["cluster"] or "task_type" in value["cluster"]
    return bool(value) and any(key in (*SECTIONS, *LISTS) and key != "cluster" for key in value) and "task" not in value


def _is_tf_config(value: Mapping[str, Any]) -> bool:
    first = {name.partition(".")[0] for name in TF_CONFIG.names} - set(RUN_CONFIG.names)
    return any(key in first for key in value) or not value or set(value) == {"cluster"}


def _tf_config(document: Document, resolve_hosts: bool) -> Source:
    value = document.value
    chief_needed = bool(value.get("cluster", {}).get("ps")) if isinstance(value.get("cluster"), dict) else True
    tf_config.check(document, chief_needed=chief_needed, resolve=resolve_hosts)
    _refuse_lonely_task(document)
    return Source(document.source, "tf-config", _where(document, "TF_CONFIG"), LegacyConfig(tf_config=value))


def _refuse_lonely_task(document: Document) -> None:
    """As a RunConfig does: without a cluster there is one process, worker 0."""
    task = document.value.get("task", {})
    for key, only in (("type", "worker"), ("index", "0")) if not document.value.get("cluster") else ():
        if str(task.get(key, only)) != only:
            raise BridgeError(
                f"{document.where(('task', key))}: task.{key} is wrong: there is no cluster that it could be in.",
                expected=f"{only}, or a cluster",
                received=task[key],
            )


def _run_config(document: Document, resolve_hosts: bool) -> Source:
    return Source(document.source, "run-config", _where(document, ""), legacy_of(document, resolve_hosts=resolve_hosts))


def _where(document: Document, prefix: str) -> Callable[[str], str]:
    def where(name: str) -> str:
        inner = name.removeprefix(f"{prefix}.") if prefix else name
        return document.where(tuple(inner.split(".")))

    return where


def _proto(source: str, text: str, fields: Mapping[str, Any]) -> Source:
    def where(name: str) -> str:
        found = re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", text)
        if found is None:
            return source
        line = text.count("\n", 0, found.start()) + 1
        return f"{source}, line {line}, column {found.start() - text.rfind(chr(10), 0, found.start())}"

    return Source(source, "config-proto", where, LegacyConfig(session_config=fields))


def _toml(text: str, source: str) -> Mapping[str, Any]:
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        found: Mapping[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is the first; a number may have too many digits
        raise BridgeError(f"{source}: this is no TOML.", expected="a ModernConfig as TOML", received=error) from None
    return found


def _session(document: Document) -> Mapping[str, Any] | None:
    value = document.value.get("session_config")
    if value is None:
        return None
    where = document.where(("session_config",))
    if isinstance(value, str):
        return set_fields(read_text(value, where))
    if not isinstance(value, dict):
        raise BridgeError(f"{where}: session_config is no ConfigProto.", expected="an object, or a text proto", received=value)
    return set_fields(read_json(value, where))


def _nested_tf_config(document: Document, resolve_hosts: bool) -> Mapping[str, Any] | None:
    value = _object(document, "TF_CONFIG")
    if value is None:
        return None
    strategies = (document.value, _object(document, "experimental_distribute") or {})
    chief_needed = all(one.get("train_distribute") is None for one in strategies)
    tf_config.check(_inside(document, "TF_CONFIG"), chief_needed=chief_needed, resolve=resolve_hosts)
    return value


def _check_task(document: Document) -> None:
    """RunConfig's own cluster_spec, task_type and task_id fit each other as a TF_CONFIG's have to."""
    names = {"cluster_spec": ("cluster",), "task_type": ("task", "type"), "task_id": ("task", "index")}
    values = {name: document.value.get(name) for name in names}
    if not values["cluster_spec"] or values["task_type"] is None:
        return
    task = {"type": values["task_type"], "index": values["task_id"]}
    places = {
        (*inner, *path[1:]): place
        for path, place in document.places.items()
        for name, inner in names.items()
        if path[0:1] == (name,)
    }
    tf_config.check(Document({"cluster": values["cluster_spec"], "task": task}, places, document.source), chief_needed=False)


def _object(document: Document, key: str) -> Mapping[str, Any] | None:
    value = document.value.get(key)
    if value is not None and not isinstance(value, dict):
        raise BridgeError(f"{document.where((key,))}: {key} is no object.", expected="its fields by name", received=value)
    return value


def _values(document: Document, prefix: str, values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if values is None:
        return None
    kept = {}
    for name, value in values.items():
        if value is not None:
            full = f"{prefix}.{name}" if prefix else name
            try:
                kept[name] = checked(full, value)
            except BridgeError as error:
                raise BridgeError(f"{document.where(tuple(full.split('.')))}: {error}") from None
    return kept


def _without(values: Mapping[str, Any] | None, *names: str) -> Mapping[str, Any] | None:
    return None if values is None else {name: value for name, value in values.items() if name not in names}


def _eval_steps(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """EvalSpec(steps=None), the whole input, is 0 from here on."""
    return values if values is None or values.get("steps", 0) is not None else {**values, "steps": 0}


def _one_strategy(document: Document, name: str, distribute: Mapping[str, Any]) -> Part | None:
    if name in distribute and document.value.get(name) is not None:
        raise BridgeError(
            f"{document.where((name,))}: {name} is in RunConfig and in experimental_distribute.",
            expected="one of them",
            fix="Drop one of the two.",
        )
    return _part(document, name, distribute.get(name, document.value.get(name)))


def _parts(document: Document, values: Mapping[str, Any] | None, name: str) -> tuple[Part, ...]:
    found = (values or {}).get(name) or []
    several = found if isinstance(found, list) else [found]
    return tuple(part for part in (_part(document, name, one) for one in several) if part is not None)


def _part(document: Document, name: str, value: Any) -> Part | None:
    if value is None:
        return None
    if isinstance(value, str):
        return Part(value)
    if isinstance(value, dict) and isinstance(value.get("class"), str):
        return Part(value["class"], {key: one for key, one in value.items() if key != "class"})
    raise BridgeError(
        f"{document.where((name,))}: {name} names no class.",
        expected='"MirroredStrategy", or {"class": ..., "devices": ...}',
        received=value,
    )
