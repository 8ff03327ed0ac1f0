"""TF_CONFIG: the environment variable that tells a process its cluster and its place in it."""

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import dropped, exact, flag, mapped
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity, RuleTable

_RESOLVER = "tf.distribute.cluster_resolver.TFConfigClusterResolver"
JOBS = "cluster.jobs"


def _cluster(value: Mapping[str, Any]) -> Conversion:
    """Returns the jobs with their addresses; Estimator called the chief ``master`` before TensorFlow 1.4."""
    return Conversion({JOBS: {("chief" if job == "master" else job): addresses(tasks) for job, tasks in value.items()}})


def addresses(tasks: Any) -> tuple[str, ...]:
    """Returns a job's addresses, which TF_CONFIG gives as a list or as an object by index."""
    return tuple(tasks[key] for key in sorted(tasks, key=int)) if isinstance(tasks, Mapping) else tuple(tasks)


def _task(value: str) -> Conversion:
    sidecar = {"evaluation.sidecar": True} if value == "evaluator" else {}
    return Conversion({"cluster.task_type": "chief" if value == "master" else value} | sidecar)


TF_CONFIG = RuleTable(
    "tf_config",
    "TF_CONFIG",
    (
        mapped("cluster", f"{_RESOLVER}().cluster_spec()", Fidelity.EXACT, _cluster,
               lambda settings: settings.get(JOBS), {"chief": ("localhost:2222",), "worker": ("localhost:2223",)}),
        mapped("task.type", f"{_RESOLVER}().task_type", Fidelity.EXACT, _task,
               lambda settings: settings.get("cluster.task_type"), "worker"),
        mapped("task.index", f"{_RESOLVER}().task_id", Fidelity.EXACT, lambda value: Conversion({"cluster.task_id": int(value)}),
               lambda settings: settings.get("cluster.task_id"), 0, note="Estimator and the resolver take a number in quotes too."),
        dropped("task.trial", "The tuning service's trial number; no TensorFlow reads it."),
        dropped("task.cloud", "The platform's own; no TensorFlow reads it."),
        exact("rpc_layer", "cluster.rpc_layer", f"{_RESOLVER}(rpc_layer=...)", "grpc"),
        exact("session_master", "cluster.session_master", f"{_RESOLVER}().master()", "grpc://localhost:2222"),
        exact("environment", "cluster.environment", f"{_RESOLVER}(environment=...)", "cloud",
              note="The platform's name; resolvers keep it, strategies do not act on it."),
        dropped("eval_session_master", "The evaluator's session; a SidecarEvaluator evaluates in its own process."),
        exact("model_dir", "training.model_dir", "the folder of tf.train.CheckpointManager and of events", "model",
              note="Only Estimator read it; if RunConfig(model_dir) is given, too, both must be equal."),
        dropped("service", "What a platform's TF_CONFIG says to Estimator's TPU code."),
        dropped("job", "The platform's own description of the job; no TensorFlow reads it."),
    ),
    about="Keys of the JSON object, including those that training platforms add.",
)  # fmt: skip


def _task_type(name: str, note: str) -> ConversionRule:
    return flag(name, "cluster.task_type", name, name, note, Fidelity.EXACT, example=name)


TASK_TYPES = RuleTable(
    "task_types",
    "Task types of TF_CONFIG",
    (
        _task_type("chief", "One task, which saves and logs; with parameter servers it becomes the coordinator."),
        mapped("master", "chief", Fidelity.APPROXIMATE, _task, None, "master",
               note="The chief's name before TensorFlow 1.4; today's resolvers refuse it, so it is renamed."),
        _task_type("worker", "With parameter servers a worker runs a tf.distribute.Server and waits for the coordinator's calls."),
        _task_type("ps", "Only ParameterServerStrategy has them; MultiWorkerMirroredStrategy keeps variables on the workers."),
        mapped("evaluator", "tf.keras.utils.SidecarEvaluator", Fidelity.APPROXIMATE, _task,
               lambda settings: "evaluator" if settings.get("cluster.task_type") == "evaluator" else None, "evaluator",
               note="It is not part of the cluster that a strategy sees: its process makes no strategy of several workers."),
    ),
)  # fmt: skip
