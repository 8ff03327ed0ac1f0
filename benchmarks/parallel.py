"""Every kind of parallelism for one training, against one device and against tf.distribute by hand.

    python benchmarks/parallel.py [--runs 3] [--width 1024] [--rows 256] [--gpu] [--ways "model=2" "two replicas"]

Trains jobs/wide_layers.py (four wide layers, Adam) by the modern path in each way, and jobs/wide_layers_by_hand.py (Keras' layers, a loop in a
tf.function) on one device, on two replicas and on two workers, all in turns. Prints a Markdown table: the median of the steps per second, how
many times as many rows per second as on one device of the same kind (a way of ours to ours, by hand to by hand), and what ``plan`` says:
the bytes of variables and slots on the fullest device, and the part of a step in which devices of a pipeline wait.

Without ``--gpu`` devices are virtual and share the cores of this machine, as workers do: the table shows what each way costs where nothing is
won. jobs/idle_layers.py (benchmarks/pipeline.py, benchmarks/extrapolation.py) shows what a schedule wins.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turns import logged_steps_per_second, ratio

JOBS = Path(__file__).parent / "jobs"
PROGRAM = [sys.executable, "-m", "estimator_bridge"]


class Way(NamedTuple):
    """A way to train.

    Attributes:
        options: Options of ``run`` or ``launch``; of jobs/wide_layers_by_hand.py if it is by hand.
        workers: Number of processes.
        by_hand: True without estimator-bridge.
        plan: Text of a plan, if the way has one.
        gpus: Number of GPUs that it takes; with fewer it is left out.
    """

    options: Sequence[str] = ()
    workers: int = 1
    by_hand: bool = False
    plan: str = ""
    gpus: int = 1


WAYS = {
    "one device": Way(),
    "micro=4": Way(["--micro", "4"]),
    "model=2": Way(["--mesh", "model=2"], gpus=2),
    "pipeline=2, micro=8": Way(["--mesh", "pipeline=2", "--micro", "8"], gpus=2),
    "two replicas": Way(["--replicas", "2"], gpus=2),
    "two workers": Way(workers=2, gpus=2),
    "two workers, sharded state": Way(workers=2, plan='[optimizer]\nstate = "sharded"\n', gpus=2),
    "two workers, model=2 in each": Way(["--mesh", "data=2,model=2"], workers=2, gpus=4),
    "two workers, elastic, four batches": Way(["--elastic", "1:2", "--micro", "4"], workers=2, gpus=2),
    "by hand: one device": Way(["--way", "one"], by_hand=True),
    "by hand: MirroredStrategy, two replicas": Way(["--way", "mirrored"], by_hand=True, gpus=2),
    "by hand: MultiWorkerMirroredStrategy, two workers": Way(["--way", "workers"], workers=2, by_hand=True, gpus=2),
}
BATCHES = {"two workers, elastic, four batches": 4, "two replicas": 1, "by hand: MirroredStrategy, two replicas": 1}
"""Batches that all devices together take for a step; a worker takes one else."""
BY_HAND = {
    "one device": "by hand: one device",
    "two workers": "by hand: MultiWorkerMirroredStrategy, two workers",
    "two replicas": "by hand: MirroredStrategy, two replicas",
}
"""Ways of ours, and the same without estimator-bridge."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=list(WAYS), help="both ways on one device are always measured"
    )
    parser.add_argument("--gpu", action="store_true", help="let the trainings see the machine's GPUs")
    arguments = parser.parse_args()
    flags = [f"--width={arguments.width}", f"--steps={arguments.steps}", f"--rows={arguments.rows}"]
    hidden = {} if arguments.gpu else {"CUDA_VISIBLE_DEVICES": "-1"}
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"} | hidden
    gpus = (
        len(subprocess.check_output(["nvidia-smi", "-L"]).splitlines())
        if arguments.gpu
        else max(way.gpus for way in WAYS.values())
    )
    wanted = {"one device", "by hand: one device", *arguments.ways}
    ways = {name: way for name, way in WAYS.items() if way.gpus <= gpus and name in wanted}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.runs):
        for name, way in ways.items():
            batches = BATCHES.get(name, way.workers)
            rates[name].append(batches * measured(way, flags, environment, arguments.gpu))
    print("| way | steps/s | rows/s, times one device | fullest device | waits |\n|---|---|---|---|---|")
    for name, way in ways.items():
        one = rates["by hand: one device" if way.by_hand else "one device"]
        steps = statistics.median(rates[name]) / BATCHES.get(name, way.workers)
        held, waits = ("", "") if way.by_hand else planned(way, flags, environment)
        print(f"| {name} | {steps:.2f} | {ratio(rates[name], one)} | {held} | {waits} |", flush=True)
    for name, other in BY_HAND.items():
        if ways.keys() >= {name, other}:
            print(f"Ours to by hand, {name}: {ratio(rates[name], rates[other])}")
    if left_out := wanted - ways.keys():
        print(f"Left out, for want of GPUs ({gpus}): {', '.join(sorted(left_out))}")


def measured(way: Way, flags: Sequence[str], environment: dict[str, str], gpu: bool) -> float:
    """Trains once; returns the steps per second."""
    if way.by_hand:
        return by_hand(way, flags, environment)
    with tempfile.TemporaryDirectory() as folder:
        options = [*way.options, *plan_file(way, Path(folder))]
        job = [f"--model_dir={folder}/model", *flags]
        return logged_steps_per_second(JOBS / "wide_layers.py", job, options, way.workers, gpu)


def by_hand(way: Way, flags: Sequence[str], environment: dict[str, str]) -> float:
    """Trains once without estimator-bridge; returns the steps per second."""
    command = [sys.executable, str(JOBS / "wide_layers_by_hand.py"), *way.options, *flags]
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(way.workers)]}
    configs = [json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}) for index in range(way.workers)]
    own = [environment | ({"TF_CONFIG": config} if way.workers > 1 else {}) for config in configs]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=one) for one in own]
    outputs = [process.communicate() for process in processes]
    found = re.search(r"steps per second: (.+)", outputs[0][0])
    return float(found[1]) if found else sys.exit(outputs[0][1][-3000:])


def planned(way: Way, flags: Sequence[str], environment: dict[str, str]) -> tuple[str, str]:
    """Returns the bytes of the fullest device, and how long devices wait."""
    with tempfile.TemporaryDirectory() as folder:
        kept = [one for one in way.options if one not in ("--replicas", "2")]
        options = ["--format", "json", *kept, *plan_file(way, Path(folder))]
        command = [*PROGRAM, "plan", *options, str(JOBS / "wide_layers.py"), f"--model_dir={folder}/model", *flags]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    parts = way.workers if way.plan else 1
    most = max(one["variable_bytes"] + one["slot_bytes"] / parts for one in found["devices"])
    return f"{most / 2**20:.1f} MiB", f"{found['bubble']:.0%}" if found["bubble"] else ""


def plan_file(way: Way, folder: Path) -> list[str]:
    """Writes the plan of a way, if it has one; returns the option."""
    if not way.plan:
        return []
    (folder / "plan.toml").write_text(way.plan)
    return ["--plan", str(folder / "plan.toml")]


def free_ports(number: int) -> list[int]:
    """Returns ports that are free now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


if __name__ == "__main__":
    main()
