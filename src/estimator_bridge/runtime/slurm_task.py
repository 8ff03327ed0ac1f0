"""``python -m estimator_bridge.runtime.slurm_task JOBS ARGUMENTS...``: turns one task of a Slurm job step into a ``launch`` with its TF_CONFIG.

TensorFlow's Slurm resolver knows which task it is, and the addresses of the others.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from estimator_bridge.errors import BridgeError

# Below those that Linux gives to outgoing connections. Two jobs may share a node, mostly with numbers that follow each other.
_PORTS, _JOBS, _PORTS_OF_A_JOB = 20000, 200, 60


def tf_config(jobs: Mapping[str, int], environment: Mapping[str, str]) -> str:
    """Returns the TF_CONFIG of this process, one task of a Slurm job step, as JSON.

    Args:
        jobs: Number of tasks of each job.
        environment: Environment with Slurm's variables.

    Raises:
        BridgeError: Slurm started a different number of tasks, or runs this one on a node that the resolver does not expect.
    """
    import tensorflow as tf

    total, port = sum(jobs.values()), _PORTS + int(environment.get("SLURM_JOB_ID", 0)) % _JOBS * _PORTS_OF_A_JOB
    try:  # Slurm decides which GPUs a task sees; the resolver only has to count one for each task
        make = tf.distribute.cluster_resolver.SlurmClusterResolver
        resolver = make(dict(jobs), port, gpus_per_node=total, gpus_per_task=1, auto_set_gpu=False)
        cluster = resolver.cluster_spec().as_dict()
    except (RuntimeError, KeyError) as error:
        raise BridgeError(
            "TensorFlow's Slurm resolver cannot find this job's tasks.",
            expected=f"{total} tasks of one job step: {dict(jobs)}",
            received=error,
            fix="Submit the script with sbatch and the --ntasks that it contains.",
        ) from error
    job, index = resolver.get_task_info()
    node, host = environment.get("SLURMD_NODENAME"), cluster[job][index].rpartition(":")[0]
    if node and node != host:
        raise BridgeError(
            f"{job} {index} does not run on the machine where the other tasks expect it.",
            expected=host,
            received=node,
            fix="The resolver sorts nodes by name: ask for the default distribution of tasks (block), and for nodes whose numbers have the "
            "same number of digits.",
        )
    cluster.pop("evaluator", None)  # runs no server
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


def main(jobs: str, *arguments: str) -> None:
    """Becomes the task's launcher."""
    try:
        os.environ["TF_CONFIG"] = tf_config(json.loads(jobs), os.environ)
    except BridgeError as error:
        sys.stderr.write(f"estimator-bridge: {error}\n")
        sys.exit(error.exit_code)
    os.execv(sys.executable, [sys.executable, "-m", "estimator_bridge", "launch", *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
