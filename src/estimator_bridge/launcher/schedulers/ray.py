"""Tasks as Ray actors: Ray finds a machine for each, where an actor keeps it under a guard; the launcher treats it like its own."""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import VARIABLE
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import Layout, list_tasks, make_layout
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.launcher.processes.guard import ENDED
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.processes.task import Task
from estimator_bridge.launcher.request_checks import check_network

_ATTEMPTS = 3  # if a port is taken before its server starts
_PLACE_SECONDS = 120.0  # for Ray to find machines, if the servers have no deadline
_ANSWER_SECONDS = 60.0  # of an actor
_KNOCK_SECONDS = 10.0
_LOOK_SECONDS = 0.2
_OBJECTS = 80 << 20  # bytes, close to Ray's minimum: no data goes through its store
_PROBE = "ray-probe"
_CHECK = "Check RAY_ADDRESS and, where the cluster asks for a token, RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH."
_PRIVATE_RAY = {  # read when Ray is imported, and by its servers
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else they listen on every interface, and before Ray 2.59 without any restriction
    "RAY_kill_child_processes_on_worker_exit": "false",  # guards, which have to end what their tasks started
    "RAY_USAGE_STATS_ENABLED": "0",  # send no statistics
}


class Place:
    """An actor, which runs one task on its machine."""

    def node(self) -> str:
        """Returns the machine's address, as Ray knows it."""
        import ray

        return ray.util.get_node_ip_address()

    def ports(self, count: int) -> list[int]:
        """Returns free ports for all tasks of this machine."""
        return free_ports(count)

    def start(self, task: TaskId, arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        """Starts the task, for the first time or again.

        Args:
            task: Task of the cluster.
            arguments: Arguments of Python.
            environment: Variables to add to those of this machine.
            folder: Working folder of the launcher.

        Raises:
            OSError: This machine does not have the folder, or has another rendezvous of the same name.
        """
        os.chdir(folder)
        if not (Path(environment[VARIABLE]) / _PROBE).exists():
            raise FileNotFoundError(f"{environment[VARIABLE]} is not the launcher's rendezvous on this machine, {self.node()}")
        self._lines: collections.deque[str] = collections.deque()
        sink = lambda _, line: self._lines.append(line)  # noqa: E731
        self._task = Task(task, arguments, os.environ | environment, Path(os.devnull), sink)
        self._task.start(Spawner())

    def exchange(self, request: bytes | None) -> tuple[list[str], int | None]:
        """Passes a request of the launcher to the task's guard.

        Args:
            request: b"" for nothing, a byte for SIGTERM, None for SIGKILL.

        Returns:
            The lines that the task printed meanwhile, and its exit code once it has ended.
        """
        if request is None:
            self._task.kill()
        elif request:
            self._task.terminate()
        self._task.wait(_LOOK_SECONDS)
        return [self._lines.popleft() for _ in range(len(self._lines))], self._task.exit_code


class Placer(Spawner):
    """Starts each task in its actor.

    Args:
        places: Actor of each task.
    """

    def __init__(self, places: Mapping[TaskId, Any]) -> None:
        super().__init__()
        self._places = places

    def start(self, task: TaskId, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> socket.socket:
        """Starts the task in its actor. A thread stands in for the guard, and passes messages in both directions."""
        control, theirs = socket.socketpair()
        theirs.setblocking(False)
        (Path(environment[VARIABLE]) / _PROBE).touch()
        # Only the variables that the launcher adds. The rest of the environment is that of the task's machine: paths, GPUs, secrets.
        added = {name: value for name, value in environment.items() if os.environ.get(name) != value}
        request = (task, arguments, added, str(Path.cwd()))
        threading.Thread(target=_attend, args=(self._places[task], request, theirs, os.dup(output)), daemon=True).start()
        return control


def _attend(place: Any, start: tuple[object, ...], theirs: socket.socket, output: int) -> None:
    """Follows a task from its start in its actor until it or the actor ends."""
    import ray

    with theirs, os.fdopen(output, "w", encoding="utf-8") as printed:
        try:
            ray.get(place.start.remote(*start), timeout=_ANSWER_SECONDS)
            code: int | None = None
            request: bytes | None = b""
            while code is None:
                lines, code = ray.get(place.exchange.remote(request), timeout=_ANSWER_SECONDS)
                printed.writelines(f"{line}\n" for line in lines)
                printed.flush()
                request = _read_request(theirs)
            theirs.sendall(f"{ENDED} {code}\n".encode())
        except ray.exceptions.RayTaskError as error:
            printed.write(f"{error.cause}\n")
            theirs.sendall(f"{ENDED} {BridgeError.exit_code}\n".encode())
        except ray.exceptions.RayError as error:  # a task without an exit code counts as killed
            printed.write(f"Ray: {error}\n")
            ray.kill(place)


def _read_request(theirs: socket.socket) -> bytes | None:
    try:
        return theirs.recv(1) or None
    except BlockingIOError:
        return b""


@contextlib.contextmanager
def open_cluster(
    counts: Mapping[str, int], rendezvous: Path | None, ready: float, is_trusted: bool
) -> Iterator[tuple[Iterator[Layout], Placer]]:
    """While active, every task has its actor, in the Ray cluster that RAY_ADDRESS names, or else in a new one on this machine.

    Args:
        counts: Number of tasks of each job.
        rendezvous: Folder that all machines share, if any.
        ready: Seconds for Ray to place the actors; 0 allows two minutes.
        is_trusted: True if the user allowed servers that other machines can reach.

    Yields:
        Layouts with the actors' addresses, each with other ports, and the spawner of the tasks.

    Raises:
        BridgeError: Ray, machines, the permission or the shared folder is missing.
    """
    tasks = list_tasks(counts)
    ray = _connect(len(tasks), rendezvous)
    try:
        trainers = sum(task.trains for task in tasks)
        gpus = int(ray.cluster_resources().get("GPU", 0) >= trainers)  # one for each trainer, or none
        place = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(Place)
        places = {task: place.options(num_gpus=gpus * task.trains).remote() for task in tasks}
        nodes = _find_nodes(ray, places, ready or _PLACE_SECONDS)
        yield (_make_layout(ray, places, nodes, is_trusted) for _ in range(_ATTEMPTS)), Placer(places)
    except ray.exceptions.RayError as error:  # as layouts are made
        raise BridgeError(
            "Ray lost a machine before its tasks started.", received=_first_line(error), fix="Start the same command again."
        ) from error
    finally:
        ray.shutdown()  # ends the actors with it


def _connect(cpus: int, rendezvous: Path | None) -> Any:
    """Returns the module of Ray, connected."""
    address = os.environ.get("RAY_ADDRESS")
    if address and rendezvous is None:
        raise BridgeError(
            "Tasks on the machines of a Ray cluster cannot report to this one.",
            expected="--rendezvous DIR, a folder that all machines of the cluster share",
            fix="Choose a new folder for each training, e.g. beside model_dir; or unset RAY_ADDRESS for a Ray on this machine.",
        )
    os.environ.update({} if address else _PRIVATE_RAY)
    try:
        import ray
    except ImportError as error:
        raise BridgeError("Ray is not installed.", fix='pip install "estimator-bridge[ray]"') from error
    own = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _OBJECTS}
    try:
        if address and re.fullmatch(r"[^/]+:\d+", address):
            host, port = address.rsplit(":", 1)
            # Fails at once if no server listens; Ray itself would try for minutes.
            socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS).close()
        ray.init("auto" if address else "local", logging_level=logging.ERROR, log_to_driver=False, **({} if address else own))
    except (OSError, RuntimeError, ValueError) as error:
        raise BridgeError("Ray did not start, or does not answer.", received=error, fix=_CHECK) from error
    return ray


def _find_nodes(ray: Any, places: Mapping[TaskId, Any], seconds: float) -> dict[TaskId, str]:
    asked = {task: place.node.remote() for task, place in places.items()}
    try:
        return dict(zip(asked, ray.get(list(asked.values()), timeout=seconds), strict=True))
    except ray.exceptions.RayError as error:
        raise BridgeError(
            f"Ray did not place all {len(asked)} tasks within {seconds:g} s.",
            expected="a free processor for each task, a free GPU for each task that trains if Ray has so many, and this package everywhere",
            received=f"{_first_line(error)} (free: {ray.available_resources().get('CPU', 0):g} processors)",
            fix="Ask for fewer tasks, or give Ray time with --ready-timeout SECONDS.",
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _make_layout(ray: Any, places: Mapping[TaskId, Any], nodes: Mapping[TaskId, str], is_trusted: bool) -> Layout:
    """Makes a layout on ports that are free now. One actor of a machine finds those of all its tasks, so that none is found twice."""
    servers = [task for task in places if task.serves]
    on = {node: [task for task in servers if nodes[task] == node] for node in {nodes[task] for task in servers}}
    asked = {node: places[group[0]].ports.remote(len(group)) for node, group in on.items()}
    found = {node: iter(ray.get(ports, timeout=_ANSWER_SECONDS)) for node, ports in asked.items()}
    layout = make_layout({task: f"{nodes[task]}:{next(found[nodes[task]])}" for task in servers}, list(places))
    check_network(layout, is_trusted)
    return layout
