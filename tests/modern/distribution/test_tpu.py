"""TPUEstimator, in the way of BERT's scripts: the modern path gives what TPUEstimator(use_tpu=False) gives, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import summary_ops_v2

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.distribution import tpu
from estimator_bridge.runtime.estimator_calls import interposed
from tests.modern.jobs import ONE_BY_ONE, PATHS, X, Y, assert_close, embedded, linear, make_engine, saved, v1
from tests.modern.test_event_files import read

seen: list[dict[str, Any]] = []


def input_fn(params: dict[str, Any]) -> tf.data.Dataset:
    words = np.arange(48 * 4).reshape(48, 4) % 7
    data = tf.data.Dataset.from_tensor_slices(({"x": X, "words": words}, Y))
    return data.repeat(params.get("epochs")).batch(params["batch_size"], drop_remainder=True)


def host_fn(step: Any, loss: Any) -> Any:
    """Writes event files of its own, at every second step."""
    every = summary_ops_v2.record_summaries_every_n_global_steps(2, global_step=step[0])
    with summary_ops_v2.create_file_writer(host_fn.folder).as_default(), every:  # type: ignore[attr-defined]
        summary_ops_v2.scalar("host_loss", loss[0], step=step[0])
        return v1.summary.all_v2_summary_ops()


class Decayed(tf.compat.v1.train.Optimizer):
    """An optimizer in the way of BERT's AdamWeightDecayOptimizer: its own variables, its own apply_gradients."""

    def __init__(self, rate: float) -> None:
        super().__init__(False, "Decayed")
        self._rate = rate

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        updates = []
        for gradient, variable in grads_and_vars:
            slot = v1.get_variable(
                variable.op.name + "/adam_m", variable.shape, trainable=False, initializer=v1.zeros_initializer()
            )
            moved = 0.9 * slot + 0.1 * tf.convert_to_tensor(gradient)
            updates += [slot.assign(moved), variable.assign(variable - self._rate * (moved + 0.01 * variable))]
        return tf.group(*updates, name=name)


def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
    seen.append({name: params.get(name) for name in ("batch_size", "use_tpu", "own")} | {"mode": mode})
    spec_class = v1.estimator.tpu.TPUEstimatorSpec
    predictions = {"y": linear(features["x"]) + embedded(features["words"])}
    if mode == "infer":
        outputs = {"serving_default": v1.estimator.export.PredictOutput(predictions)}
        return spec_class(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.reduce_mean(tf.square(predictions["y"] - labels))
    step = v1.train.get_or_create_global_step()

    def scaffold_fn() -> Any:
        return v1.train.Scaffold(saver=v1.train.Saver(max_to_keep=2, save_relative_paths=True))

    def metric_fn(labels: Any, y: Any) -> Any:
        return {"error": v1.metrics.mean_absolute_error(labels, y), "mean": v1.metrics.mean(y)}

    host_call = (host_fn, [tf.reshape(step, [1]), tf.reshape(loss, [1])]) if params["host_call"] else None
    if mode == "eval":
        return spec_class(mode, loss=loss, eval_metrics=(metric_fn, [labels, predictions["y"]]), host_call=host_call)
    if params["own"]:
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, v1.trainable_variables()), 1.0)
        optimizer = v1.tpu.CrossShardOptimizer(Decayed(0.1))
        update = optimizer.apply_gradients(zip(gradients, v1.trainable_variables(), strict=True), global_step=step)
        with tf.control_dependencies([update]):
            train_op = step.assign_add(1, read_value=False)
    else:
        train_op = v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(0.05)).minimize(loss, step)
    return spec_class(mode, loss=loss, train_op=train_op, host_call=host_call, scaffold_fn=scaffold_fn)


def made(folder: Path, own: bool = False, host_call: bool = False, use_tpu: bool = False, **config: Any) -> Any:
    run_config = v1.estimator.tpu.RunConfig(
        model_dir=str(folder),
        tf_random_seed=1,
        tpu_config=v1.estimator.tpu.TPUConfig(iterations_per_loop=3),
        session_config=ONE_BY_ONE if folder.name == "legacy" else None,
        **({"save_checkpoints_steps": 4, "save_summary_steps": 5, "log_step_count_steps": 9} | config),
    )
    return v1.estimator.tpu.TPUEstimator(
        model_fn,
        config=run_config,
        use_tpu=use_tpu,
        params={"own": own, "host_call": host_call},
        train_batch_size=8,
        eval_batch_size=6,
        predict_batch_size=5,
        export_to_tpu=False,
    )


def same_bits(modern: Any, legacy: Any) -> None:
    assert sorted(modern) == sorted(legacy)
    for name, value in legacy.items():
        np.testing.assert_array_equal(modern[name], value, err_msg=name)


def serving_input() -> Any:
    receivers = {"x": v1.placeholder(tf.float32, [None, 3], "x"), "words": v1.placeholder(tf.int64, [None, 4], "words")}
    return v1.estimator.export.ServingInputReceiver(receivers, receivers)


def served(exported: bytes) -> Any:
    call = tf.saved_model.load(exported.decode()).signatures["serving_default"]
    return call(x=tf.constant(X[:5]), words=tf.zeros([5, 4], tf.int64))["y"].numpy()


@pytest.mark.parametrize("own", [False, True])
def test_everything_is_the_same_to_the_last_bit(own: bool, tmp_path: Path) -> None:
    outcomes, arguments = [], []
    for path in PATHS:
        seen.clear()
        estimator = made(tmp_path / path, own)
        with interposed(make_engine(path)):
            estimator.train(input_fn, max_steps=12)
            metrics = estimator.evaluate(input_fn, steps=4)
            exported = estimator.export_saved_model(str(tmp_path / path / "export"), serving_input)
            predictions = list(estimator.predict(lambda params: input_fn(params | {"epochs": 1}).map(lambda x, y: x)))
        v1.summary.FileWriterCache.clear()
        arguments.append([*seen])
        folders = [[event[:2] for event in read(tmp_path / path / below)] for below in ("", "eval")]
        files = sorted(file.name for file in (tmp_path / path).glob("model.ckpt-*"))
        outcomes.append((saved(tmp_path / path), metrics, predictions, folders, files, served(exported)))
    legacy, modern = outcomes
    same_bits(modern[0], legacy[0])
    same_bits(modern[1], legacy[1])
    assert len(modern[2]) == len(legacy[2]) == 45
    for one, other in zip(modern[2], legacy[2], strict=True):
        same_bits(one, other)
    assert modern[3:5] == legacy[3:5]
    np.testing.assert_array_equal(modern[5], legacy[5])
    assert {tag for _, tag in modern[3][0]} >= {"examples/sec", "global_step/sec", "loss"}
    assert arguments[1] == arguments[0]
    assert [(one["mode"], one["batch_size"], one["use_tpu"]) for one in arguments[1]] == [
        ("train", 8, False),
        ("eval", 6, False),
        ("infer", None, False),
        ("infer", 5, False),
    ]


def test_host_calls_write_what_they_write_on_cpu(tmp_path: Path) -> None:
    written = []
    for path in PATHS:
        host_fn.folder = str(tmp_path / path / "host")  # type: ignore[attr-defined]
        estimator = made(tmp_path / path, host_call=True)
        with interposed(make_engine(path)):
            estimator.train(input_fn, steps=5)
            estimator.train(input_fn, steps=2)
            estimator.evaluate(input_fn, steps=2)
        written.append(read(tmp_path / path / "host"))
    assert [event[:2] for event in written[1]] == [event[:2] for event in written[0]]
    assert [step for step, tag, _ in written[1] if tag == "host_loss"] == [0, 2, 4, 6]
    assert written[1] == written[0]
    same_bits(saved(tmp_path / "modern"), saved(tmp_path / "legacy"))


def test_event_files_of_a_host_call_are_whole_after_a_training_that_fails(tmp_path: Path) -> None:
    """The files are looked at while the process lives on: what is not closed lies in a buffer."""

    class Failing(v1.train.SessionRunHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            if run_context.session.run("global_step:0") == 3:
                raise RuntimeError("of the hook")

    host_fn.folder = str(tmp_path / "host")  # type: ignore[attr-defined]
    with interposed(make_engine("modern")), pytest.raises(RuntimeError, match="of the hook"):
        made(tmp_path / "made", host_call=True).train(input_fn, hooks=[Failing()], steps=5)
    assert [step for step, tag, _ in read(tmp_path / "host") if tag == "host_loss"] == [0, 2]


def test_a_tpu_that_is_not_there_is_refused_before_training(tmp_path: Path) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda estimator: estimator.train(input_fn, max_steps=2),
        lambda estimator: estimator.evaluate(input_fn, steps=2),
        lambda estimator: next(estimator.predict(input_fn)),
    ]
    for call in calls:
        with interposed(make_engine("modern")), pytest.raises(NotSupportedError, match="use_tpu=False"):
            call(made(tmp_path, use_tpu=True))
    assert not list(tmp_path.glob("model.ckpt*"))


def test_where_a_tpu_is_its_cores_share_the_batch(run_python: Callable[..., str], tmp_path: Path) -> None:
    """Two CPUs stand for a TPU's cores, which no test machine has: each takes batches of half the size."""
    run_python(Path(__file__).with_name("two_cores.py"), tmp_path)
    assert_close(saved(tmp_path / "modern"), saved(tmp_path / "legacy"))


def test_a_batch_that_the_cores_cannot_share_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tpu, "_strategy", lambda master: type("Three", (), {"num_replicas_in_sync": 3}))
    with interposed(make_engine("modern")), pytest.raises(BridgeError, match="train_batch_size"):
        made(tmp_path, use_tpu=True).train(input_fn, max_steps=4)
