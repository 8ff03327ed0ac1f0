"""Clusters that cluster_faults.py and cluster.py start, and the events in their output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from estimator_bridge.launcher.layout import local_layout

RUN = (sys.executable, "-m", "estimator_bridge", "run")
LAUNCH = (sys.executable, "-m", "estimator_bridge", "launch", "--format", "json")
ENVIRONMENT = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"}
POLL_SECONDS = 0.05
PORT = 2222


class Seen:
    """Events in the output of the tasks of jobs/cluster_training.py.

    Attributes:
        lives: Number of processes so far.
        pids: Mapping from task to the number of its process.
        born: Mapping from task to the time at which its last process reported its number.
        first_steps: Mapping from task to the time of the first step of its first process.
        ends: Mapping from task to the time at which its training ended.
        steps: Tuples of time, task, global step and loss.
    """

    def __init__(self) -> None:
        self.lives = 0
        self.pids: dict[str, int] = {}
        self.born: dict[str, float] = {}
        self.first_steps: dict[str, float] = {}
        self.ends: dict[str, float] = {}
        self.steps: list[tuple[float, str, int, float]] = []

    def take(self, task: str, text: str) -> None:
        """Records the event in a line of a task, if there is one."""
        now = time.time()
        if found := re.match(r"process (\d+)", text):
            self.lives += 1
            self.pids[task] = int(found[1])
            self.born[task] = now
        elif found := re.match(r"first step at (.+)", text):
            self.first_steps.setdefault(task, float(found[1]))
        elif found := re.match(r"at (\d+) loss (.+)", text):
            self.steps.append((now, task, int(found[1]), float(found[2])))
        elif text.startswith("trained"):
            self.ends[task] = now


class ByHand(Seen):
    """A process of ``estimator-bridge run`` for each task, started only with its TF_CONFIG, as by hand.

    Args:
        counts: Number of tasks of each job.
        command: Arguments of ``run``.
    """

    def __init__(self, counts: Mapping[str, int], command: Sequence[str]) -> None:
        super().__init__()
        self.processes: dict[str, subprocess.Popen[str]] = {}
        for task, tf_config in local_layout(counts).tf_configs.items():
            self.processes[str(task)] = process = subprocess.Popen(
                [*RUN, *command],
                stdout=subprocess.PIPE,
                text=True,
                env=ENVIRONMENT | {"TF_CONFIG": tf_config},
                stderr=subprocess.DEVNULL,
            )
            threading.Thread(target=self._read, args=(str(task), process), daemon=True).start()

    def _read(self, task: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            self.take(task, line.rstrip())

    def __enter__(self) -> ByHand:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def finish(self, seconds: float) -> bool:
        """Waits for the tasks that train; a parameter server never ends by itself. Returns True if all succeeded."""
        end = time.monotonic() + seconds
        trainers = [process for task, process in self.processes.items() if not task.startswith("ps")]
        while any(process.poll() is None for process in trainers) and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        return all(process.poll() == 0 for process in trainers)


class Run(Seen):
    """One launcher of a cluster that trains jobs/cluster_training.py.

    Args:
        arguments: Arguments of ``launch``.
        folder: Folder for logs and for the model's folder.
        prefix: Words before the command, which start it in a network namespace.
        environment: Environment variables to add.
    """

    def __init__(
        self, arguments: Sequence[str], folder: Path, prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.folder = folder
        self.lines: list[str] = []
        command = [*prefix, *LAUNCH, "--log-dir", str(folder / "logs"), *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | dict(environment or {})
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        """Kills the launcher; its tasks end with it."""
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            name, _, text = line.partition("| ")
            self.take(name.strip(), text.rstrip())

    def finish(self, seconds: float) -> bool:
        """Waits for the end of the launcher. Returns True if it succeeded."""
        return self.wait(lambda: self.process.poll() is not None, seconds) and self.process.returncode == 0

    def wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Waits until the condition holds, the launcher has ended, or the seconds have passed. Returns True if the condition holds."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end or self.process.poll() is not None:
                return holds()
            time.sleep(POLL_SECONDS)
        return True

    def step(self) -> int:
        """Returns the highest global step so far."""
        return max((step for _, _, step, _ in list(self.steps)), default=0)

    def steps_after(self, moment: float) -> list[tuple[float, str, int, float]]:
        """Returns the reports of steps after a moment."""
        return [report for report in list(self.steps) if report[0] > moment]

    def stepped_after(self, moment: float) -> bool:
        """Returns True if any task reported a step after the moment."""
        return bool(self.steps_after(moment))

    def goes_on(self, moment: float, task: str) -> float:
        """Returns the time of the task's next step after a moment, or 0 if there is none.

        If the task never reports steps, a step of any task since its last start counts. Lines that a process printed before it was killed
        may be read later.
        """
        tells = task in self.first_steps
        later = self.steps_after(max(moment + 0.2, 0.0 if tells else self.born[task]))
        return next((at for at, other, _, _ in later if other == task or not tells), 0.0)

    def saved(self) -> int:
        """Returns the global step of the newest checkpoint, or 0 if there is none."""
        with contextlib.suppress(FileNotFoundError):
            found = re.search(r"ckpt-(\d+)", (self.folder / "model" / "checkpoint").read_text())
            return int(found[1]) if found else 0
        return 0

    def problem(self) -> str:
        """Returns the launcher's last message."""
        messages = [line for line in self.lines if line.startswith("estimator-bridge: ")]
        sys.stderr.write("\n".join([*self.lines[-30:], ""]))
        return messages[-1].removeprefix("estimator-bridge: ") if messages else f"no message, exit code {self.process.poll()}"


class Machines:
    """A cluster with a launcher for each task, each in a separate network namespace on one bridge.

    Args:
        counts: Number of tasks of each job.
        folder: Folder for logs and the model.
    """

    def __init__(self, counts: Mapping[str, int], folder: Path) -> None:
        self._names = [f"{job} {index}" for job, count in counts.items() for index in range(count)]
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._spaces: dict[str, str] = {}
        self.runs: dict[str, Run] = {}

    def __enter__(self) -> Machines:
        self._bridge = f"eb{os.getpid() % 10**6}"
        _ip("link", "add", self._bridge, "type", "bridge")
        self._stack.callback(_ip, "link", "delete", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number, name in enumerate(self._names):
            space = self._spaces[name] = f"{self._bridge}n{number}"
            _ip("netns", "add", space)
            self._stack.callback(_ip, "netns", "delete", space)
            _ip("link", "add", f"{self._bridge}v{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
            self._stack.callback(_ip, "link", "delete", f"{self._bridge}v{number}")
            _ip("link", "set", f"{self._bridge}v{number}", "master", self._bridge, "up")
            for words in (
                ("addr", "add", f"10.213.0.{number + 1}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                _ip("-n", space, *words)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def start(self, command: Sequence[str]) -> None:
        """Starts a launcher for each task."""
        cluster: dict[str, list[str]] = {}
        for number, name in enumerate(self._names):
            cluster.setdefault(name.split()[0], []).append(f"10.213.0.{number + 1}:{PORT}")
        for name in self._names:
            job, index = name.split()
            tf_config = json.dumps({"cluster": cluster, "task": {"type": job, "index": int(index)}})
            arguments = ["--trusted-network", "--stall-timeout", "60", "--max-restarts", "10", *command]
            run = Run(arguments, self._folder, ("ip", "netns", "exec", self._spaces[name]), {"TF_CONFIG": tf_config})
            self.runs[name] = self._stack.enter_context(run)

    @contextlib.contextmanager
    def cut(self, name: str) -> Iterator[None]:
        """Cuts the task's machine off from the network inside the block."""
        port = f"{self._bridge}v{self._names.index(name)}"
        _ip("link", "set", port, "down")
        try:
            yield
        finally:
            _ip("link", "set", port, "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
