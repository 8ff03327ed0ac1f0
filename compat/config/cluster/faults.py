"""Faults in a TF_CONFIG: the key, the reason, and the corrected JSON."""

import copy
import dataclasses
import difflib
import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from estimator_bridge.compat.config.tables.tf_config import addresses
from estimator_bridge.runtime.json_positions import Path

Json = dict[str, Any]
JOBS = ("chief", "worker", "ps", "evaluator", "master")
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9_.-]+):(?P<port>[0-9]{1,5})")
_LOOPBACK = {"localhost", "[::1]", "::1"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """Fault of one key.

    Attributes:
        path: Path of the key.
        what: Description of the fault.
        mend: Function that corrects the JSON in place; None if only the user can know the right value.
    """

    path: Path
    what: str
    mend: Callable[[Json], None] | None = None


def find_faults(tf_config: Mapping[str, Any], *, chief_needed: bool = True, resolve: bool = False) -> list[Fault]:
    """Finds the faults of a TF_CONFIG.

    Args:
        tf_config: JSON object.
        chief_needed: True for Estimator without a strategy and for parameter servers, False for MultiWorkerMirroredStrategy.
        resolve: True to look up every host, which works only on a machine of the cluster.

    Returns:
        Faults in the order of the keys; none for an object without a cluster.

    Example:
        >>> [fault.path for fault in find_faults({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 1}})]
        [('task', 'index')]
    """
    shape = list(_shape(tf_config))
    if shape or not tf_config.get("cluster"):
        return shape
    found = [*_jobs(tf_config["cluster"], chief_needed), *_addresses(tf_config["cluster"]), *_task(tf_config)]
    return [*found, *(_hosts(tf_config["cluster"]) if resolve else ())]


def correct(tf_config: Mapping[str, Any], *, chief_needed: bool = True) -> str | None:
    """Corrects a TF_CONFIG, one fault after another, since a correction may reveal the next fault.

    Args:
        tf_config: JSON object.
        chief_needed: True if the cluster needs a chief.

    Returns:
        JSON text; None if nothing could be corrected.

    Example:
        >>> correct({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 1}}).splitlines()[-3]
        '    "index": 0'
    """
    mended = copy.deepcopy(dict(tf_config))
    for _ in range(100):
        mends = (fault.mend for fault in find_faults(mended, chief_needed=chief_needed))
        mend = next((one for one in mends if one is not None), None)
        if mend is None:
            break
        mend(mended)
    return json.dumps(mended, indent=2) if mended != tf_config else None


def tasks_of(cluster: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yields path and address of each task."""
    for job, tasks in cluster.items():
        for key, address in tasks.items() if isinstance(tasks, Mapping) else enumerate(tasks):
            yield ("cluster", job, key), address


def _shape(tf_config: Mapping[str, Any]) -> Iterator[Fault]:
    cluster, task = tf_config.get("cluster", {}), tf_config.get("task", {})
    for name, value in (("cluster", cluster), ("task", task)):
        if not isinstance(value, dict):
            yield Fault((name,), f"{name} is a {type(value).__name__}, and must be an object")
    if isinstance(task, dict) and not isinstance(task.get("type", ""), str | None):
        yield Fault(("task", "type"), f"the task's type is {task['type']!r}, and must be the name of a job")
    for job, tasks in cluster.items() if isinstance(cluster, dict) else ():
        if isinstance(tasks, str):
            what = f"the addresses of {job} are a string, and must be a list"
            yield Fault(("cluster", job), what, partial(_put, path=("cluster", job), value=tasks.split(",")))
        elif not isinstance(tasks, list | dict) or (isinstance(tasks, dict) and not all(key.isdecimal() for key in tasks)):
            yield Fault(("cluster", job), f"the addresses of {job} are neither a list nor an object by index")
        elif any(not isinstance(address, str) for address in (tasks.values() if isinstance(tasks, dict) else tasks)):
            yield Fault(("cluster", job), f"an address of {job} is not a string such as 'host:2222'")


def _jobs(cluster: Mapping[str, Any], chief_needed: bool) -> Iterator[Fault]:
    for job, tasks in cluster.items():
        if not tasks and job in {"chief", "master"}:
            yield Fault(("cluster", job), f"{job} has no address")
        elif isinstance(tasks, dict) and sorted(map(int, tasks)) != list(range(len(tasks))):
            what = f"the indices of {job} are {', '.join(sorted(tasks))}, and must count from 0 without a gap"
            yield Fault(("cluster", job), what)
        if job not in JOBS:
            near = difflib.get_close_matches(job, JOBS, 1)
            mend = partial(_rename, job=job, to=near[0]) if near else None
            yield Fault(("cluster", job), f"{job} is not a job of TensorFlow ({', '.join(JOBS)})", mend)
    if "chief" in cluster and "master" in cluster:
        what = "chief and master are the same job under two names"
        yield Fault(("cluster", "master"), what, lambda on: on["cluster"].pop("master"))
    chief = "master" if "master" in cluster else "chief"
    if len(cluster.get(chief, ())) > 1:
        what = f"there is one {chief}, not {len(cluster[chief])}"
        yield Fault(("cluster", chief), what, partial(_chief_to_workers, chief=chief))
    if chief not in cluster and cluster.get("worker") and (chief_needed or cluster.get("ps")):
        yield Fault(("cluster",), "there is no chief", _first_worker_to_chief)


def _addresses(cluster: Mapping[str, Any]) -> Iterator[Fault]:
    seen: dict[tuple[str, str], Path] = {}
    for path, address in tasks_of(cluster):
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match["port"]) <= 65535:
            yield Fault(path, f"{address!r} is not an address such as 'host:2222'")
            continue
        host = "localhost" if match["host"] in _LOOPBACK or match["host"].startswith("127.") else match["host"].lower()
        first = seen.setdefault((host, match["port"]), path)
        if first != path:
            job, key = first[1:]
            what = f"{address!r} is already the address of {job} {key}" if _at(cluster, first) == address else (
                f"{address!r} is the port of {job} {key} ({_at(cluster, first)!r}) on the same host")  # fmt: skip
            yield Fault(path, what, partial(_next_port, path=path))


def _task(tf_config: Mapping[str, Any]) -> Iterator[Fault]:
    cluster, task = tf_config["cluster"], tf_config.get("task", {})
    kind, index = task.get("type"), task.get("index")
    if kind is None:
        yield Fault(("task",), "the task's type is missing")
    elif kind not in cluster and kind != "evaluator":
        twin = {"master": "chief", "chief": "master"}.get(kind, "")
        near = difflib.get_close_matches(str(kind), list(cluster), 1) or ([twin] if twin in cluster else [])
        mend = partial(_put, path=("task", "type"), value=near[0]) if near else None
        yield Fault(("task", "type"), f"{kind!r} is not a job of this cluster ({', '.join(cluster)})", mend)
    mend = partial(_put, path=("task", "index"), value=0)
    if not str(index).isdecimal():
        yield Fault(("task", "index"), f"the task's index is {index!r}, and must be a number from 0", mend)
    elif kind == "evaluator" and kind not in cluster and int(index) > 0:
        yield Fault(("task", "index"), f"{index} is out of range: there is one evaluator", mend)
    elif kind in cluster and not cluster[kind]:
        yield Fault(("task", "index"), f"{index} is out of range: {kind} has no task")
    elif kind in cluster and int(index) > (last := len(cluster[kind]) - 1):
        what = f"{index} is out of range: {kind} has the indices 0 to {last}"
        yield Fault(("task", "index"), what, partial(mend, value=last))


def _hosts(cluster: Mapping[str, Any]) -> Iterator[Fault]:
    for path, address in tasks_of(cluster):
        host = address.rpartition(":")[0].strip("[]")
        try:
            socket.getaddrinfo(host, None)
        except (OSError, UnicodeError):
            yield Fault(path, f"the host {host!r} cannot be resolved here")


def _at(cluster: Mapping[str, Any], path: Path) -> Any:
    return cluster[path[1]][path[2]]  # type: ignore[index]


def _put(mended: Json, path: tuple[str, str], value: Any) -> None:
    mended.setdefault(path[0], {})[path[1]] = value


def _rename(mended: Json, job: str, to: str) -> None:
    cluster = mended["cluster"]
    mended["cluster"] = {to if name == job else name: tasks for name, tasks in cluster.items() if name == job or name != to}
    if mended.get("task", {}).get("type") == job:
        mended["task"]["type"] = to


def _chief_to_workers(mended: Json, chief: str) -> None:
    first, *others = addresses(mended["cluster"][chief])
    mended["cluster"][chief] = [first]
    mended["cluster"]["worker"] = [*others, *addresses(mended["cluster"].get("worker", ()))]


def _first_worker_to_chief(mended: Json) -> None:
    first, *others = addresses(mended["cluster"].pop("worker"))
    mended["cluster"] = {"chief": [first]} | ({"worker": others} if others else {}) | mended["cluster"]
    task = mended.get("task", {})
    if task.get("type") == "worker" and str(task.get("index")).isdecimal():
        index = int(task["index"])
        task.update({"type": "chief", "index": 0} if index == 0 else {"index": index - 1})


def _next_port(mended: Json, path: Path) -> None:
    host, _, port = _at(mended["cluster"], path).rpartition(":")
    used = {address.rpartition(":")[2] for _, address in tasks_of(mended["cluster"])}
    free = next(number for number in range(int(port) + 1, int(port) + 2 + len(used)) if str(number) not in used)
    mended["cluster"][path[1]][path[2]] = f"{host}:{free}"
