"""Plays a task of a cluster without TensorFlow: stand_in.py FOLDER 'chief 0=ready,step:20' 'ps 0=serve,sleep:60' ...

Every process leaves its pid in FOLDER, so that survivors can be looked for. Each action is a function below; a task without any ends.
``|`` separates the lives of a task that is started again; further ones are as the last.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import Flag, Loss, Recovery, Rendezvous

FOLDER = Path(sys.argv[1])
TF_CONFIG = json.loads(os.environ["TF_CONFIG"])
JOB, INDEX = TF_CONFIG["task"]["type"], TF_CONFIG["task"]["index"]
ADDRESS = TF_CONFIG["cluster"][JOB][INDEX] if JOB != "evaluator" else ""
MEETING = Rendezvous.of_this_process() or Rendezvous(FOLDER)
HELD: list[Any] = []
LIFE = len(list(FOLDER.glob(f"{JOB}-{INDEX}.life-*")))
GRANDCHILD = """
import os, pathlib, signal, sys, time
if os.fork():
    os._exit(0)
os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1], f"{os.getpid()}.pid").touch()
time.sleep(60)
"""


def serve(job: str = JOB, index: str = str(INDEX)) -> None:
    """GetStatus as TensorFlow answers it: field 1 a device; in it 1 its name, 6 its incarnation as fixed64 (here 7 in its first life)."""
    import grpc

    name = f"/job:{job}/replica:0/task:{index}/device:CPU:0".encode()
    device = b"\x0a" + bytes([len(name)]) + name + b"\x31" + (7 + LIFE).to_bytes(8, "little")
    answer = b"\x0a" + bytes([len(device)]) + device
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: answer)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("tensorflow.WorkerService", {"GetStatus": handler})])
    server.add_insecure_port(ADDRESS)
    server.start()
    HELD.append(server)


def bind() -> None:
    """As TensorFlow does, and with its words."""
    try:
        HELD.append(socket.create_server(("", int(ADDRESS.rpartition(":")[2]))))
    except OSError:
        raise RuntimeError("Could not start gRPC server") from None


def wait_for(mark: Flag) -> None:
    while not MEETING.has_flag(mark):
        time.sleep(0.02)


def meet(job: str, index: str, step: str = "0") -> None:
    """Waits until a task has told of a step, this one or a later one."""
    while (said := MEETING.step(job, int(index))) is None or said < int(step):
        time.sleep(0.02)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def process() -> None:
    """What a task has of its own, TF_CONFIG aside."""
    told = {"arguments": sys.argv[1:], "folder": str(Path.cwd()), "input": sys.stdin.read()}
    told |= {"leads a group": os.getpgid(0) == os.getpid(), "pid": os.getpid(), "session": os.getsid(0)}
    say(json.dumps(told | {"set by the import": os.environ.get("SET")}))


def fail() -> None:
    raise ValueError("raised")


def child() -> None:
    """A process that leaves its parent, its session and SIGTERM behind."""
    before = len(list(FOLDER.glob("*.pid")))
    subprocess.Popen([sys.executable, "-c", GRANDCHILD, str(FOLDER)]).wait()
    while len(list(FOLDER.glob("*.pid"))) == before:
        time.sleep(0.02)


def save() -> None:
    """At SIGTERM, takes its time and tells who is there to help."""

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
    "meet": meet,
    "stubborn": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "step": lambda step: MEETING.report_step(JOB, INDEX, int(step)),
    "trained-to": lambda step: MEETING.report_step(JOB, INDEX, int(step), training=False),
    "marks": lambda: say(" ".join(sorted(mark.value for mark in Flag if MEETING.has_flag(mark)))),
    "life": MEETING.begin_life,
    "last": lambda step: MEETING.say_last_step(int(step)),
    "say-last": lambda: say(f"last step {MEETING.last_step()}"),
    "lost": lambda job, code, problem=None: MEETING.report_loss(job, 0, Loss(time.time(), int(code), problem)),
    "recovery": lambda name: MEETING.report_recovery(Recovery(name)),
    "version": MEETING.introduce,
    "final": MEETING.report_final,
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
(FOLDER / f"{JOB}-{INDEX}.life-{LIFE}").touch()
lives = plans.get(f"{JOB} {INDEX}", "").split("|")
for action in filter(None, lives[min(LIFE, len(lives) - 1)].split(",")):
    verb, *values = action.split(":")
    ACTIONS[verb](*values)
os._exit(0)  # at once: a gRPC server would wait
