"""A TFJob for Kubeflow's training operator, which starts a pod a task and gives each its TF_CONFIG.

Fields are those of the resource ``kubeflow.org/v1`` TFJob: https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/tensorflow/
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

_REPLICAS = {"chief": "Chief", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator"}
_RETURN_SECONDS = 300  # a pod is there again within a minute, or within some where its image has to be fetched
_NAME_LENGTH = 40  # the operator appends job, index and more; a label has 63 characters


def manifest(counts: Mapping[str, int], image: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The resource.

    Args:
        counts: tasks of each job.
        image: of the container, with this package, TensorFlow and the script in it.
        arguments: of ``estimator-bridge launch`` in each pod, which get there as they are.

    Returns:
        What ``kubectl apply`` takes as JSON. Kubernetes names no secret in it, and neither do we: what the script needs comes from volumes
        and service accounts that are added to it.

    Example:
        >>> made = manifest({"chief": 1, "worker": 2}, "registry.example/job:1", ["--trusted-network", "train.py"])
        >>> {kind: spec["replicas"] for kind, spec in made["spec"]["tfReplicaSpecs"].items()}
        {'Chief': 1, 'Worker': 2}
    """
    # In a command Kubernetes expands $(NAME), and turns $$ into $.
    literal = [argument.replace("$", "$$") for argument in arguments]
    container = {
        "name": "tensorflow",  # by which the operator finds it
        "image": image,
        "command": ["python", "-m", "estimator_bridge", "launch", f"--return-timeout={_RETURN_SECONDS}", *literal],
        "ports": [{"name": "tfjob-port", "containerPort": 2222}],
    }
    replicas = {
        kind: {
            "replicas": counts[job],
            "restartPolicy": "ExitCode",  # from 128 on, ended by a signal, a pod is started again; a mistake is not
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
    """Of the script, in the letters of a DNS label, which the operator wants to begin with one."""
    script = next((PurePath(argument).stem for argument in arguments if argument.endswith(".py")), "")
    return re.sub(r"^[^a-z]+", "", re.sub(r"[^a-z0-9]+", "-", script.lower()))[:_NAME_LENGTH].strip("-") or "training"
