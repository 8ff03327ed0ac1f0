"""A stand-in for srun on one node: starts SLURM_NTASKS tasks with Slurm's variables, each with its output in a file."""

import os
import subprocess
import sys
import time
from pathlib import Path

number = int(os.environ["SLURM_NTASKS"])
node = os.environ.get("STAND_IN_NODE", "localhost")
step = {
    "SLURM_STEP_NODELIST": node,
    "SLURM_STEP_NUM_TASKS": str(number),
    "SLURM_STEP_TASKS_PER_NODE": str(number),
    "SLURMD_NODENAME": "localhost",
}
command = [argument for position, argument in enumerate(sys.argv[1:]) if position or not argument.startswith("--")]
tasks = []
for rank in range(number):
    with Path(f"task-{rank}.out").open("wb") as output:
        environment = {**os.environ, **step, "SLURM_PROCID": str(rank)}
        tasks.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))
while any(task.poll() is None for task in tasks) and not any(task.poll() for task in tasks):
    time.sleep(0.05)
for task in tasks:
    task.terminate()
sys.exit(max(abs(task.wait()) for task in tasks))
