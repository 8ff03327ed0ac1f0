"""Silent faults of a training, each planted in a real cluster: with the audit it ends and gives the reason."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from estimator_bridge.launcher.audit.audit import AuditRequest
from estimator_bridge.launcher.launch import LaunchResult, launch, local_layouts
from estimator_bridge.launcher.outcome import Timeouts
from estimator_bridge.launcher.processes.task import State
from tests.running import write

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("warm_python", "in_tasks")]

JOB = """
    import contextvars, json, os, sys, time
    import numpy as np
    import tensorflow as tf

    model_dir, fault, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    mirrored = fault in ("equal batches", "own values", "moving averages")
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy() if mirrored else None
    config = tf.estimator.RunConfig(model_dir, save_checkpoints_secs=600, tf_random_seed=1, train_distribute=strategy)
    worker = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker"

    def input_fn(input_context=None):
        x = np.random.RandomState(0).rand(240, 4).astype(np.float32)
        if fault != "equal batches":
            x = x[int(worker)::2]
        return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).shuffle(16).repeat().batch(4)

    class Optimizer(tf.train.GradientDescentOptimizer):
        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            if worker and fault == "nothing applied":
                return tf.group(*[gradient for gradient, _ in grads_and_vars], tf.assign_add(global_step, 1))
            counted = None if worker and fault == "not counted" else global_step
            return super().apply_gradients(grads_and_vars, counted, name)

    def unmended(optimizer):
        # SyncReplicasOptimizer as TensorFlow has it
        base = tf.train.SyncReplicasOptimizer
        tokens = base.get_init_tokens_op.__wrapped__
        return type("Unmended", (base,), {"get_init_tokens_op": tokens})(optimizer, 2, total_num_replicas=2)

    def model_fn(features, labels, mode):
        while worker and fault == "late" and not os.path.exists(os.path.join(model_dir, "graph.pbtxt")):
            time.sleep(0.1)  # the chief writes it as it begins
        time.sleep(2 if worker and fault == "late" else 0)
        x = tf.layers.batch_normalization(features["x"], training=True)
        loss = tf.losses.mean_squared_error(labels, tf.layers.dense(x, 1))
        planted = fault in ("nothing applied", "not counted")
        optimizer, hooks = (Optimizer if planted else tf.train.GradientDescentOptimizer)(0.01), []
        if fault == "late":
            optimizer = unmended(optimizer)
            hooks = [optimizer.make_session_run_hook(config.is_chief)]
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        if fault == "own values":
            first = tf.VariableAggregation.ONLY_FIRST_REPLICA
            seen = tf.get_variable("seen", [], tf.int32, tf.zeros_initializer(), trainable=False, aggregation=first)
            updates.append(seen.assign(tf.cast(1000 * tf.reduce_sum(features["x"]), tf.int32)))
        with tf.control_dependencies(updates):
            train_op = contextvars.Context().run(optimizer.minimize, loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, None, loss, train_op, training_hooks=hooks)

    estimator = tf.estimator.Estimator(model_fn, config=config)
    train = tf.estimator.TrainSpec(input_fn, max_steps=steps)
    tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=1))
"""
SERVERS = {"chief": 1, "worker": 1, "ps": 1}
MIRRORED = {"chief": 1, "worker": 1}
LONG = 20_000  # steps, of which the audit needs a hundred


def run(
    folder: Path, counts: dict[str, int], fault: str, steps: int, audit: AuditRequest | None, path: str = "legacy"
) -> tuple[LaunchResult, str]:
    script = write(folder / "train.py", JOB)
    arguments = [
        "-m",
        "estimator_bridge",
        "run",
        "--path",
        path,
        str(script),
        str(folder / f"model-{steps}"),
        fault,
        str(steps),
    ]
    stream = io.StringIO()
    limits = Timeouts(restarts=0)
    launched = launch(
        local_layouts(counts), arguments, folder / "logs", limits, stream, "estimator_bridge.script.preloaded", audit
    )
    return launched, stream.getvalue()


FAULTS = {
    "equal batches": (MIRRORED, "train on the same data, so one of them is useless."),
    "late": (SERVERS, "chief 0 makes the steps of others: synchronous training is not synchronous."),
    "not counted": (SERVERS, "steps of the workers are lost: the global step does not count them."),
    "nothing applied": (SERVERS, "Updates of worker 0 are lost: its steps leave the variables unchanged."),
    "own values": (MIRRORED, "have diverged at global step 1."),
}


@pytest.mark.once
@pytest.mark.parametrize("fault", FAULTS)
def test_without_the_audit_the_fault_goes_unnoticed(tmp_path: Path, fault: str) -> None:
    """Runs on one TensorFlow only: it shows that the faults are silent, and does not use the audit."""
    steps = 400 if fault == "late" else 50  # a chief that ends before the others come waits for them
    unnoticed, _ = run(tmp_path, FAULTS[fault][0], fault, steps, None)

    assert unnoticed.outcome.problem is None
    assert unnoticed.outcome.code == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_silent_fault_is_found(tmp_path: Path, fault: str) -> None:
    counts, said = FAULTS[fault]

    audited, output = run(tmp_path, counts, fault, LONG, AuditRequest(every=20))

    assert audited.outcome.code == 1, output
    assert audited.tasks[-1].state is State.STOPPED, "it was still training"
    assert str(audited.outcome.problem).splitlines()[0].endswith(said)


@pytest.mark.once
@pytest.mark.parametrize(("fault", "said"), [("equal batches", "one of them is useless."), ("own values", "global step 1.")])
def test_faults_on_the_modern_path(tmp_path: Path, fault: str, said: str) -> None:
    """Runs on one TensorFlow only: a sound training checks the records on each, and the rules need no TensorFlow."""
    audited, output = run(tmp_path, MIRRORED, fault, LONG, AuditRequest(), "modern")

    assert audited.outcome.code == 1, output
    assert str(audited.outcome.problem).splitlines()[0].endswith(said)


@pytest.mark.parametrize(
    ("fault", "counts", "path"),
    [("moving averages", MIRRORED, "legacy"), ("", SERVERS, "legacy"), ("moving averages", MIRRORED, "modern")],
)
def test_a_sound_training(tmp_path: Path, fault: str, counts: dict[str, int], path: str) -> None:
    """Moving averages of batch normalization differ between replicas until they are saved."""
    ended, output = run(tmp_path, counts, fault, 100, AuditRequest(every=10), path)

    assert ended.outcome.code == 0, output
    assert re.search(r"audit: no fault found; audited steps: \d+ of worker 0, \d+ of chief 0", output)
