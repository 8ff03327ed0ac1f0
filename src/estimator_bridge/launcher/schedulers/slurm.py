"""A batch script for Slurm, whose tasks ask TensorFlow's Slurm resolver for the addresses of the others (``runtime.slurm_task``)."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence


def batch_script(counts: Mapping[str, int], arguments: Sequence[str]) -> str:
    """Makes the script that ``sbatch`` takes.

    Args:
        counts: Number of tasks of each job.
        arguments: Arguments of ``estimator-bridge launch`` in each task.

    Returns:
        The script. Partition, time, memory, processors and GPUs belong on the command line of sbatch.

    Example:
        >>> print(batch_script({"chief": 1, "worker": 2}, ["train.py"]).splitlines()[1])
        #SBATCH --ntasks=3
    """
    jobs = {job: number for job, number in counts.items() if number}
    command = [sys.executable, "-m", "estimator_bridge.runtime.slurm_task", json.dumps(jobs), *arguments]
    lines = ["#!/bin/bash", f"#SBATCH --ntasks={sum(jobs.values())}", f"srun --kill-on-bad-exit=1 {shlex.join(command)}"]
    return "\n".join(lines) + "\n"
