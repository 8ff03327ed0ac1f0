"""Tasks of a TF_CONFIG cluster on the modern path, run by tensorflow-estimator's own ``train_and_evaluate``.

Its evaluator calls ``Estimator.evaluate`` and the exporters, which the modern path executes. SidecarEvaluator of tf_keras is no
substitute, since it restores the object-based checkpoints of a Keras model. The distribute coordinator and the servers of sessions
are left out, since strategies of TensorFlow 2 connect by themselves.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_coordinator
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
from tensorflow.python.eager import context

from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.distribution import parameter_servers as cluster
from estimator_bridge.modern.distribution import strategies
from estimator_bridge.runtime.patching import replaced, wrapped

logging = tf.compat.v1.logging
_POLL_SECONDS = 0.5


@contextlib.contextmanager
def tasks() -> Iterator[None]:
    """While active, ``train_and_evaluate`` runs the task that TF_CONFIG names; enter it before the script makes a RunConfig."""
    from tensorflow.python.distribute import estimator_training
    from tensorflow_estimator.python.estimator import estimator, training

    with (
        wrapped(estimator_training, init_run_config=_init_run_config),
        replaced(training, _DELAY_SECS_PER_WORKER=0),  # workers that train in step start together
        wrapped(training._TrainingExecutor, _start_std_server=_start_std_server, run_worker=_run_worker, run_ps=_run_ps),
        wrapped(estimator.Estimator, evaluate=_evaluate),
        wrapped(
            CollectiveAllReduceExtended,
            _initialize_strategy=_initialize_strategy,
            _initialize_local_devices=_initialize_local_devices,
        ),
        # Estimator.config copies it in eager mode, too.
        replaced(CollectiveAllReduceExtended, __deepcopy__=lambda self, memo: self),
    ):
        yield


def _init_run_config(init_run_config: Callable[..., None], config: Any, tf_config: dict[str, Any]) -> None:
    """Sets the task of a RunConfig with a strategy at once; TF1's coordinator set it later."""
    cluster = tf_config.get("cluster") or {}
    init_run_config(config, {})
    if not cluster or config._distribute_coordinator_mode == distribute_coordinator.CoordinatorMode.STANDALONE_CLIENT:
        return
    task = tf_config.get("task") or {}
    if "chief" in cluster or "master" in cluster or task.get("type") == "evaluator":
        config._init_distributed_setting_from_environment_var(tf_config)
        return
    if not cluster.get("worker"):
        raise BridgeError(
            "TF_CONFIG's cluster has neither a chief nor a worker.",
            expected="a chief, or a worker that can lead the training",
            received=", ".join(sorted(cluster)),
        )
    first, *others = cluster["worker"]  # in a cluster without a chief the first worker leads
    numbered = {**cluster, "chief": [first], "worker": others}
    index = int(task.get("index", 0))
    own = dict(task)
    if task.get("type") == "worker":
        own = {"type": "chief", "index": 0} if index == 0 else {"type": "worker", "index": index - 1}
    config._init_distributed_setting_from_environment_var({**tf_config, "cluster": numbered, "task": own})
    config._cluster_spec = tf.train.ClusterSpec(cluster)
    config._task_type, config._task_id = task["type"], index


def _start_std_server(start: Callable[..., Any], executor: Any, config: Any) -> Any:
    """Starts a server of TF1's kind only under a ParameterServerStrategy."""
    shared = strategies.decision_for(config).strategy == "ParameterServerStrategy"
    return cluster.start(start, executor, config) if shared else None


def _run_ps(run_ps: Callable[..., None], executor: Any) -> None:
    """Ends a parameter server without work, since the strategy keeps the variables on the workers."""
    row = strategies.decision_for(executor._estimator.config)
    if row.strategy == "ParameterServerStrategy":
        run_ps(executor)
        return
    logging.warn("This parameter server holds no variables, so its task ends: %s.", row.note)
    rendezvous = Rendezvous.of_this_process()
    while rendezvous is not None and not rendezvous.has_flag(Flag.TRAINED):  # ending earlier would count as a failure
        time.sleep(_POLL_SECONDS)


def _run_worker(run_worker: Callable[..., None], executor: Any) -> None:
    """Makes the first worker of a cluster without a chief do what a chief does."""
    if executor._estimator.config.is_chief:
        executor.run_chief()
    else:
        run_worker(executor)


def _evaluate(evaluate: Callable[..., Any], estimator: Any, *args: Any, **kwargs: Any) -> Any:
    """Tells the launcher of an evaluation within a training, since other tasks wait for it, which is no stall."""
    rendezvous = Rendezvous.of_this_process()
    with rendezvous.pause_steps(TaskId.of_config(estimator.config)) if rendezvous else contextlib.nullcontext():
        return evaluate(estimator, *args, **kwargs)


def _initialize_strategy(initialize: Callable[..., None], extended: Any, cluster_resolver: Any, devices: Any) -> None:
    """Gives a strategy in an evaluator's or parameter server's script one CPU, since its task does not train."""
    jobs = cluster_resolver.cluster_spec().as_dict()
    outside = bool(jobs) and cluster_resolver.task_type not in jobs.keys() - {"ps"}
    initialize(extended, cluster_resolver, devices or (("/device:CPU:0",) if outside else None))


def _initialize_local_devices(initialize: Callable[..., Any], extended: Any, cluster_resolver: Any, worker_device: str) -> Any:
    """Lets a strategy that a script makes in graph mode count devices without initialising them, so that ours still can."""
    if context.executing_eagerly():
        return initialize(extended, cluster_resolver, worker_device)
    gpus = len(tf.config.list_physical_devices("GPU"))
    kind = "GPU" if gpus else "CPU"
    return tuple(f"{worker_device}/device:{kind}:{index}" for index in range(max(gpus, 1))), kind
