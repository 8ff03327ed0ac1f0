"""A TFJob for Kubeflow's training operator, which starts a pod a task and gives each its TF_CONFIG.

Fields are those of the resource ``kubeflow.org/v1`` TFJob: https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/tensorflow/
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

_REPLICAS = {"chief": "Chief", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator"}
_RETURN_SECONDS = 300  # a pod is back within a minute, or within several if its image has to be fetched
_NAME_LENGTH = 40  # the operator appends job, index and more; a label has 63 characters


def manifest(counts: Mapping[str, int], image: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Makes the TFJob resource.

    Args:
        counts: Number of tasks of each job.
        image: Container image with this package, TensorFlow and the script.
        arguments: Arguments of ``estimator-bridge launch``, which reach each pod unchanged.

    Returns:
        The resource that ``kubectl apply`` takes as JSON. It contains no secrets: volumes and service accounts that the user adds provide
        what the script needs.

    Example:
        >>> resource = manifest({"chief": 1, "worker": 2}, "registry.example/job:1", ["--trusted-network", "train.py"])
        >>> {kind: spec["replicas"] for kind, spec in resource["spec"]["tfReplicaSpecs"].items()}
        {'Chief': 1, 'Worker': 2}
    """
    # In a command Kubernetes expands $(NAME), and turns $$ into $.
    literal = [argument.replace("$", "$$") for argument in arguments]
    container = {
        "name": "tensorflow",  # the operator finds the container by this name
        "image": image,
        "command": ["python", "-m", "estimator_bridge", "launch", f"--return-timeout={_RETURN_SECONDS}", *literal],
        "ports": [{"name": "tfjob-port", "containerPort": 2222}],
    }
    replicas = {
        kind: {
            "replicas": counts[job],
            "restartPolicy": "ExitCode",  # exit codes from 128 on are of signals and restart the pod; a mistake in the script does not
            "template": {"spec": {"containers": [container]}},
        }
        for job, kind in _REPLICAS.items()
        if counts.get(job)
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": _name(arguments)},
        # With "Running" the operator would delete the evaluator before its last evaluation, as soon as the chief has ended.
        "spec": {"runPolicy": {"cleanPodPolicy": "None"}, "tfReplicaSpecs": replicas},
    }


def _name(arguments: Sequence[str]) -> str:
    """Returns the script's name as a DNS label, which the operator requires to begin with a letter."""
    script = next((PurePath(argument).stem for argument in arguments if argument.endswith(".py")), "")
    return re.sub(r"^[^a-z]+", "", re.sub(r"[^a-z0-9]+", "-", script.lower()))[:_NAME_LENGTH].strip("-") or "training"
