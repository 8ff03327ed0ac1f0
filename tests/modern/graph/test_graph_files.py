"""graph.pbtxt and .meta files of the modern path: TensorFlow imports them, restores its checkpoints and trains on with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from google.protobuf import text_format

from tests.modern.jobs import PATHS, assert_close, regression_input, saved, train, v1
from tests.modern.step.test_transplant import MODELS

MORE = 5


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Partitioned variables, Adam; ten steps by each path."""
    made = {path: tmp_path_factory.mktemp(path) for path in PATHS}
    for path, folder in made.items():
        train(path, MODELS["partitioned"], folder, steps=10, config={"save_checkpoints_steps": 5})
    return made


def meta(folder: Path, step: int = 10) -> Any:
    return v1.MetaGraphDef.FromString((folder / f"model.ckpt-{step}.meta").read_bytes())


def test_an_imported_meta_graph_restores_a_checkpoint_and_trains_on(folders: dict[str, Path], tmp_path: Path) -> None:
    """Input pipeline, initialisers, train_op and Saver are all in the file, and work."""
    prefix = str(folders["modern"] / "model.ckpt-10")
    with tf.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph(prefix + ".meta")
        saver.restore(session, prefix)
        session.run(v1.get_collection("local_init_op"))
        session.run(
            [op for op in session.graph.get_operations() if op.type == "MakeIterator"]
        )  # a hook's task, in an Estimator
        assert session.run(v1.report_uninitialized_variables()).size == 0
        (step,) = v1.get_collection(v1.GraphKeys.GLOBAL_STEP)
        assert session.run(step) == 10
        for _ in range(MORE):
            session.run(v1.get_collection(v1.GraphKeys.TRAIN_OP))
        saver.save(session, str(tmp_path / "model.ckpt"), session.run(step))
    more = folders["legacy"].parent / "legacy_on"
    train("legacy", MODELS["partitioned"], more, steps=10)
    train("legacy", MODELS["partitioned"], more, regression_input, steps=MORE)  # its input starts anew, too
    assert_close(saved(tmp_path), saved(more))


def test_savers_and_collections_are_those_of_the_legacy_path(folders: dict[str, Path]) -> None:
    legacy, modern = (meta(folders[path]) for path in PATHS)
    assert modern.saver_def == legacy.saver_def
    kept = ("variables", "trainable_variables", "local_variables", "global_step", "train_op", "summaries", "losses", "savers")
    for key in (*kept, "init_op", "local_init_op", "ready_op", "ready_for_local_init_op", "summary_op", "cond_context"):
        assert (key in modern.collection_def) == (key in legacy.collection_def), key
    names = [
        {text.decode() for key in ("variables", "trainable_variables") for text in _variables(one.collection_def[key])}
        for one in (legacy, modern)
    ]
    assert names[1] == names[0] != set()


def _variables(collection: Any) -> list[bytes]:
    from tensorflow.core.framework.variable_pb2 import VariableDef

    return [VariableDef.FromString(value).variable_name.encode() for value in collection.bytes_list.value]


def test_nodes_have_the_names_that_they_have_on_the_legacy_path(folders: dict[str, Path]) -> None:
    nodes = [{node.name: node.op for node in meta(folders[path]).graph_def.node} for path in PATHS]
    missing = {name: op for name, op in nodes[0].items() if nodes[1].get(name) != op}
    assert not missing


def test_the_graph_is_written_once_and_can_be_left_out(folders: dict[str, Path], tmp_path: Path) -> None:
    text = (folders["modern"] / "graph.pbtxt").read_text()
    graph = text_format.Parse(text, v1.GraphDef())
    assert graph.node == meta(folders["modern"]).graph_def.node
    with tf.Graph().as_default() as imported:
        tf.graph_util.import_graph_def(graph, name="")
        assert imported.get_tensor_by_name("IteratorGetNext:0").shape.as_list() == [None, 4]
    files = []
    for path in PATHS:
        train(path, MODELS["partitioned"], tmp_path / path, steps=2, config={"checkpoint_save_graph_def": False})
        files.append(sorted(file.name for file in (tmp_path / path).iterdir() if not file.name.startswith("events")))
    assert files[1] == files[0]
    assert not any("graph" in name or "meta" in name for name in files[1])
