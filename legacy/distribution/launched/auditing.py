"""Makes tensorflow-estimator report its batches and variables if the launcher asked for an audit."""

from __future__ import annotations

import functools
from typing import Any

from estimator_bridge.cluster.audit_records import AuditPlan
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.runtime.patching import preceded, wrapped

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
    import tensorflow as tf

    if mode == "train":
        leaves = tf.nest.flatten((features, labels), expand_composites=True)
        graph = tf.compat.v1.get_default_graph()
        _batches.setdefault(graph, []).append([leaf for leaf in leaves if tf.is_tensor(leaf) and leaf.graph is graph])


def _train_with_audit_hook(
    auditing: AuditPlan, train: Any, estimator: Any, spec: Any, worker_hooks: Any, hooks: Any, step: Any, listeners: Any
) -> Any:
    import tensorflow as tf

    from estimator_bridge.legacy.distribution.launched.audit_hook import AuditHook

    batches = _batches.pop(tf.compat.v1.get_default_graph(), [])
    hook = AuditHook(auditing, estimator.config, batches, step, [*hooks, *spec.training_hooks, *spec.training_chief_hooks])
    return train(estimator, spec, [*worker_hooks, hook], hooks, step, listeners)
