"""Faults planted in the modern side of one small training, each named by what it does: one recording, one process.

The legacy side is recorded once. A fault changes the model that the modern side trains, or the recording that it is given; the
judge sees the true recording.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge import legacy
from estimator_bridge.parity.judge import judge
from estimator_bridge.parity.recording.step_limit import StepLimit
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityResult, Thresholds
from estimator_bridge.runtime.estimator_calls import interposed

v1 = tf.compat.v1
pytestmark = pytest.mark.once
STEPS = 6


@dataclasses.dataclass(frozen=True)
class Model:
    """A model with one setting for each fault; the defaults are the legacy side's."""

    learning_rate: float = 0.1
    momentum: float = 0.9
    epsilon: float = 1e-8
    sign: float = 1.0
    label_shift: int = 0
    penalty: float = 0.0
    frozen: str = ""
    has_statistics: bool = True
    top_k: int = 1
    max_steps: int = STEPS

    def __call__(self, features: Any, labels: Any, mode: str) -> Any:
        """A hidden layer that Adam trains, behind batch norm, and logits that Momentum trains."""
        net = v1.layers.batch_normalization(features["x"], training=mode == "train", momentum=0.9, name="norm")
        hidden = v1.layers.dense(net, 8, tf.nn.tanh, kernel_initializer=v1.glorot_uniform_initializer(seed=1), name="hidden")
        logits = v1.layers.dense(hidden, 3, kernel_initializer=v1.glorot_uniform_initializer(seed=2), name="logits")
        loss = v1.losses.sparse_softmax_cross_entropy((labels + self.label_shift) % 3, logits)
        (kernel,) = (variable for variable in v1.trainable_variables() if variable.op.name == "logits/kernel")
        loss += self.penalty * tf.nn.l2_loss(kernel)
        metrics = {"accuracy": v1.metrics.mean(tf.nn.in_top_k(tf.cast(labels, tf.int32), logits, self.top_k))}
        return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=self._train_op(loss), eval_metric_ops=metrics)

    def _train_op(self, loss: Any) -> Any:
        parts = {
            "logits": v1.train.MomentumOptimizer(self.learning_rate, self.momentum),
            "norm": v1.train.AdamOptimizer(0.01, epsilon=self.epsilon),
            "hidden": v1.train.AdamOptimizer(0.01, epsilon=self.epsilon, name="Adam_hidden"),
        }
        updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS) if self.has_statistics else []
        for scope, optimizer in parts.items():
            pairs = optimizer.compute_gradients(loss, v1.trainable_variables(scope))
            scaled = [(gradient * (0.0 if v.op.name == self.frozen else self.sign), v) for gradient, v in pairs]
            updates.append(optimizer.apply_gradients(scaled))
        with tf.control_dependencies(updates):
            return v1.assign_add(v1.train.get_global_step(), 1).op


def batches() -> Any:
    random = np.random.RandomState(3)
    x = random.normal(1.0, 2.0, size=[STEPS * 16, 4]).astype(np.float32)
    return v1.data.Dataset.from_tensor_slices(({"x": x}, x[:, :3].argmax(axis=1))).batch(16)


def run_calls(engine: Any, model: Model, folder: Path) -> None:
    config = v1.estimator.RunConfig(str(folder), tf_random_seed=1, save_summary_steps=None)
    estimator = v1.estimator.Estimator(model, config=config)
    with interposed(engine):
        estimator.train(batches, max_steps=model.max_steps)
        estimator.evaluate(batches)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """The legacy side, recorded once; TensorFlow's functions are what they were when the module ends."""
    legacy.install()
    from tensorflow_estimator.python.estimator import estimator, util

    from estimator_bridge.parity.recording.legacy_side import RecordingEngine

    folder = tmp_path_factory.mktemp("recording")
    trace = Trace(folder / "legacy")
    trace.make()
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (util, "parse_input_fn_result"),
            (util, "parse_iterator_result"),
            (estimator.Estimator, "_train_with_estimator_spec"),
            (v1.train.CheckpointSaverHook, "begin"),
        ):
            patch.setattr(owner, name, getattr(owner, name))
        run_calls(RecordingEngine(trace, StepLimit(None), recording=True), Model(), folder / "model")
        yield trace


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Runs modern sides against one recording."""

    recorded: Trace
    folder: Path

    def run(
        self, model: Model | None = None, change: Callable[[Trace], None] | None = None, replaying: bool = True
    ) -> ParityResult:
        """Returns the judgement of a modern side that trains ``model`` from the recording that ``change`` was given."""
        from estimator_bridge.parity.recording.modern_side import ReplayingEngine

        given = self.recorded
        if change is not None:
            given = Trace(self.folder / "given")
            shutil.copytree(self.recorded.folder, given.folder)
            change(given)
        trace = Trace(self.folder / "modern")
        trace.make()
        run_calls(
            ReplayingEngine(trace, StepLimit(None), given, replaying=replaying, replicas=1),
            model or Model(),
            self.folder / "model",
        )
        return judge(self.recorded, trace, command=("train.py",), replaying=True, replicas=1, thresholds=Thresholds())


@pytest.fixture
def comparison(recorded: Trace, tmp_path: Path) -> Comparison:
    return Comparison(recorded, tmp_path)


def found(result: ParityResult) -> list[tuple[str, int | None]]:
    assert result.exit_code == 1
    return [(finding.level, finding.step) for finding in result.findings]


def cause(result: ParityResult) -> tuple[str, int | None, str]:
    """Returns the level, step and message of the first finding, the one that the report names as the cause."""
    assert result.exit_code == 1
    return result.findings[0].level, result.findings[0].step, result.findings[0].message


def assert_first_update(result: ParityResult, *words: str, but: Sequence[str] = (), loss_from: int | None) -> None:
    level, step, message = cause(result)
    assert (level, step) == ("first update", 1)
    assert all(word in message for word in words), message
    assert not any(word in message for word in but), message
    assert next((step for level, step in found(result) if level == "loss"), None) == loss_from
    assert not {"batch", "initial values"} & {level for level, _ in found(result)}


def test_without_a_fault_both_sides_are_equal(comparison: Comparison) -> None:
    result = comparison.run(change=lambda given: None)

    assert (result.verdict, result.findings) == ("equal", ())
    assert [point.step for point in result.losses] == list(range(1, STEPS + 1))
    assert result.losses[0].legacy > 1.2 * result.losses[-1].legacy, "it learns, so equal losses mean something"
    assert {metric.metric for metric in result.metrics} == {"accuracy", "loss"}


def test_a_learning_rate(comparison: Comparison) -> None:
    result = comparison.run(Model(learning_rate=0.11))
    assert_first_update(result, "logits/kernel x1.1", "logits/bias x1.1", but=["hidden"], loss_from=2)


def test_a_variable_that_is_frozen(comparison: Comparison) -> None:
    result = comparison.run(Model(frozen="hidden/bias"))
    assert_first_update(result, "does not update hidden/bias, ", but=["kernel", "logits"], loss_from=2)


def test_the_sign_of_the_gradient(comparison: Comparison) -> None:
    result = comparison.run(Model(sign=-1.0))
    assert_first_update(result, "hidden/kernel x-1", "hidden/bias x-1", loss_from=2)


def test_epsilon(comparison: Comparison) -> None:
    result = comparison.run(Model(epsilon=1e-2))
    assert_first_update(result, "hidden/kernel x0.", "hidden/bias x0.", but=["logits", "Adam"], loss_from=2)


def test_a_regularizer(comparison: Comparison) -> None:
    result = comparison.run(Model(penalty=0.1))
    assert_first_update(result, "first update of 2 of ", "logits/kernel", "logits/kernel/Momentum", but=["hidden"], loss_from=1)


def test_labels_that_are_shifted(comparison: Comparison) -> None:
    result = comparison.run(Model(label_shift=1))
    assert_first_update(result, "hidden/kernel", loss_from=1)


def test_statistics_of_batch_norm_that_are_not_updated(comparison: Comparison) -> None:
    result = comparison.run(Model(has_statistics=False))
    assert_first_update(result, "does not update norm/moving_mean, norm/moving_variance.", loss_from=None)
    assert ("metric", STEPS) in found(result), "evaluations read what was not updated"


def test_momentum(comparison: Comparison) -> None:
    result = comparison.run(Model(momentum=1e-9))
    assert found(result)[0] == ("loss", 3), "the second step is the first that depends on what momentum kept"
    assert {"batch", "first update", "initial values"}.isdisjoint(level for level, _ in found(result))


def test_the_definition_of_a_metric(comparison: Comparison) -> None:
    result = comparison.run(Model(top_k=2))
    assert found(result) == [("metric", STEPS)]
    assert cause(result)[2].startswith("accuracy of evaluation 'eval'")


def test_a_step_that_is_skipped(comparison: Comparison) -> None:
    result = comparison.run(Model(max_steps=STEPS - 1))
    assert ("calls", STEPS) in found(result)
    assert any(f"legacy trained {STEPS} steps, modern {STEPS - 1}" in finding.message for finding in result.findings)
    assert "loss" not in {level for level, _ in found(result)}


def test_a_step_too_many(comparison: Comparison) -> None:
    def repeat_the_last(given: Trace) -> None:
        path = given.batches("train-0")
        records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in [*records, records[-1]]:
                writer.write(record)

    result = comparison.run(Model(max_steps=STEPS + 1), change=repeat_the_last)

    assert ("calls", STEPS + 1) in found(result)
    assert any(f"legacy trained {STEPS} steps, modern {STEPS + 1}" in finding.message for finding in result.findings)
    assert {"loss", "batch"}.isdisjoint(level for level, _ in found(result))


def test_the_order_of_the_batches(comparison: Comparison) -> None:
    def swap(given: Trace) -> None:
        path = given.batches("train-0")
        records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
        records[2], records[3] = records[3], records[2]
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in records:
                writer.write(record)

    level, step, message = cause(comparison.run(change=swap))

    assert (level, step) == ("batch", 3)
    assert "legacy trained on at step 4" in message


def copy_moved(source: str, target: str) -> None:
    """Copies a checkpoint whose bias of the logits has another value."""
    reader = tf.train.load_checkpoint(source)
    values = {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}
    values["logits/bias"] += np.float32(0.25)
    tf.raw_ops.SaveV2(
        prefix=target, tensor_names=list(values), shape_and_slices=[""] * len(values), tensors=list(values.values())
    )


def test_an_initial_value(comparison: Comparison) -> None:
    def move(given: Trace) -> None:
        copy_moved(given.values("train-0", "initial"), given.values("train-0", "initial"))

    level, step, message = cause(comparison.run(change=move))

    assert (level, step) == ("initial values", 0)
    assert message == "The initial values differ: logits/bias (0.25)."


def test_a_start_from_other_values_than_the_recorded_ones(comparison: Comparison) -> None:
    """The modern side keeps the values that it starts from, not those that it was given."""
    own = comparison.folder / "model"
    own.mkdir()
    copy_moved(comparison.recorded.values("train-0", "initial"), str(own / "model.ckpt-0"))
    v1.train.update_checkpoint_state(str(own), str(own / "model.ckpt-0"))

    level, step, message = cause(comparison.run())

    assert (level, step) == ("initial values", 0)
    assert message == "The initial values differ: logits/bias (0.25)."


def test_a_free_run_starts_from_the_values_before_the_hooks(comparison: Comparison) -> None:
    def keep_another_start(given: Trace) -> None:
        copy_moved(given.values("train-0", "initial"), given.values("train-0", "start"))

    level, step, message = cause(comparison.run(change=keep_another_start, replaying=False))

    assert (level, step) == ("initial values", 0)
    assert message == "The initial values differ: logits/bias (0.25)."
