"""A stand-in for a task of a cluster, without TensorFlow: stand_in.py FOLDER 'chief 0=ready,step:20' 'ps 0=serve,stay' ...

Every process leaves its pid in FOLDER, so that a test finds survivors. Each action is a function below; a task without actions ends.
``|`` separates the runs of a task that is restarted; further runs repeat the last one.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous, TaskFailure
from estimator_bridge.cluster.tasks import TaskId

FOLDER = Path(sys.argv[1])
TF_CONFIG = json.loads(os.environ["TF_CONFIG"])
JOB, INDEX = TF_CONFIG["task"]["type"], TF_CONFIG["task"]["index"]
TASK = TaskId(JOB, INDEX)
ADDRESS = TF_CONFIG["cluster"][JOB][INDEX] if TASK.serves else ""
RENDEZVOUS = Rendezvous.of_this_process() or Rendezvous(FOLDER)
HELD: list[Any] = []
RUN = len(list(FOLDER.glob(f"{JOB}-{INDEX}.run-*")))
GRANDCHILD = Path(__file__).with_name("grandchild.py")


def serve(job: str = JOB, index: str = str(INDEX)) -> None:
    """Answers GetStatus as TensorFlow does: field 1 a device; in it 1 its name, 6 its incarnation as fixed64 (here 7 in its first run)."""
    import grpc

    name = f"/job:{job}/replica:0/task:{index}/device:CPU:0".encode()
    device = b"\x0a" + bytes([len(name)]) + name + b"\x31" + (7 + RUN).to_bytes(8, "little")
    answer = b"\x0a" + bytes([len(device)]) + device
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: answer)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("tensorflow.WorkerService", {"GetStatus": handler})])
    server.add_insecure_port(ADDRESS)
    server.start()
    HELD.append(server)


def bind() -> None:
    """Binds its port as TensorFlow does, and fails with its message."""
    try:
        HELD.append(socket.create_server(("", int(ADDRESS.rpartition(":")[2]))))
    except OSError:
        raise RuntimeError("Could not start gRPC server") from None


def wait_for(flag: Flag) -> None:
    while not RENDEZVOUS.has_flag(flag):
        time.sleep(0.02)


def wait_step(job: str, index: str, step: str = "0") -> None:
    """Waits until a task has reported the step or a later one."""
    while (reported := RENDEZVOUS.step(TaskId(job, int(index)))) is None or reported < int(step):
        time.sleep(0.02)


def wait_file(name: str) -> None:
    """Waits until the test has made a file in the folder."""
    while not (FOLDER / name).exists():
        time.sleep(0.02)


def wait_printed(pattern: str, times: str = "1") -> None:
    """Waits until the launcher has printed a pattern so many times."""
    while len(re.findall(pattern, (FOLDER / "output").read_text())) < int(times):
        time.sleep(0.02)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def process() -> None:
    """Prints the properties of this process, except TF_CONFIG."""
    properties = {"arguments": sys.argv[1:], "folder": str(Path.cwd()), "input": sys.stdin.read()}
    properties |= {"leads a group": os.getpgid(0) == os.getpid(), "pid": os.getpid(), "session": os.getsid(0)}
    say(json.dumps(properties | {"set by the import": os.environ.get("SET")}))


def fail() -> None:
    raise ValueError("raised")


def child() -> None:
    """Starts a process without a parent, in a session of its own, that ignores SIGTERM."""
    before = len(list(FOLDER.glob("*.pid")))
    subprocess.Popen([sys.executable, GRANDCHILD, str(FOLDER)]).wait()
    while len(list(FOLDER.glob("*.pid"))) == before:
        time.sleep(0.02)


def save() -> None:
    """Takes half a second to save at SIGTERM, and prints how many parameter servers run then."""

    def handler(*signal: Any) -> None:
        time.sleep(0.5)
        others = [int(file.read_text()) for file in FOLDER.glob("*.there")]
        say(f"saved, with {sum(Path('/proc', str(pid)).exists() for pid in others)} parameter servers")
        os._exit(143)

    signal.signal(signal.SIGTERM, handler)


ACTIONS: dict[str, Callable[..., Any]] = {
    "serve": serve,
    "bind": bind,
    "child": child,
    "process": process,
    "raise": fail,
    "ready": lambda: wait_for(Flag.READY),
    "trained": lambda: wait_for(Flag.TRAINED),
    "meet": wait_step,
    "file": wait_file,
    "printed": wait_printed,
    "stubborn": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "stay": lambda: time.sleep(600),
    "step": lambda step: RENDEZVOUS.report_step(TASK, int(step)),
    "trained-to": lambda step: RENDEZVOUS.report_step(TASK, int(step), training=False),
    "flags": lambda: say(" ".join(sorted(flag.value for flag in Flag if RENDEZVOUS.has_flag(flag)))),
    "gang-start": RENDEZVOUS.report_gang_start,
    "last": lambda step: RENDEZVOUS.report_last_step(int(step)),
    "say-last": lambda: say(f"last step {RENDEZVOUS.last_step()}"),
    "lost": lambda job, code, problem=None: RENDEZVOUS.report_failure(
        TaskId(job, 0), TaskFailure(time.time(), int(code), problem)
    ),
    "recovery": lambda name: RENDEZVOUS.report_recovery(Recovery(name)),
    "version": RENDEZVOUS.report_version,
    "final": RENDEZVOUS.report_final,
    "save": save,
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "say": say,
    "config": lambda: say(json.dumps(TF_CONFIG)),
    "exit": lambda code: os._exit(int(code)),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "there": lambda: (FOLDER / f"{JOB}-{INDEX}.there").write_text(str(os.getpid())),
}

(FOLDER / f"{os.getpid()}.pid").touch()
plans = dict(plan.split("=") for plan in sys.argv[2:])
(FOLDER / f"{JOB}-{INDEX}.run-{RUN}").touch()
runs = plans.get(f"{JOB} {INDEX}", "").split("|")
for action in filter(None, runs[min(RUN, len(runs) - 1)].split(",")):
    verb, *values = action.split(":")
    ACTIONS[verb](*values)
os._exit(0)  # at once: a gRPC server would wait
