"""Makes trainings of tensorflow-estimator report audited steps, if the launcher asked for an audit.

A report has digests of the batch and of the variables, and the number of steps.
"""

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.audit_records import AuditPlan, AuditRecord, Updates
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.runtime.batch_digest import batch_digest, processor_beside, variables_digest
from estimator_bridge.runtime.patching import preceded, wrapped

v1 = tf.compat.v1
_MIRRORED = ("Mirrored", "CollectiveAllReduce")  # in the names of strategies
_batches: dict[Any, list[list[Any]]] = {}  # graph of a training -> tensors of each local replica


def patches(rendezvous: Rendezvous) -> list[Any]:
    """Returns the patches of an audit; none if the launcher did not ask for one."""
    auditing = AuditPlan.read(rendezvous)
    if auditing is None:
        return []
    from tensorflow_estimator.python.estimator import estimator

    train = functools.partial(_train_with_audit_hook, auditing)
    return [
        preceded(estimator.Estimator, _call_model_fn=_remember_batch),
        wrapped(estimator.Estimator, _train_with_estimator_spec=train),
    ]


def _remember_batch(estimator: Any, features: Any, labels: Any, mode: Any, config: Any) -> None:
    """Keeps the batch, which is hashed later: operations before the model's would change the seeds that the graph gives to those."""
    if mode == "train":
        leaves = tf.nest.flatten((features, labels), expand_composites=True)
        graph = tf.compat.v1.get_default_graph()
        _batches.setdefault(graph, []).append([leaf for leaf in leaves if tf.is_tensor(leaf) and leaf.graph is graph])


def _train_with_audit_hook(
    auditing: AuditPlan, train: Any, estimator: Any, spec: Any, worker_hooks: Any, hooks: Any, step: Any, listeners: Any
) -> Any:
    batches = _batches.pop(tf.compat.v1.get_default_graph(), [])
    hook = AuditHook(auditing, estimator.config, batches, step, [*hooks, *spec.training_hooks, *spec.training_chief_hooks])
    return train(estimator, spec, [*worker_hooks, hook], hooks, step, listeners)


class AuditHook(tf.compat.v1.train.SessionRunHook):
    """Writes a report at each start of a session and after each audited step.

    Args:
        auditing: Request for audited steps and the folder of their reports.
        config: RunConfig, which names this task.
        batches: Tensors that each local replica trains on.
        step: Variable of the global step.
        hooks: Hooks of the training; the one of SyncReplicasOptimizer tells how gradients are aggregated.
    """

    def __init__(
        self, auditing: AuditPlan, config: Any, batches: Sequence[Sequence[Any]], step: Any, hooks: Sequence[Any]
    ) -> None:
        self._auditing = auditing
        self._config = config
        self._batches = batches
        self._step = step
        # The SyncReplicasOptimizer of the training, TensorFlow's or a copy in the script's modules.
        sync = next((hook._sync_optimizer for hook in hooks if hasattr(hook, "_sync_optimizer")), None)
        self._updates = _updates(sync is not None, config.num_ps_replicas)
        self._share = _share(sync) if sync is not None else None
        self._local = 0
        self._before: int | None = None

    def begin(self) -> None:
        """Adds the digests to the graph, after all operations of the model."""
        with tf.name_scope("estimator_bridge_audit"):
            self._digests = [_on_processor(batch) for batch in self._batches if batch]
            self._variables = _variables(self._updates)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reports the start of a training, or its new start after servers were lost."""
        self._local = 0
        self._write(int(session.run(self._step)))

    def before_run(self, run_context: Any) -> Any:
        """Asks for the batch's digest if the step is audited."""
        if not self._auditing.is_due(self._local + 1):
            return None
        if self._updates is Updates.OWN:
            [self._before] = run_context.session.run(self._variables)
        return v1.train.SessionRunArgs(self._digests)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Reports the step if it is audited."""
        self._local += 1
        if run_values.results is None:
            return
        step, variables = run_context.session.run((self._step, self._variables))
        own = self._updates is Updates.OWN
        self._write(
            int(step),
            batches=_numbers(run_values.results),
            variables=() if own else _numbers(variables),
            changed=bool(variables[0] != self._before) if own else None,
        )

    def _write(self, step: int, **fields: Any) -> None:
        self._auditing.write(
            AuditRecord(TaskId.of_config(self._config), self._local, step, self._updates, self._share, **fields)
        )


def _numbers(digests: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(digest) for digest in digests)


def _on_processor(batch: Sequence[Any]) -> Any:
    with tf.device(processor_beside(batch[0].device)):
        return batch_digest(batch)


def _share(optimizer: Any) -> float | None:
    """Returns the local steps of each worker for a global one; None with backup workers, whose numbers of steps differ."""
    asked, workers = optimizer._replicas_to_aggregate, optimizer._total_num_replicas
    return asked / workers if asked >= workers else None


def _updates(aggregated: bool, servers: int) -> Updates:
    strategy = type(tf.distribute.get_strategy()).__name__
    if any(name in strategy for name in _MIRRORED):
        return Updates.MIRRORED
    if aggregated:
        return Updates.AGGREGATED
    return Updates.OWN if servers else Updates.UNKNOWN


def _variables(updates: Updates) -> list[Any]:
    """Returns digests of the variables on the servers, or of each local replica's copies of mirrored variables."""
    if updates is Updates.OWN:
        return [variables_digest(v1.trainable_variables())]
    if updates is not Updates.MIRRORED:
        return []
    kept = [one for one in v1.global_variables() if one.synchronization != tf.VariableSynchronization.ON_READ]
    local = tf.distribute.get_strategy().experimental_local_results
    return [variables_digest(copies) for copies in zip(*map(local, kept), strict=True)]
