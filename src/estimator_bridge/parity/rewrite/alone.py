"""A run of the new script by itself up to its second training step: what a comparison replaces may hide that it cannot start."""

from __future__ import annotations

import _thread
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


def prepare(trace: Trace) -> Callable[[], None]:
    """Seeds the script, and ends it after its first steps; its own batches, variables and calls stay as they are.

    A script that trains with no optimizer of tf_keras runs to its end.

    Args:
        trace: Trace of the run, in whose folder checkpoints of the script stay.

    Returns:
        A function to call after the script's end, which has nothing to check.
    """
    import tensorflow as tf
    import tf_keras

    from estimator_bridge.parity.rewrite.intercept.loops import remember
    from estimator_bridge.parity.rewrite.new_side import keep_checkpoints_apart

    seed_globals()
    tf.random.set_seed(SEED)
    keep_checkpoints_apart(trace.folder)
    made: list[Any] = []
    for kind in (tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer):
        wrap(kind, __init__=remember(made))
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))

    def wait() -> None:
        while not any(_steps(optimizer()) >= STEPS for optimizer in list(made)):
            time.sleep(_POLL_SECONDS)
        _thread.interrupt_main(signal.SIGUSR1)

    threading.Thread(target=wait, daemon=True).start()
    return lambda: None


def _steps(optimizer: Any) -> int:
    """Returns the number of an optimizer's updates, without making its counter."""
    counter = getattr(optimizer, "_iterations", None)
    return 0 if counter is None else int(counter.numpy())
