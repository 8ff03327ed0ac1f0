"""Exchanges text between the tasks of a cluster before they train, through a table in the first task's server."""

import itertools
import time
from typing import Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.server_waits import await_servers

_POLL_SECONDS = 0.05
_calls = itertools.count()  # every task makes the same calls in the same order


def allgather_text(config: Any, own: int, number: int, text: str) -> list[str]:
    """Sends a text to all other tasks and waits for theirs.

    Args:
        config: RunConfig of this task; its ``session_creation_timeout_secs`` is the deadline.
        own: Number of this task, from 0.
        number: Number of all tasks.
        text: Text of this task.

    Returns:
        The texts of all tasks, in the order of their numbers.

    Raises:
        BridgeError: The first task does not answer in time, or other texts are missing.
    """
    import tensorflow as tf

    job = "chief" if "chief" in config.cluster_spec.jobs else "worker"
    await_servers({job: [config.cluster_spec.task_address(job, 0)]}, config.session_creation_timeout_secs, "TF_CONFIG")
    first = f"/job:{job}/task:0"
    # A server of TensorFlow 2 hides the other tasks from a session that does not name them.
    seen = tf.compat.v1.ConfigProto(device_filters=[first, f"/job:{config.task_type}/task:{config.task_id}"])
    with tf.Graph().as_default(), tf.device(f"{first}/device:CPU:0"):
        name = f"estimator_bridge_exchange_{next(_calls)}"
        table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name=name)
        send, confirm = (
            tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=tf.constant(key, tf.int64), values=tf.constant(text))
            for key in (own, own + number)
        )
        export = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.string)
        with tf.compat.v1.Session(config.master, config=seen) as session:
            session.run(send)
            texts = _await_texts(session, export, number, config.session_creation_timeout_secs)
            session.run(confirm)
            if own == 0:  # its next step may end the process, and with it the table
                _await_texts(session, export, 2 * number, config.session_creation_timeout_secs)
    return [texts[place] for place in range(number)]


def _await_texts(session: Any, export: Any, number: int, seconds: float) -> dict[int, str]:
    """Returns the content of the table as soon as it has ``number`` entries."""
    deadline = time.monotonic() + seconds
    while True:
        keys, values = session.run(export)
        if len(keys) >= number:
            return {key: value.decode() for key, value in zip(keys.tolist(), values.tolist(), strict=True)}
        if time.monotonic() > deadline:
            raise BridgeError(
                f"The workers could not compare their inputs: only {len(keys)} of {number} answers arrived within {seconds:g} s.",
                expected="every chief and worker of TF_CONFIG running the script under estimator-bridge",
                fix="Read the logs of these tasks.",
            )
        time.sleep(_POLL_SECONDS)
