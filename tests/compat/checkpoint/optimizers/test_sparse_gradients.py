"""Variables with sparse gradients are found in the graph beside a checkpoint; without one, warnings only say "possibly"."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.compat.checkpoint.reading.row_access import read_row_access

v1 = tf.compat.v1
GOLDEN = Path(__file__).parents[3] / "golden"
PAIRS = {"embedding/table": "table", "dense/kernel": "kernel"}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Momentum's slots of a partitioned table that is looked up, and of a kernel; no graph beside them."""
    for path in (GOLDEN / "checkpoints-native").glob("partitioned.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "partitioned.ckpt-2"


def keras_side(folder: Path, embedding: bool = False) -> str:
    """A checkpoint of the newer SGD, whose velocities decay where TF1's stay."""
    optimizer = tf_keras.optimizers.SGD(0.01, momentum=0.9)
    layer = tf_keras.layers.Embedding(13, 4)
    layer.build(())
    table = layer.embeddings if embedding else tf.Variable(tf.zeros([13, 4]), name="table")
    kernel = tf.Variable(tf.zeros([4, 1]), name="kernel")
    optimizer.build([table, kernel])
    model = {"layer": layer, "kernel": kernel} if embedding else {"table": table, "kernel": kernel}
    saved: str = tf.train.Checkpoint(model=tf.train.Checkpoint(**model), optimizer=optimizer).write(str(folder / "keras"))
    return saved


def warnings(saved: Path, like: str, **options: Any) -> list[str]:
    options = {"given": PAIRS, **options}
    report = convert(saved, saved.parent / "new" / "model.ckpt-2", like=like, **options)
    return [warning for warning in report.warnings if "sparse gradients" in warning]


def test_the_golden_graph_of_reference_variables(tmp_path: Path) -> None:
    access = read_row_access(GOLDEN / "checkpoints" / "partitioned.ckpt-2")
    assert access is not None
    assert access.gathered == {"embedding/table"}
    assert access.file.name == "partitioned.ckpt-2.meta"


def test_a_graph_shows_sparse_gradients(saved: Path) -> None:
    shutil.copy(GOLDEN / "checkpoints" / "partitioned.ckpt-2.meta", saved.parent)  # the same variables, the same look-up
    like = keras_side(saved.parent)
    (warning,) = warnings(saved, like)
    assert warning.startswith("embedding/table has sparse gradients (partitioned.ckpt-2.meta), with which Keras' SGD")
    assert "dense/kernel" not in warning


def test_a_graph_shows_sparse_gradients_of_renamed_variables_too(saved: Path) -> None:
    shutil.copy(GOLDEN / "checkpoints" / "partitioned.ckpt-2.meta", saved.parent)
    given = {"words/table": "table", "dense/kernel": "kernel"}
    (warning,) = warnings(saved, keras_side(saved.parent), given=given, rename=[("^embedding/", "words/")])
    assert warning.startswith("words/table has sparse gradients (partitioned.ckpt-2.meta)")


def test_a_variable_put_together_anew_is_possible(saved: Path) -> None:
    """Its slices are in two data files: nothing of what the graph spoke of is left to recognise it by."""
    shutil.copy(GOLDEN / "checkpoints" / "partitioned.ckpt-2.meta", saved.parent)
    (warning,) = warnings(saved, keras_side(saved.parent), partition=[("embedding/table", 1)])
    assert warning.startswith("Possibly with sparse gradients: embedding/table. ")


def test_without_a_graph_each_is_possible(saved: Path) -> None:
    (warning,) = warnings(saved, keras_side(saved.parent))
    assert warning.startswith("Possibly with sparse gradients: dense/kernel, embedding/table. No PREFIX.meta")


def test_an_embedding_layer_shows_sparse_gradients(saved: Path) -> None:
    like = keras_side(saved.parent, embedding=True)
    certain, possible = warnings(saved, like, given={}, accept_order=True)
    assert certain.startswith("embedding/table has sparse gradients (an Embedding layer)")
    assert possible.startswith("Possibly with sparse gradients: dense/kernel. ")


def test_warnings_on_the_way_back(saved: Path) -> None:
    like = keras_side(saved.parent)
    shutil.copy(GOLDEN / "checkpoints" / "partitioned.ckpt-2.meta", saved.parent)
    report = convert(like, saved.parent / "old" / "model.ckpt-0", to="name-based", like=saved, given=PAIRS)
    assert ["embedding/table has sparse" in warning for warning in report.warnings] == [True]


def write_graph(folder: Path, build: Any) -> Path:
    with tf.Graph().as_default() as graph:
        build()
        tf.io.write_graph(graph, str(folder), "graph.pbtxt")
    return folder / "model.ckpt-0"


def test_the_graph_of_a_model_dir(tmp_path: Path) -> None:
    def build() -> None:
        read, assigned, whole, through, text = (
            v1.get_variable(name, [4, 2]) for name in ("read", "assigned", "whole", "through", "t")
        )
        tf.gather(read, [1])
        assigned.scatter_update(tf.IndexedSlices(tf.ones([1, 2]), [0]))
        tf.matmul(whole, tf.transpose(tf.gather(tf.identity(through), [0])), name="inputs")
        tf.constant('node {\n  op: "ResourceGather"\n  input: "t"\n}', name="looks_like_one")
        tf.identity(text)

    access = read_row_access(write_graph(tmp_path, build))
    assert access is not None
    assert access.gathered == {"read", "through"}
    assert access.assigned == {"assigned"}


def test_a_function_that_gathers_makes_row_access_unknown(tmp_path: Path) -> None:
    def build() -> None:
        table = v1.get_variable("table", [4, 2], use_resource=True)
        tf.function(lambda: tf.gather(table, [1]))()

    assert read_row_access(write_graph(tmp_path, build)) is None


@pytest.mark.parametrize("data", [b"", b"\x12\xff\xff\xff\xff\x0f", b"\xff" * 40])
def test_a_damaged_graph_is_as_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.meta").write_bytes(data)
    assert read_row_access(tmp_path / "m") is None
