"""Event files of both paths have the same kinds of events, tags, steps and values, in training and in evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.modern.jobs import PATHS, engine, estimator, linear, regression_input, spec, train, v1

Event = tuple[int, str, Any]


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Writes every kind of summary, and two tags in one summary."""
    predictions = linear(features["x"])
    loss = tf.reduce_mean(tf.square(predictions - labels))
    v1.summary.scalar("twice", 2.0 * loss)
    v1.summary.histogram("inputs", features["x"])
    v1.summary.image("picture", tf.reshape(tf.sigmoid(features["x"][:4]), [1, 4, 3, 1]))
    v1.summary.text("said", tf.as_string(features["words"][0]))
    with tf.name_scope("scope"):
        v1.summary.scalar("inner", loss)
    train_op = v1.train.GradientDescentOptimizer(0.05).minimize(loss, v1.train.get_global_step())
    return spec(mode, loss, train_op, eval_metric_ops={"mean": v1.metrics.mean(predictions)})


def read(folder: Path) -> list[Event]:
    """Returns (step, kind or tag, value) of all events, without the value of speeds, graphs and paths."""
    events: list[Event] = []
    for file in sorted(folder.glob("events.out.tfevents.*")):
        for record in v1.train.summary_iterator(str(file)):
            kind = record.WhichOneof("what")
            if kind == "session_log":
                events.append((record.step, f"log {record.session_log.status}", Path(record.session_log.checkpoint_path).name))
            elif kind != "summary":
                events.append((record.step, kind, None))
            events += [(record.step, value.tag, _value(value)) for value in record.summary.value]
    return sorted(events, key=lambda event: (event[0], event[1]))


def _value(value: Any) -> Any:
    if value.tag.endswith("/sec") or value.tag == "checkpoint_path":
        return None
    if value.HasField("simple_value"):
        return pytest.approx(value.simple_value, rel=1e-5)
    if value.HasField("histo"):
        return (value.histo.num, tuple(value.histo.bucket), pytest.approx(value.histo.sum, rel=1e-5, abs=1e-5))
    return value.image.encoded_image_string or value.tensor.SerializeToString()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of each path after two trainings and an evaluation."""
    config = {"save_summary_steps": 3, "log_step_count_steps": 4, "save_checkpoints_steps": 7}
    made = {path: tmp_path_factory.mktemp(path) for path in PATHS}
    for path, folder in made.items():
        for steps in (10, 5):
            train(path, model_fn, folder, steps=steps, config=config)
        engine(path).evaluate(estimator(model_fn, folder, **config), regression_input, steps=4, name="held_out")
        v1.summary.FileWriterCache.clear()
    return made


@pytest.mark.parametrize("below", ["", "eval_held_out"])
def test_events_are_the_same(below: str, folders: dict[str, Path]) -> None:
    legacy, modern = (read(folders[path] / below) for path in PATHS)
    assert [event[:2] for event in modern] == [event[:2] for event in legacy]
    assert modern == legacy


def test_the_requested_events_are_written(folders: dict[str, Path]) -> None:
    events = read(folders["modern"])
    steps = {tag: [step for step, found, _ in events if found == tag] for tag in {event[1] for event in events}}
    assert steps["loss"] == steps["scope/inner"] == steps["picture/image/0"] == steps["inputs"] == [1, 4, 7, 10, 11, 14]
    assert steps["global_step/sec"] == [5, 9, 15]
    assert steps["log 3"] == [0, 7, 10, 10, 15], "checkpoints"
    assert steps["log 1"] == [1, 11], "starts, after which TensorBoard drops older events of the same steps"


def last_graph(folder: Path) -> dict[str, Any]:
    """Returns the nodes that TensorBoard shows."""
    (file,) = folder.glob("events.out.tfevents.*")
    graphs = [v1.GraphDef.FromString(record.graph_def) for record in v1.train.summary_iterator(str(file)) if record.graph_def]
    return {node.name: node for node in graphs[-1].node}


def test_tensorboard_finds_the_whole_graph(folders: dict[str, Path]) -> None:
    nodes = last_graph(folders["modern"])
    of_evaluation = [set(last_graph(folders[path] / "eval_held_out")) for path in PATHS]
    assert set() != {name for name in of_evaluation[0] if name.endswith("/update_op")} <= of_evaluation[1]
    assert len(of_evaluation[1]) > len(nodes) / 2
    assert nodes["estimator_bridge/batch"].input[0] in {f"IteratorGetNext:{index}" for index in range(3)} | {"IteratorGetNext"}
    assert {"dense/kernel", "scope/inner", "save/restore_all"} <= set(nodes)
    assert np.prod([dim.size for dim in nodes["dense/kernel"].attr["shape"].shape.dim]) == 3
