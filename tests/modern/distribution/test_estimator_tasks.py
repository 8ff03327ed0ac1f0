"""RunConfigs, strategies and input shares of the tasks of a cluster, without starting one."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import tensorflow as tf

from estimator_bridge.cluster.rendezvous import VARIABLE, Flag, Rendezvous
from estimator_bridge.errors import BridgeError, NotSupportedError
from tests.modern.jobs import engine, estimator, minimizing, regression_input, v1  # settles on Keras 2 first

from estimator_bridge.modern.distribution import input_sharding, strategies  # isort: skip
from estimator_bridge.modern.callbacks.counts import EqualCounts  # isort: skip
from estimator_bridge.modern.graph import model_graph  # isort: skip
from estimator_bridge.modern.graph.input_pipeline import InputPipeline, recorded_iterators  # isort: skip
from estimator_bridge.modern.graph.shapes import tf2_shapes  # isort: skip
from estimator_bridge.modern.step.transplant import Transplant  # isort: skip
from estimator_bridge.modern.training.step_loop import StepLoop  # isort: skip
from estimator_bridge.modern.distribution.estimator_tasks import tasks  # isort: skip
from estimator_bridge.modern.distribution.worker_checks import check_equal, lost_workers  # isort: skip

CHIEF = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
EQUAL = {"worker": ["a:1", "b:1"]}
BESIDE = {**EQUAL, "ps": ["c:1"]}


def _config(monkeypatch: pytest.MonkeyPatch, cluster: dict[str, list[str]], job: str, index: int, strategy: bool) -> Any:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": job, "index": index}}))
    with tf.Graph().as_default(), tasks():
        asked = tf.distribute.experimental.MultiWorkerMirroredStrategy() if strategy else None
        return v1.estimator.RunConfig("nowhere", train_distribute=asked)


@pytest.mark.parametrize(
    ("cluster", "job", "index", "expected"),
    [
        (CHIEF, "chief", 0, (True, 3, 3)),
        (CHIEF, "worker", 1, (False, 3, 3)),
        (EQUAL, "worker", 0, (True, 2, 2)),  # the first worker is the chief
        (EQUAL, "worker", 1, (False, 2, 2)),
        (BESIDE, "ps", 0, (False, 2, 1)),  # its number among the servers does not make it the first worker
        (BESIDE, "worker", 0, (True, 2, 2)),
        (CHIEF, "evaluator", 0, (False, 0, 1)),  # in no cluster; TensorFlow raises where a strategy is made for it
    ],
)
def test_a_script_with_a_strategy_finds_its_place(
    cluster: dict[str, list[str]], job: str, index: int, expected: tuple[bool, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, where TF1's coordinator told it later; and ``num_replicas_in_sync``, by which scripts scale, is right."""
    config = _config(monkeypatch, cluster, job, index, strategy=True)
    assert (config.task_type, config.task_id) == (job, index)
    assert (config.is_chief, config.num_worker_replicas, config.train_distribute.num_replicas_in_sync) == expected
    assert strategies.decision_for(config).strategy == "MultiWorkerMirroredStrategy"


def test_a_server_without_variables_ends_with_the_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The strategy keeps the variables on the workers; the launcher says when they have trained."""
    from tensorflow_estimator.python.estimator import training

    config = _config(monkeypatch, {**CHIEF, "ps": ["d:1"]}, "ps", 0, strategy=True)
    task = types.SimpleNamespace(_estimator=types.SimpleNamespace(config=config))
    (meeting := Rendezvous(tmp_path)).set_flag(Flag.READY)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(time, "sleep", slept := mock.Mock(side_effect=lambda seconds: meeting.set_flag(Flag.TRAINED)))
    said: list[str] = []
    monkeypatch.setattr(v1.logging, "warn", lambda text, *values: said.append(text % values))
    with tasks():
        training._TrainingExecutor.run_ps(task)
    slept.assert_called_once()
    (line,) = said
    assert line.startswith(
        "This parameter server holds no variables, so its task ends: parameter servers are left out of the cluster"
    )


def test_a_cluster_without_a_worker_to_lead_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BridgeError, match="neither a chief nor a worker"):
        _config(monkeypatch, {"ps": ["a:1"]}, "ps", 0, strategy=True)


def test_workers_without_servers_train_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(monkeypatch, CHIEF, "chief", 0, strategy=False)
    assert strategies.decision_for(config).strategy == "MultiWorkerMirroredStrategy"


@dataclasses.dataclass(frozen=True)
class Second:
    """The second of three workers, with a replica each.

    Attributes:
        apart: whether the others were given other datasets.
    """

    apart: bool = False
    workers = 3
    worker = 1
    replicas = 3

    def gather(self, row: Any) -> Any:
        """Returns the rows of all workers, whose digests may differ."""
        others = [tf.one_hot(0, len(row), self.apart * other, dtype=tf.int64) for other in (1, 0, 2)]
        return row + tf.stack(others)


def _share(input_fn: Callable[..., Any], apart: bool = False) -> tuple[list[list[int]], str]:
    second: Any = Second(apart)
    with tf.Graph().as_default(), recorded_iterators() as made:
        batch = v1.data.make_one_shot_iterator(
            input_sharding.with_context(input_fn, second.workers, second.worker, second.replicas)()
        ).get_next()
    pipeline = InputPipeline(batch, {iterator._iterator_resource.op.name: dataset for iterator, dataset in made})
    dataset, said = input_sharding.own_share(pipeline.dataset(), pipeline, input_fn, second)
    return [leaf.numpy().tolist() for (leaf,) in dataset], said


def _batches() -> Any:
    return tf.data.Dataset.range(16).batch(2)


def _own(input_context: Any) -> Any:
    return tf.data.Dataset.range(16).skip(input_context.input_pipeline_id).take(input_context.num_input_pipelines).batch(2)


def _off() -> Any:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return tf.data.Dataset.range(4).batch(2).with_options(options)


def _files() -> Any:
    """Shards in a function, by which a name becomes a file's records."""
    return tf.data.Dataset.range(2).flat_map(lambda file: tf.data.Dataset.range(8 * file, 8 * file + 8).shard(3, 1)).batch(2)


def _generated() -> Any:
    return tf.data.Dataset.from_generator(lambda: iter([1]), tf.int64).batch(2)


def _by_python() -> Any:
    return _batches().map(lambda number: v1.py_func(lambda value: value, [number], tf.int64))


@pytest.mark.parametrize(
    ("input_fn", "apart", "expected", "word"),
    [
        (_batches, False, [[2, 3], [8, 9], [14, 15]], "keeps one of every 3 batches; this worker starts at batch 1."),
        (
            lambda: tf.data.Dataset.range(8).shard(1, 0).batch(2),
            False,
            [[2, 3]],
            "keeps one of every 3 batches",
        ),  # the same shard for all
        (_own, True, [[1, 2], [3]], "for input_context 1 of 3"),
        (lambda: tf.data.Dataset.range(8).shard(3, 1).batch(2), True, [[1, 4], [7]], "shards its dataset by itself"),
        (_files, True, [[1, 4], [7, 9], [12, 15]], "shards its dataset by itself"),
        (_off, False, [[0, 1], [2, 3]], "shards its dataset by itself"),
    ],
)
def test_a_worker_reads_its_share(input_fn: Callable[..., Any], apart: bool, expected: list[list[int]], word: str) -> None:
    batches, said = _share(input_fn, apart)
    assert batches == expected
    assert word in said


@pytest.mark.parametrize(
    ("input_fn", "apart", "received"),
    [
        (_batches, True, "3 different datasets on 3 workers"),  # as of files[index::number]
        (_generated, False, "a dataset of a Python generator"),
        (_by_python, False, "a dataset with Python functions"),
    ],
)
def test_a_share_that_nobody_can_tell_is_refused(input_fn: Callable[..., Any], apart: bool, received: str) -> None:
    with pytest.raises(NotSupportedError, match=f"shards of one dataset(.|\n)*{received}"):
        _share(input_fn, apart)


def test_an_input_that_cannot_be_shared_is_refused() -> None:
    with tf.Graph().as_default():
        pipeline = InputPipeline(tf.constant([1, 2]), {})
    with pytest.raises(NotSupportedError, match="all would train on the same batches"):
        input_sharding.own_share(_batches(), pipeline, lambda: None, Second())  # type: ignore[arg-type]


def test_devices_in_use_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can connect once TensorFlow's eager context is there, as in this process."""
    config = _config(monkeypatch, {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}, "chief", 0, strategy=True)
    tf.constant(1)
    with pytest.raises(BridgeError, match="uses TensorFlow's devices already"):
        strategies.distribution_for(config)


class TwoWorkers(strategies.Distribution):
    """A strategy of one device that counts as two workers in step, each with the same rows to share."""

    workers = replicas = 2

    def gather(self, row: Any) -> Any:
        """Returns the row for each worker."""
        return tf.stack([row, row])


def test_a_share_without_a_batch_is_named(tmp_path: Path) -> None:
    """Its worker ends with an error: otherwise the others would wait for its gradients."""
    made = estimator(minimizing(lambda: v1.train.GradientDescentOptimizer(0.1)), tmp_path)
    with tf2_shapes(), model_graph.control_flow_v2():
        transplant = Transplant(model_graph.build(made, regression_input, model_graph.TRAIN, None))
        empty = iter(transplant.model.pipeline.dataset().take(0))
        loop = StepLoop(transplant, empty, TwoWorkers(tf.distribute.get_strategy()), endless=True, audited=False)
    with pytest.raises(BridgeError, match="its share of the input has no batch"):
        loop.run(3)


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (tf.errors.InternalError(None, None, "Blas SGEMM launch failed"), False),
        (
            tf.errors.FailedPreconditionError(None, None, "/job:worker/replica:0/task:1/device:CPU:0: the table is not filled"),
            False,
        ),
        (tf.errors.InternalError(None, None, "Collective ops is aborted by: a peer"), True),
        (tf.errors.FailedPreconditionError(None, None, "/job:worker/replica:0/task:0 has started anew"), True),
        (tf.errors.UnavailableError(None, None, "Socket closed"), True),
    ],
)
def test_what_fails_in_this_worker_is_not_said_of_another(error: Exception, lost: bool) -> None:
    strategy = types.SimpleNamespace(extended=types.SimpleNamespace(_worker_device="/job:worker/task:1"))
    second: Any = types.SimpleNamespace(workers=3, strategy=strategy)
    with pytest.raises(BridgeError if lost else type(error)), lost_workers(second):
        raise error


def test_a_worker_that_is_not_the_chief_evaluates_and_exports_for_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And a process that exports nothing makes no folder, which it would leave behind where it is killed."""
    (aside := tmp_path / "aside").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    made = estimator(minimizing(lambda: v1.train.GradientDescentOptimizer(0.1)), tmp_path / "model")
    exporter = v1.estimator.Estimator.__mro__[-2]
    monkeypatch.setattr(exporter, "export_saved_model", lambda estimator, export_dir_base, **rest: export_dir_base.encode())
    worker = engine("modern")
    worker.train(made, regression_input, steps=1)
    monkeypatch.setattr(made._config, "_task_type", "worker")
    monkeypatch.setattr(made._config, "_is_chief", False)
    assert worker.evaluate(made, regression_input, steps=1)["global_step"] == 1
    assert not (tmp_path / "model" / "eval").exists()
    assert not list(aside.iterdir())
    exported = worker.export_saved_model(made, str(tmp_path / "exports"), lambda: None)
    assert [str(path) for path in aside.iterdir()] == [exported.decode()]


@pytest.mark.parametrize(("apart", "here"), [(True, [1.0, 1.0]), (False, [1.0, 2.0])])
def test_workers_do_not_start_from_different_states(apart: bool, here: list[float]) -> None:
    """Whether it is another worker or another replica of this one that has another value."""
    kernel = types.SimpleNamespace(values=[tf.Variable(value) for value in here])
    variables = {"kernel": kernel, "bias": tf.Variable(0.0)}
    with pytest.raises(BridgeError, match=r"1 of 2 variables differ(.|\n)*received: kernel\n"):
        check_equal(variables, Second(apart))  # type: ignore[arg-type]
    kernel.values[1:] = []
    check_equal(variables, Second())  # type: ignore[arg-type]


def test_counts_that_differ_between_workers_are_refused_before_they_are_saved() -> None:
    count = {"aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
    variables = {"seen": tf.Variable(3, **count), "rows": tf.Variable(4, **count), "weights": tf.Variable(1.0)}
    transplant: Any = types.SimpleNamespace(
        variables=variables, global_step=None, model=mock.Mock(**{"variables.return_value": []})
    )
    progress: Any = types.SimpleNamespace(step=5)
    for apart in (False, True):
        counts = EqualCounts(Second(apart))  # type: ignore[arg-type]
        counts.begin(transplant, 0)
        with pytest.raises(NotSupportedError, match="different values to 'seen', and") if apart else contextlib.nullcontext():
            assert not counts.after(progress)
