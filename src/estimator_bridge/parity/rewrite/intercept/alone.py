"""A run of the new script by itself up to its second training step: a comparison replaces things, and may hide that it cannot start."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from estimator_bridge.parity.recording.randomness import SEED, seed_globals
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.runtime.patching import wrap

STEPS = 2
"""Training steps after which the run ends: the second one executes what the first one has built."""
_POLL_SECONDS = 0.1
_END_SECONDS = 30.0  # for the script to end, which may have threads that wait for it
_SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGUSR1)  # which scripts seldom use


def prepare(trace: Trace) -> Callable[[], bool]:
    """Seeds the script, and ends it after its first steps; its own batches, variables and calls stay as they are.

    A script that trains with no optimizer of tf_keras runs to its end.

    Args:
        trace: Trace of the run, in whose folder checkpoints of the script stay.

    Returns:
        A function that returns True once the first steps are done.
    """
    import tensorflow as tf
    import tf_keras

    from estimator_bridge.parity.rewrite.intercept.checkpoints import keep_apart
    from estimator_bridge.parity.rewrite.intercept.loops import remember

    seed_globals()
    tf.random.set_seed(SEED)
    keep_apart(trace.folder)
    made: list[Any] = []
    first: dict[int, int] = {}  # updates of each optimizer when it was seen first: a script may load its counter
    for kind in (tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer):
        wrap(kind, __init__=remember(made))
    signal.signal(_SIGNAL, lambda *_: sys.exit(0))

    def is_done() -> bool:
        counted = {place: count for place, one in enumerate([*made]) if (count := _updates(one())) is not None}
        return any(count - first.setdefault(place, count) >= STEPS for place, count in counted.items())

    def wait() -> None:
        while not is_done():
            time.sleep(_POLL_SECONDS)
        _thread.interrupt_main(_SIGNAL)
        time.sleep(_END_SECONDS)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
    return is_done


def _updates(optimizer: Any) -> int | None:
    """Returns the number of an optimizer's updates, without making its counter; None as long as it has none."""
    counter = getattr(optimizer, "_iterations", None)
    return None if counter is None else int(counter.numpy())
