"""The new side of a comparison: patches tf_keras before the script runs, and looks at the end what was seen."""

from __future__ import annotations

from collections.abc import Callable

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.randomness import SEED, seed_globals
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.plan import RewritePlan


def prepare(trace: Trace, old: Trace, plan: RewritePlan) -> Callable[[], None]:
    """Intercepts what the new script does, for the life of the process.

    Args:
        trace: Trace of the new side.
        old: Trace of the old side.
        plan: Comparison.

    Returns:
        A function to call after the script's end, which raises BridgeError if nothing of it was seen.
    """
    import tensorflow as tf
    import tf_keras

    from estimator_bridge.parity.rewrite import dropout
    from estimator_bridge.parity.rewrite.intercept import checkpoints, exports, loops, models, tapes
    from estimator_bridge.parity.rewrite.session import Session

    seed_globals()
    tf.random.set_seed(SEED)
    tf.config.run_functions_eagerly(plan.runs_eagerly)
    session = Session(trace, old, plan)
    if plan.runs_eagerly:
        session.note(
            "The new script's steps are not seen in graphs, as where a tf.function loops over batches: its functions ran eagerly. "
            "What Python computes once, when a graph is made, they computed in each step; that it does no harm was not compared."
        )
    rows = dropout.read_rows(old)
    dropout.equalise(session.read_step, feeds=False, trains=lambda: session.in_step, others=session.old_sites, rows=rows)
    models.intercept(session, tf_keras)
    tapes.intercept(session, tf_keras)
    loops.intercept(session, tf_keras)
    exports.intercept(session, keeps=not (plan.is_free or plan.is_shaken or plan.looks))
    checkpoints.keep_apart(trace.folder)

    def check() -> None:
        session.open_loop()
        session.end_on_batch()
        session.write_validation()
        session.inputs.write(trace)
        session.end()
        if not session.index and any(old.events("step")):
            trace.write("perhaps in a graph")  # as of a tf.function that loops over a dataset
            raise BridgeError(
                "The new script trained nothing that could be seen.",
                expected="fit or train_on_batch of a tf_keras model, or a loop over a tf.data.Dataset with a tf.GradientTape or tf.gradients",
                received="no gradient of a step",
                fix="Write the training with one of these.",
            )

    return check
