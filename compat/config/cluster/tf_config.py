"""Reading, merging, checking and writing of TF_CONFIG."""

import functools
import json
import os
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.cluster.faults import correct, find_faults
from estimator_bridge.compat.config.tables.tf_config import TF_CONFIG
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import Document, path_text, read_object

EXPECTED = 'a TF_CONFIG such as {"cluster": {"chief": ["host:2222"]}, "task": {"type": "chief", "index": 0}}'


def read_environment() -> Document | None:
    """Returns the TF_CONFIG of this process with positions, or None without one. Nothing else reads the variable.

    Raises:
        BridgeError: The variable is not a JSON object.
    """
    text = os.environ.get("TF_CONFIG")
    return _parse(text) if text else None


@functools.lru_cache(maxsize=1)  # a process asks often, and its TF_CONFIG stays
def _parse(text: str) -> Document:
    return read_object(text, "TF_CONFIG", EXPECTED)


def from_environment() -> Document:
    """Returns the TF_CONFIG of this process, where it is required.

    Raises:
        BridgeError: The variable is not set, or is not a JSON object.
    """
    document = read_environment()
    if document is None:
        raise BridgeError("TF_CONFIG is not set.", expected=EXPECTED, fix="Set it, or name a file that holds it.")
    return document


def check(document: Document, *, chief_needed: bool = True, resolve: bool = False) -> None:
    """Refuses an invalid TF_CONFIG.

    Args:
        document: JSON object, with positions.
        chief_needed: False under MultiWorkerMirroredStrategy, which makes the first worker the chief.
        resolve: True to look up every host.

    Raises:
        BridgeError: Keys are wrong; the error gives their positions and the corrected JSON.

    Example:
        >>> check(read_object('{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}', "job.json"))
    """
    _refuse_unknown(document)
    found = find_faults(document.value, chief_needed=chief_needed, resolve=resolve)
    if not found:
        return
    first = found[0]
    others = "; ".join(f"{document.where(fault.path)}: {path_text(fault.path)}: {fault.what}" for fault in found[1:])
    mended = correct(document.value, chief_needed=chief_needed)
    fix = f"Corrected:\n{mended}" if mended else "Correct that key."
    what = f"{path_text(first.path)} is wrong: {first.what}."
    raise document.error(first.path, what, expected=EXPECTED, received=others or None, fix=fix)


def merge(environment: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two TF_CONFIGs as resolvers do, key by key; explicit values take precedence.

    Args:
        environment: TF_CONFIG of the process.
        given: Explicit values.

    Returns:
        A TF_CONFIG.

    Example:
        >>> merge({"task": {"type": "worker", "index": 0}, "rpc_layer": "grpc"}, {"task": {"index": 1}})
        {'task': {'type': 'worker', 'index': 1}, 'rpc_layer': 'grpc'}
    """
    merged = {**environment, **given}
    if "task" in environment or "task" in given:
        merged["task"] = {**environment.get("task", {}), **given.get("task", {})}
    return merged


def keys(tf_config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a TF_CONFIG by the names of its table's rows, e.g. ``task.type``, without empty values."""
    flat = {key: value for key, value in tf_config.items() if key != "task"}
    flat |= {f"task.{key}": value for key, value in tf_config.get("task", {}).items()}
    return {key: value for key, value in flat.items() if value not in (None, "", {})}


def legacy_form(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the TF_CONFIG of rows by name: the inverse of ``keys``.

    Args:
        values: Name of a row -> value.

    Returns:
        Plain data for JSON.

    Example:
        >>> legacy_form({"cluster": {"chief": ("a:1",)}, "task.type": "chief", "task.index": 0})
        {'cluster': {'chief': ['a:1']}, 'task': {'type': 'chief', 'index': 0}}
    """
    plain: dict[str, Any] = json.loads(json.dumps({key: value for key, value in values.items() if not key.startswith("task.")}))
    task = {key.removeprefix("task."): value for key, value in values.items() if key.startswith("task.")}
    return plain | ({"task": task} if task else {})


def _refuse_unknown(document: Document) -> None:
    known = sorted({name.partition(".")[0] for name in TF_CONFIG.names})
    for key in document.value:
        if key not in known:
            raise document.error((key,), f"{key} is not a key of a TF_CONFIG.", expected=", ".join(known), received=key)
    task = document.value.get("task", {})
    for key in task if isinstance(task, dict) else ():
        if f"task.{key}" not in TF_CONFIG:
            raise document.error(("task", key), f"task.{key} is not a key of a TF_CONFIG.", expected="type, index")
