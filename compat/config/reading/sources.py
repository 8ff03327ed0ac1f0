"""Sources of configs: ConfigProto files, TF_CONFIG, RunConfig as JSON, and output of ``convert config``."""

import dataclasses
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.config.cluster import tf_config
from estimator_bridge.compat.config.model import LISTS, SECTIONS, LegacyConfig
from estimator_bridge.compat.config.proto.fields import is_text, read_binary, read_text, set_fields
from estimator_bridge.compat.config.reading.legacy_json import legacy_of
from estimator_bridge.compat.config.tables import RUN_CONFIG, TF_CONFIG
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import Document, read_object

KINDS = ("config-proto", "tf-config", "run-config", "modern")


@dataclasses.dataclass(frozen=True)
class Source:
    """File or variable that was read.

    Attributes:
        name: Name for errors.
        kind: One of KINDS.
        where: Function from a field's dotted name to its position.
        legacy: Legacy configuration, unless it is a modern one.
        modern: Nested dictionaries of a ModernConfig, if it is one.
    """

    name: str
    kind: str
    where: Callable[[str], str]
    legacy: LegacyConfig = dataclasses.field(default_factory=LegacyConfig)
    modern: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def read_source(source: str, kind: str | None = None, *, resolve_hosts: bool = False) -> Source:
    """Reads a configuration.

    Args:
        source: Path of a file, or ``env`` for the TF_CONFIG of this process.
        kind: One of KINDS; detected by default.
        resolve_hosts: True to look up the hosts of a TF_CONFIG.

    Returns:
        The source with its configuration.

    Raises:
        BridgeError: The source is none of KINDS, or is invalid; the error gives the position.
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
        return Source(source, "modern", _where(document), modern=document.value)
    if found == "tf-config" or (kind is None and _is_tf_config(document.value)):
        return _tf_config(document, resolve_hosts)
    return Source(document.source, "run-config", _where(document), legacy_of(document, resolve_hosts=resolve_hosts))


def with_tf_config(source: Source, environment: Source) -> Source:
    """Adds the TF_CONFIG of its environment to a legacy configuration; the configuration's own values take precedence.

    Args:
        source: Legacy configuration.
        environment: TF_CONFIG.

    Returns:
        The merged configuration.

    Raises:
        BridgeError: The two do not fit each other.
    """
    merged = tf_config.merge(environment.legacy.tf_config or {}, source.legacy.tf_config or {})
    together = Document(merged, {}, f"{source.name} and {environment.name}")
    tf_config.check(together, chief_needed=source.legacy.train_distribute is None and bool(merged.get("cluster", {}).get("ps")))
    return dataclasses.replace(source, legacy=dataclasses.replace(source.legacy, tf_config=merged))


def _bytes(source: str) -> bytes:
    try:
        return Path(source).read_bytes()
    except OSError as error:
        expected, fix = "a file, or env for TF_CONFIG", "Check the path."
        raise BridgeError(f"{source} cannot be read.", expected=expected, received=error.strerror, fix=fix) from None


def _refuse_other(source: str, asked: str | None, only: str) -> None:
    if asked not in {None, only}:
        raise BridgeError(f"{source} can only be a {only}.", expected=f"--kind {only}, or none", received=f"--kind {asked}")


def _kind(source: str, text: str) -> str:
    if text.lstrip().startswith("{") or source.endswith(".json"):
        return "json"
    return "modern" if source.endswith(".toml") else "config-proto"


def _as_printed(document: Document) -> Document:
    """Returns the configuration alone if a file also contains the report, as ``--format json`` prints it."""
    for side in ("modern", "legacy"):
        if set(document.value) == {side, "report"} and isinstance(document.value[side], dict):
            return document.inside(side)
    return document


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
    return Source(document.source, "tf-config", _where(document, "TF_CONFIG."), LegacyConfig(tf_config=value))


def _refuse_lonely_task(document: Document) -> None:
    """Refuses a task other than worker 0 without a cluster, as a RunConfig does."""
    task = document.value.get("task", {})
    for key, only in (("type", "worker"), ("index", "0")) if not document.value.get("cluster") else ():
        if str(task.get(key, only)) != only:
            what = f"task.{key} is wrong: there is no cluster."
            raise document.error(("task", key), what, expected=f"{only}, or a cluster", received=task[key])


def _where(document: Document, prefix: str = "") -> Callable[[str], str]:
    return lambda name: document.where(tuple(name.removeprefix(prefix).split(".")))


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
        raise BridgeError(
            f"{source}: this is not TOML.",
            expected="a ModernConfig as TOML",
            received=error,
            fix="Correct that line; strings stand in quotes, and a key occurs only once.",
        ) from None
    return found
