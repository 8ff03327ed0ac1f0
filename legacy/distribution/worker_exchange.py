"""What the tasks of one cluster ask each other through a table in the first one's server, before they train."""

from __future__ import annotations

import itertools
import time
from typing import Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.server_waits import await_servers

_POLL_SECONDS = 0.05
_calls = itertools.count()  # every task asks the same questions in the same order


def allgather_text(config: Any, own: int, number: int, text: str) -> list[str]:
    """Tells the others a text and waits for theirs.

    Args:
        config: RunConfig of this task; the others are given up after its ``session_creation_timeout_secs``.
        own: number of this task; 0 is the first one's.
        number: of all tasks.
        text: to tell.

    Returns:
        Everybody's text, in the order of their numbers.

    Raises:
        BridgeError: when the first one does not answer, or some have not told theirs, in time.
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
        tell, thank = (
            tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=tf.constant(key, tf.int64), values=tf.constant(text))
            for key in (own, own + number)
        )
        export = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.string)
        with tf.compat.v1.Session(config.master, config=seen) as session:
            session.run(tell)
            told = _told(session, export, number, config.session_creation_timeout_secs)
            session.run(thank)
            if own == 0:  # what it decides may end it, and with it the table
                _told(session, export, 2 * number, config.session_creation_timeout_secs)
    return [told[place] for place in range(number)]


def _told(session: Any, export: Any, number: int, seconds: float) -> dict[int, str]:
    """What the table holds, as soon as that is enough."""
    deadline = time.monotonic() + seconds
    while True:
        keys, values = session.run(export)
        if len(keys) >= number:
            return {key: value.decode() for key, value in zip(keys.tolist(), values.tolist(), strict=True)}
        if time.monotonic() > deadline:
            raise BridgeError(
                f"Of {number} answers {len(keys)} have come within {seconds:g} s, while the workers compared their inputs.",
                expected="that estimator-bridge runs the script as every chief and worker of TF_CONFIG",
                fix="Read the logs of these tasks.",
            )
        time.sleep(_POLL_SECONDS)
