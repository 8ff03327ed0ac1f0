"""What the tasks of one cluster ask each other through a table in the first one's server, before they train."""

from __future__ import annotations

import itertools
import time

from estimator_bridge.errors import BridgeError

_POLL_SECONDS = 0.05
_calls = itertools.count()  # every task asks the same questions in the same order


def exchanged(target: str, device: str, own: int, number: int, text: str, seconds: float) -> list[str]:
    """Tells the others a text and waits for theirs.

    Args:
        target: this task's server, which a session can be opened to.
        device: of the first task, where the table is kept.
        own: number of this task.
        number: of all tasks.
        text: to tell.
        seconds: after which the others are given up.

    Returns:
        Everybody's text, in the order of their numbers.

    Raises:
        BridgeError: when some have not told theirs in time.
    """
    import tensorflow as tf

    with tf.Graph().as_default(), tf.device(device):
        name = f"estimator_bridge_exchange_{next(_calls)}"
        table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name=name)
        insert = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=tf.constant(own, tf.int64), values=tf.constant(text))
        export = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.string)
        deadline = time.monotonic() + seconds
        with tf.compat.v1.Session(target) as session:
            session.run(insert)
            while True:
                keys, values = session.run(export)
                if len(keys) == number:
                    told = dict(zip(keys.tolist(), values.tolist(), strict=True))
                    return [told[place].decode() for place in range(number)]
                if time.monotonic() > deadline:
                    break
                time.sleep(_POLL_SECONDS)
    missing = sorted(set(range(number)) - set(keys.tolist()))
    raise BridgeError(
        f"Tasks of the cluster have not come to their input_fn within {seconds:g} s: number {', '.join(map(str, missing))}.",
        expected="that estimator-bridge runs the script as every chief and worker of TF_CONFIG",
        fix="Read the logs of these tasks.",
    )
