"""The hook by which synchronous replicas begin together and count their steps, in a table on a parameter server."""

import time
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.distribution.replicas import Replicas
from estimator_bridge.legacy.warn_once import warn_once

_POLL_SECONDS = 0.05
_WARNING_SECONDS = 30.0  # between two warnings about missing replicas
_COUNT_SECONDS = 5.0  # for the others' last counts
_TABLE = "estimator_bridge_local_steps"
_NAME = "SyncReplicasOptimizer"


class ReplicaHook(tf.compat.v1.train.SessionRunHook):
    """Waits for all replicas at the start and counts the steps of its own; the chief's hook reports all counts at the end.

    Args:
        replicas: Replicas of the training, with their optimizer.
        model_dir: Folder of the summaries ``sync_replicas/local_steps/JOB_INDEX`` and ``sync_replicas/gradients_not_used``, which the chief
            writes every ``RunConfig.save_summary_steps`` local steps and at the end.
    """

    def __init__(self, replicas: Replicas, model_dir: str) -> None:
        self._replicas, self._config, self._model_dir = replicas, replicas.config, model_dir
        self._tasks = list(map(str, replicas.tasks))
        self._local_steps = self._first_step = self._written = 0
        self._before: dict[int, int] = {}

    def begin(self) -> None:
        """Adds its operations at the end of the graph, so that the model's operations keep their random seeds."""
        self._step = tf.compat.v1.train.get_global_step()
        self._count = tf.compat.v1.placeholder(tf.int64, [], "local_steps")
        with tf.device(self._step.device):
            table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name=_TABLE)
            own = tf.constant(self._replicas.own, tf.int64)
            self._insert = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=own, values=self._count)
            self._export = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.int64)
        if self._replicas.queue is not None:
            self._left, self._drop = self._replicas.queue.size(), self._replicas.queue.dequeue()
        if self._config.is_chief:
            self._held, self._emptied = self._of_accumulators()
            self._release = self._replicas.release()

    def _of_accumulators(self) -> tuple[list[Any], list[Any]]:
        """Returns operations that count the gradients of each accumulator, and operations that drop them."""
        held, emptied = [], []
        for accumulator, device in self._replicas.optimizer._accumulator_list:
            with tf.device(device):
                held.append(accumulator.num_accumulated())
                emptied.append(tf.group(accumulator.take_grad(1)))  # all gradients that it holds
        return held, emptied

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Waits for the other replicas, each time that the session is created."""
        self._catch_up(session)
        self._before = self._counts(session)
        self._local_steps = self._before.get(self._replicas.own, 0)
        if self._config.is_chief:
            self._begin_anew(session)
        session.run(self._insert, {self._count: self._local_steps})
        self._wait_for_all(session)
        self._first_step = int(session.run(self._step))

    def _catch_up(self, session: Any) -> None:
        """Drops the tokens that a replica left in its queue when it was killed while it waited for the others."""
        session.run(self._replicas.optimizer.local_step_init_op)
        while self._replicas.queue is not None and (more := session.run(self._left) - self._replicas.ahead) > 0:
            for _ in range(more):
                session.run(self._drop)
            session.run(self._replicas.optimizer.local_step_init_op)

    def _begin_anew(self, session: Any) -> None:
        """Drops gradients that the servers kept while the chief was gone: it has restored the variables from its checkpoint.

        Replicas that wait for that update give new gradients.
        """
        held = session.run(self._held)
        session.run([emptied for emptied, number in zip(self._emptied, held, strict=True) if number])
        if any(held):
            dropped = f"{max(held)} gradient{'' if max(held) == 1 else 's'}"
            warn_once(
                f"{self._own} is back: dropped {dropped} from before its restart, which no longer fit the variables", _NAME
            )
        if self._replicas.own in self._before:
            session.run(self._replicas.optimizer.chief_init_op)  # else their gradients would count as stale
            session.run(self._release)

    def _wait_for_all(self, session: Any) -> None:
        limit = self._config.session_creation_timeout_secs
        started = warned_at = time.monotonic()
        while missing := [name for place, name in enumerate(self._tasks) if place not in self._counts(session)]:
            now = time.monotonic()
            if now - started > limit:
                raise BridgeError(
                    f"{_NAME}: {', '.join(missing)} did not start to train within {limit:g} s.",
                    expected="every chief and worker of TF_CONFIG running the script under estimator-bridge",
                    fix="Read the logs of these tasks, or give them time with RunConfig(session_creation_timeout_secs=...).",
                )
            if now - warned_at > _WARNING_SECONDS:
                warned_at = now
                warn_once(f"{self._own} has waited {now - started:.0f} s for {', '.join(missing)}", _NAME)
            time.sleep(_POLL_SECONDS)

    @property
    def _own(self) -> str:
        return self._tasks[self._replicas.own]

    def _counts(self, session: Any) -> dict[int, int]:
        keys, values = session.run(self._export)
        return dict(zip(keys.tolist(), values.tolist(), strict=True))

    def before_run(self, run_context: Any) -> Any:
        """Counts the step that begins."""
        self._local_steps += 1
        return tf.compat.v1.train.SessionRunArgs(self._insert, {self._count: self._local_steps})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Writes the counts every ``save_summary_steps`` steps."""
        every = self._config.save_summary_steps
        if self._config.is_chief and every and self._local_steps >= self._written + every:
            self._write(run_context.session)

    def end(self, session: Any) -> None:
        """Reports the counts, after those of all replicas in step are equal."""
        warn_once(f"{self._own} took {self._local_steps} local steps", _NAME)
        if self._config.is_chief:
            deadline = time.monotonic() + _COUNT_SECONDS
            while (
                self._replicas.queue is not None
                and len(set(self._counts(session).values())) > 1
                and time.monotonic() < deadline
            ):
                time.sleep(_POLL_SECONDS)
            warn_once(self._write(session), _NAME)

    def _write(self, session: Any) -> str:
        counts, step = self._counts(session), int(session.run(self._step))
        used = (step - self._first_step) * self._replicas.optimizer._replicas_to_aggregate
        unused = max(0, sum(counts.values()) - sum(self._before.values()) - used)  # after a restart some counts are older
        steps = {name: counts.get(place, 0) for place, name in enumerate(self._tasks)}
        values = {f"sync_replicas/local_steps/{name.replace(' ', '_')}": number for name, number in steps.items()}
        summary = tf.compat.v1.Summary()
        for tag, value in (values | {"sync_replicas/gradients_not_used": unused}).items():
            summary.value.add(tag=tag, simple_value=value)
        writer = tf.compat.v1.summary.FileWriterCache.get(self._model_dir)
        writer.add_summary(summary, step)
        writer.flush()  # Estimator's own hooks may have flushed already
        self._written = self._local_steps
        counted = ", ".join(f"{name} {number}" for name, number in steps.items())
        return f"local steps: {counted}; {used} gradients in {step - self._first_step} updates, {unused} not used"
