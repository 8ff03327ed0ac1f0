"""Synchronous replicas begin together and count their steps, in a table on the parameter server that no checkpoint knows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.notes import note

if TYPE_CHECKING:
    from estimator_bridge.legacy.synchronous import Replicas

_POLL_SECONDS = 0.05
_SAY_SECONDS = 30.0  # between two lines on who is missing
_COUNT_SECONDS = 5.0  # for the others' last counts
_TABLE = "estimator_bridge_local_steps"


def replica_hook(replicas: Replicas, model_dir: str) -> Any:
    """The hook of one replica.

    Args:
        replicas: of the training, with their optimizer.
        model_dir: where the chief writes summaries: ``sync_replicas/local_steps/JOB_INDEX`` of each replica.

    Returns:
        A SessionRunHook.
    """
    import tensorflow as tf

    config, optimizer, own = replicas.config, replicas.optimizer, replicas.own
    tasks = replicas.tasks

    class ReplicaHook(tf.compat.v1.train.SessionRunHook):
        """Waits for all at the start; counts; the chief says at the end how many steps each took."""

        def __init__(self) -> None:  # the base class has nothing to set, and tells of its deprecation
            self.local_steps = self.first_step = self.written = 0
            self.before: dict[int, int] = {}

        def begin(self) -> None:
            self.step = tf.compat.v1.train.get_global_step()
            self.count = tf.compat.v1.placeholder(tf.int64, [], "local_steps")
            with tf.device(self.step.device):
                table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name=_TABLE)
                key = tf.constant(own, tf.int64)
                self.insert = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=key, values=self.count)
                self.export = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.int64)
            if replicas.queue is not None:
                self.left, self.drop = replicas.queue.size(), replicas.queue.dequeue()

        def after_create_session(self, session: Any, coord: Any) -> None:
            self._catch_up(session)
            self.before = self._counts(session)
            self.local_steps = self.before.get(own, 0)
            session.run(self.insert, {self.count: self.local_steps})
            self._wait_for_all(session)
            self.first_step = int(session.run(self.step))

        def _catch_up(self, session: Any) -> None:
            """A replica that was here before would else be one step ahead for each token that it left."""
            session.run(optimizer.local_step_init_op)
            while replicas.queue is not None and (left := session.run(self.left)):
                for _ in range(left):
                    session.run(self.drop)
                session.run(optimizer.local_step_init_op)

        def _wait_for_all(self, session: Any) -> None:
            started = said = time.monotonic()
            while missing := [f"{job} {index}" for place, (job, index) in enumerate(tasks) if place not in self._counts(session)]:
                if time.monotonic() - started > config.session_creation_timeout_secs:
                    raise BridgeError(
                        f"Synchronous replicas are missing after {config.session_creation_timeout_secs} s: {', '.join(missing)}.",
                        expected="that estimator-bridge runs the script as every chief and worker of TF_CONFIG",
                        fix="Read the logs of these tasks.",
                    )
                if time.monotonic() - said > _SAY_SECONDS:
                    said = time.monotonic()
                    note(f"waiting for {', '.join(missing)} for {said - started:.0f} s", "SyncReplicasOptimizer")
                time.sleep(_POLL_SECONDS)

        def _counts(self, session: Any) -> dict[int, int]:
            keys, values = session.run(self.export)
            return dict(zip(keys.tolist(), values.tolist(), strict=True))

        def before_run(self, run_context: Any) -> Any:
            self.local_steps += 1
            return tf.compat.v1.train.SessionRunArgs(self.insert, {self.count: self.local_steps})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            every = config.save_summary_steps
            if config.is_chief and every and self.local_steps >= self.written + every:
                self._write(run_context.session, self._counts(run_context.session))

        def end(self, session: Any) -> None:
            note(f"{config.task_type} {config.task_id} took {self.local_steps} local steps", "SyncReplicasOptimizer")
            if not config.is_chief:
                return
            deadline = time.monotonic() + _COUNT_SECONDS
            counts = self._counts(session)
            while replicas.queue is not None and len(set(counts.values())) > 1 and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                counts = self._counts(session)
            self._write(session, counts)
            note(self.told, "SyncReplicasOptimizer")

        def _write(self, session: Any, counts: dict[int, int]) -> None:
            step = int(session.run(self.step))
            used = (step - self.first_step) * optimizer._replicas_to_aggregate
            unused = sum(counts.values()) - sum(self.before.values()) - used
            named = {f"{job}_{index}": counts.get(place, 0) for place, (job, index) in enumerate(tasks)}
            values = {f"sync_replicas/local_steps/{name}": steps for name, steps in named.items()}
            values["sync_replicas/gradients_not_used"] = unused
            summary = tf.compat.v1.Summary(
                value=[tf.compat.v1.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            )
            tf.compat.v1.summary.FileWriterCache.get(model_dir).add_summary(summary, step)
            self.written = self.local_steps
            self.told = f"local steps {named}, {used} gradients used in {step - self.first_step} updates, {unused} not used"

    return ReplicaHook()
