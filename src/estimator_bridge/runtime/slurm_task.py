"""``python -m estimator_bridge.runtime.slurm_task JOBS ARGUMENTS...``: one task of a Slurm job step becomes a ``launch`` with its TF_CONFIG.

TensorFlow's Slurm resolver says which task it is and where the others are.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from estimator_bridge.errors import BridgeError

_PORTS, _PORT_RANGE = 20000, 10000  # below those that Linux gives to outgoing connections; jobs on one node get others


def tf_config(jobs: Mapping[str, int], environment: Mapping[str, str]) -> str:
    """The TF_CONFIG of this process, one task of a Slurm job step.

    Args:
        jobs: tasks of each job.
        environment: with Slurm's variables.

    Returns:
        JSON.

    Raises:
        BridgeError: when Slurm started another number of tasks, or put this one where the resolver does not expect it.
    """
    import tensorflow as tf

    total, port = sum(jobs.values()), _PORTS + int(environment.get("SLURM_JOB_ID", 0)) % _PORT_RANGE
    try:  # which GPUs a task sees is Slurm's to say; the resolver has to think that there is one for each
        make = tf.distribute.cluster_resolver.SlurmClusterResolver
        resolver = make(dict(jobs), port, gpus_per_node=total, gpus_per_task=1, auto_set_gpu=False)
        cluster = resolver.cluster_spec().as_dict()
    except (RuntimeError, KeyError) as error:
        raise BridgeError(
            "TensorFlow's Slurm resolver does not find this job's tasks.",
            expected=f"{total} tasks of one job step: {dict(jobs)}",
            received=error,
            fix="Submit the script by sbatch with the --ntasks that is in it.",
        ) from error
    job, index = resolver.get_task_info()
    node, host = environment.get("SLURMD_NODENAME"), cluster[job][index].rpartition(":")[0]
    if node and node != host:
        raise BridgeError(
            f"{job} {index} runs on another machine than the others would look for it.",
            expected=host,
            received=node,
            fix="The resolver takes nodes in the order of the alphabet: ask for the default distribution of tasks (block), and for nodes "
            "whose numbers have the same number of digits.",
        )
    cluster.pop("evaluator", None)  # serves nothing
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
