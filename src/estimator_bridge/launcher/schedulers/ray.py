"""Tasks as Ray actors: Ray finds a machine for each, the actor there keeps it under a guard, and the launcher sees it as its own."""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import os
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import VARIABLE
from estimator_bridge.cluster.tasks import TRAINERS, TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import Layout, check_trained, laid_out
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.launcher.processes.guard import ENDED
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.processes.task import Task
from estimator_bridge.launcher.request_checks import check_network

_ATTEMPTS = 3  # where a port was taken before its server had it
_PLACE_SECONDS = 120.0  # for Ray to find machines, where the servers get no deadline either
_ANSWER_SECONDS = 60.0  # of an actor
_KNOCK_SECONDS = 10.0
_LOOK_SECONDS = 0.2
_OBJECTS = 80 << 20  # bytes; Ray's least, nearly: no data goes by way of its store
_JOBS = ("ps", "worker", "chief", "evaluator")
_PROBE = "ray-probe"
_CHECK = "Check RAY_ADDRESS and, where the cluster asks for a token, RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH."
_OF_OUR_OWN = {  # read when it is imported, and by its servers
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else these listen on every interface, and before Ray 2.59 to everybody
    "RAY_kill_child_processes_on_worker_exit": "false",  # guards, which have to end what their tasks started
    "RAY_USAGE_STATS_ENABLED": "0",  # nobody is told
}


class Place:
    """Where a task runs: the class of the actors."""

    def node(self) -> str:
        """The machine's address, as Ray knows it."""
        import ray

        return ray.util.get_node_ip_address()

    def ports(self, count: int) -> list[int]:
        """Free ones, for all tasks of this machine."""
        return free_ports(count)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        """Starts the task, for the first time or again.

        Args:
            arguments: of Python.
            environment: on top of this machine's.
            folder: in which the launcher was started.

        Raises:
            OSError: where this machine does not have that folder, or another rendezvous of the same name.
        """
        os.chdir(folder)
        if not (Path(environment[VARIABLE]) / _PROBE).exists():
            raise FileNotFoundError(f"{environment[VARIABLE]} is not the launcher's rendezvous on this machine, {self.node()}")
        own = json.loads(environment["TF_CONFIG"])["task"]
        self._lines: collections.deque[str] = collections.deque()
        sink = lambda _, line: self._lines.append(line)  # noqa: E731
        self._task = Task(TaskId(own["type"], own["index"]), arguments, os.environ | environment, Path(os.devnull), sink)
        self._task.start(Spawner())

    def exchange(self, asked: bytes | None) -> tuple[list[str], int | None]:
        """Hands on what the launcher asks of the task's guard.

        Args:
            asked: b"" for nothing, a byte for SIGTERM, None for SIGKILL.

        Returns:
            What the task printed meanwhile, and its exit code once it has ended.
        """
        if asked is None:
            self._task.kill()
        elif asked:
            self._task.terminate()
        self._task.wait(_LOOK_SECONDS)
        return [self._lines.popleft() for _ in range(len(self._lines))], self._task.exit_code


class Placer(Spawner):
    """Starts each task in its actor.

    Args:
        places: of all tasks.
    """

    def __init__(self, places: Mapping[TaskId, Any]) -> None:
        super().__init__()
        self._places = places

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> socket.socket:
        """As Spawner does, elsewhere: a thread stands in for the guard, and hands on what the two ends say."""
        control, theirs = socket.socketpair()
        theirs.setblocking(False)
        (Path(environment[VARIABLE]) / _PROBE).touch()
        own = json.loads(environment["TF_CONFIG"])["task"]
        # What a task has beyond the launcher. The rest of the environment is its machine's: paths, GPUs, secrets.
        added = {name: value for name, value in environment.items() if os.environ.get(name) != value}
        place = self._places[TaskId(own["type"], own["index"])]
        threading.Thread(target=_attend, args=(place, arguments, added, theirs, os.dup(output)), daemon=True).start()
        return control


def _attend(place: Any, arguments: Sequence[str], environment: Mapping[str, str], theirs: socket.socket, output: int) -> None:
    """From a task's start in its actor to its end, or the actor's."""
    import ray

    with theirs, os.fdopen(output, "w", encoding="utf-8") as printed:
        try:
            ray.get(place.start.remote(arguments, environment, str(Path.cwd())), timeout=_ANSWER_SECONDS)
            code: int | None = None
            asked: bytes | None = b""
            while code is None:
                lines, code = ray.get(place.exchange.remote(asked), timeout=_ANSWER_SECONDS)
                printed.writelines(f"{line}\n" for line in lines)
                printed.flush()
                asked = _asked(theirs)
            theirs.sendall(f"{ENDED} {code}\n".encode())
        except ray.exceptions.RayTaskError as error:
            printed.write(f"{error.cause}\n")
            theirs.sendall(f"{ENDED} {BridgeError.exit_code}\n".encode())
        except ray.exceptions.RayError as error:  # without a word on how it ended, a task counts as killed
            printed.write(f"Ray: {error}\n")
            ray.kill(place)


def _asked(theirs: socket.socket) -> bytes | None:
    try:
        return theirs.recv(1) or None
    except BlockingIOError:
        return b""


@contextlib.contextmanager
def cluster(
    counts: Mapping[str, int], rendezvous: Path | None, ready: float, trusted: bool
) -> Iterator[tuple[Iterator[Layout], Placer]]:
    """While active, every task has its actor: in the Ray cluster that RAY_ADDRESS names, or else in one of our own on this machine.

    Args:
        counts: tasks of each job.
        rendezvous: folder that all machines share, if any.
        ready: seconds for Ray to place the actors; 0: some minutes.
        trusted: the user said that others may reach the servers.

    Yields:
        Layouts with the actors' addresses, each with other ports, and what starts the tasks there.

    Raises:
        BridgeError: without Ray, machines, consent or shared folder.
    """
    check_trained(counts)
    tasks = [TaskId(job, index) for job in _JOBS for index in range(counts.get(job, 0))]
    ray = _connected(len(tasks), rendezvous)
    try:
        trainers = sum(task.job in TRAINERS for task in tasks)
        gpus = int(ray.cluster_resources().get("GPU", 0) >= trainers)  # one each, or none
        place = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(Place)
        places = {task: place.options(num_gpus=gpus * (task.job in TRAINERS)).remote() for task in tasks}
        nodes = _nodes(ray, places, ready or _PLACE_SECONDS)
        yield (_layout(ray, places, nodes, trusted) for _ in range(_ATTEMPTS)), Placer(places)
    except ray.exceptions.RayError as error:  # as layouts are made
        raise BridgeError("Ray lost a machine before its tasks started.", received=_first_line(error)) from error
    finally:
        ray.shutdown()  # ends the actors with it


def _connected(cpus: int, rendezvous: Path | None) -> Any:
    """Ray, connected."""
    given = os.environ.get("RAY_ADDRESS")
    if given and rendezvous is None:
        raise BridgeError(
            "Tasks on the machines of a Ray cluster cannot report to this one.",
            expected="--rendezvous DIR, a folder that all machines of the cluster share",
            fix="Choose a new one for each training, beside model_dir for example; or unset RAY_ADDRESS for a Ray on this machine.",
        )
    os.environ.update({} if given else _OF_OUR_OWN)
    try:
        import ray
    except ImportError as error:
        raise BridgeError("Ray is not installed.", fix='pip install "estimator-bridge[ray]"') from error
    own = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _OBJECTS}
    try:
        if given and re.fullmatch(r"[^/]+:\d+", given):
            _knock(*given.rsplit(":", 1))
        ray.init("auto" if given else "local", logging_level=logging.ERROR, log_to_driver=False, **({} if given else own))
    except (OSError, RuntimeError, ValueError) as error:
        raise BridgeError("Ray does not start, or does not answer.", received=error, fix=_CHECK) from error
    return ray


def _knock(host: str, port: str) -> None:
    """Ray itself asks for minutes where nobody is."""
    socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS).close()


def _nodes(ray: Any, places: Mapping[TaskId, Any], seconds: float) -> dict[TaskId, str]:
    asked = {task: place.node.remote() for task, place in places.items()}
    try:
        return dict(zip(asked, ray.get(list(asked.values()), timeout=seconds), strict=True))
    except ray.exceptions.RayError as error:
        raise BridgeError(
            f"Ray did not place all {len(asked)} tasks within {seconds:g} s.",
            expected="one processor free for each, GPUs as told in the documentation, and this package on every machine",
            received=f"{_first_line(error)} (free: {ray.available_resources().get('CPU', 0):g} processors)",
            fix="Ask for fewer tasks, or give Ray time with --ready-timeout SECONDS.",
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _layout(ray: Any, places: Mapping[TaskId, Any], nodes: Mapping[TaskId, str], trusted: bool) -> Layout:
    """With ports that are free now; one actor of a machine finds those of all, so that none is found twice."""
    servers = [task for task in places if task.job != "evaluator"]
    on = {node: [task for task in servers if nodes[task] == node] for node in {nodes[task] for task in servers}}
    asked = {node: places[group[0]].ports.remote(len(group)) for node, group in on.items()}
    found = {node: iter(ray.get(ports, timeout=_ANSWER_SECONDS)) for node, ports in asked.items()}
    layout = laid_out({task: f"{nodes[task]}:{next(found[nodes[task]])}" for task in servers}, list(places))
    check_network(layout, trusted)
    return layout
