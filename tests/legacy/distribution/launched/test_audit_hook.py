"""Kinds of training that the audit of a launched legacy task recognises."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.training import sync_replicas_optimizer

from estimator_bridge.cluster.audit_records import AuditRecord, Updates
from estimator_bridge.legacy.distribution.launched.audit_hook import AuditHook

v1 = tf.compat.v1


def _copy() -> Any:
    """The module once more, its classes other ones: as in scripts that carry a copy of the file."""
    spec = importlib.util.spec_from_file_location("own_sync_replicas", sync_replicas_optimizer.__file__)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("module", [sync_replicas_optimizer, _copy()], ids=["tensorflow", "copy"])
def test_synchronous_replicas_are_told_by_their_hook_whoever_defines_it(module: Any) -> None:
    reports: list[AuditRecord] = []
    with tf.Graph().as_default():
        optimizer = module.SyncReplicasOptimizer(v1.train.GradientDescentOptimizer(0.1), 4, total_num_replicas=2)
        hooks = [v1.train.SessionRunHook(), optimizer.make_session_run_hook(is_chief=False)]
        config = SimpleNamespace(task_type="worker", task_id=0, num_ps_replicas=1)
        AuditHook(SimpleNamespace(write=reports.append), config, [], None, hooks).after_create_session(  # type: ignore[arg-type]
            SimpleNamespace(run=lambda step: 0), None
        )
    assert [(report.updates, report.share) for report in reports] == [(Updates.AGGREGATED, 2.0)]
