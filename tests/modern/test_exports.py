"""train_and_evaluate with exporters, interrupted and resumed by either path, gives the same folders, SavedModels and curves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.runtime.estimator_calls import interposed
from tests.modern.jobs import ONE_BY_ONE, PATHS, X, Y, assert_close, engine, estimator, linear, make_engine, saved, spec, v1
from tests.modern.test_event_files import read

WORDS = np.array(["b", "a", "z", "c"] * 12)
TURNS = [("legacy", "legacy"), ("modern", "modern"), ("legacy", "modern"), ("modern", "legacy")]


def with_vocabulary(file: Path) -> Callable[..., Any]:
    """A model_fn whose SavedModel has an asset and three signatures."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        ids = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                str(file), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            ),
            1,
        ).lookup(features["word"])
        bias = v1.get_variable("bias", initializer=[[0.1], [0.2], [0.3], [0.4]])
        value = linear(features["x"]) + tf.gather(bias, ids)
        if mode == "infer":
            outputs = {
                "serving_default": v1.estimator.export.PredictOutput({"value": value, "id": ids}),
                "classify": v1.estimator.export.ClassificationOutput(scores=tf.sigmoid(value)),
                "regress": v1.estimator.export.RegressionOutput(value[:, 0]),
            }
            return spec(mode, None, None, predictions={"value": value}, export_outputs=outputs)
        loss = tf.reduce_mean(tf.square(value - labels))
        v1.summary.scalar("loss_again", loss)
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
        return spec(mode, loss, train_op, eval_metric_ops={"mean": v1.metrics.mean(value)})

    return model_fn  # fmt: skip


def input_fn(epochs: int | None = 1) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(({"x": X, "word": WORDS}, Y)).repeat(epochs).batch(8)


def serving_input() -> Any:
    features = {"x": tf.io.FixedLenFeature([3], tf.float32), "word": tf.io.FixedLenFeature([], tf.string)}
    return tf.estimator.export.build_parsing_serving_input_receiver_fn(features)()


def examples() -> list[bytes]:
    """Returns the input as a serving client sends it."""
    feature = tf.train.Feature
    rows = [
        {"x": feature(float_list={"value": x}), "word": feature(bytes_list={"value": [word.encode()]})}
        for x, word in zip(X, WORDS, strict=True)
    ]
    return [tf.train.Example(features={"feature": row}).SerializeToString() for row in rows]


def run(path: str, folder: Path, vocabulary: Path, max_steps: int) -> None:
    exporters = [
        tf.estimator.FinalExporter("final", serving_input),
        tf.estimator.LatestExporter("latest", serving_input, exports_to_keep=1),
        tf.estimator.BestExporter("best", serving_input, event_file_pattern="eval_held_out/*.tfevents.*", exports_to_keep=2),
    ]
    config = {"save_checkpoints_steps": 4, "save_summary_steps": 3, "keep_checkpoint_max": 2}
    ordered = {"session_config": ONE_BY_ONE} if path == "legacy" else {}
    made = estimator(with_vocabulary(vocabulary), folder, **config, **ordered)
    train_spec = tf.estimator.TrainSpec(lambda: input_fn(None), max_steps=max_steps)
    eval_spec = tf.estimator.EvalSpec(
        input_fn, name="held_out", exporters=exporters, start_delay_secs=0, throttle_secs=0, steps=None
    )
    with interposed(make_engine(path)):
        tf.estimator.train_and_evaluate(made, train_spec, eval_spec)
    v1.summary.FileWriterCache.clear()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """The folders after eight steps, interrupted at the fourth, by the path of each half."""
    vocabulary = tmp_path_factory.mktemp("vocabulary") / "words.txt"
    vocabulary.write_text("a\nb\nc\n")
    halves = {path: tmp_path_factory.mktemp(path) for path in PATHS}
    for path, folder in halves.items():
        run(path, folder, vocabulary, 4)
    made = {turn: tmp_path_factory.mktemp("-".join(turn)) for turn in TURNS}
    for (first, second), folder in made.items():
        shutil.copytree(halves[first], folder, dirs_exist_ok=True)
        run(second, folder, vocabulary, 8)
    return made


def exports(folder: Path) -> list[Path]:
    """Returns the SavedModels, the older ones first."""
    return sorted(file.parent for file in (folder / "export").rglob("saved_model.pb"))


def files(folder: Path) -> list[str]:
    """Returns every file of a model_dir, without the time and the machine in its name."""
    names = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
    plain = ["/".join("STAMP" if part.isdigit() else part for part in name.split("/")) for name in names]
    return sorted(name.partition(".tfevents")[0] for name in plain)


@pytest.mark.parametrize("turn", TURNS[1:])
def test_folders_curves_and_state_are_those_of_the_legacy_path(turn: Any, folders: Any) -> None:
    legacy, other = folders["legacy", "legacy"], folders[turn]
    kept = [name for name in files(other) if "events" not in name]
    assert kept == [name for name in files(legacy) if "events" not in name]
    assert (other / "checkpoint").read_text() == (legacy / "checkpoint").read_text()
    assert_close(saved(other), saved(legacy), 1e-6)
    for below in ("", "eval_held_out"):
        assert read(other / below) == read(legacy / below)
    assert [step for step, tag, _ in read(other / "eval_held_out") if tag == "loss"] == [4, 8]


def test_old_exports_are_deleted_and_the_best_are_kept(folders: Any) -> None:
    names = [path.parent.name for path in exports(folders["modern", "modern"])]
    assert names == ["best", "best", "final", "final", "latest"]


@pytest.mark.parametrize("turn", TURNS[1:])
def test_saved_models_have_equal_signatures_assets_and_predictions(turn: Any, folders: Any) -> None:
    for legacy, other in zip(exports(folders["legacy", "legacy"]), exports(folders[turn]), strict=True):
        seen = [v1_view(path) for path in (legacy, other)]
        assert seen[1][:2] == seen[0][:2]
        assert sorted(seen[0][0]) == ["classify", "regress", "serving_default"]
        np.testing.assert_allclose(seen[1][2], seen[0][2], rtol=1e-6)
        assert (other / "assets" / "words.txt").read_text() == "a\nb\nc\n"
    called = tf.saved_model.load(str(other)).signatures["serving_default"](examples=tf.constant(examples()))
    np.testing.assert_array_equal(called["id"], [1, 0, 3, 2] * 12)
    np.testing.assert_allclose(called["value"], seen[1][2], rtol=1e-6)


def v1_view(path: Path) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Returns signatures (key, method, tensors with name, dtype and shape), variable names and predictions, by TF1's loader."""
    with tf.Graph().as_default(), v1.Session() as session:
        loaded = v1.saved_model.load(session, ["serve"], str(path))
        signatures = {key: signature.SerializeToString(deterministic=True) for key, signature in loaded.signature_def.items()}
        signature = loaded.signature_def["serving_default"]
        shapes = {variable.op.name: variable.shape.as_list() for variable in v1.global_variables()}
        return signatures, shapes, session.run(signature.outputs["value"].name, {signature.inputs["examples"].name: examples()})


def averaged(value: Any) -> v1.train.Scaffold:
    """Exports moving averages in place of the variables that it trains, but the slices as they are."""
    named = v1.train.ExponentialMovingAverage(0.9).variables_to_restore()
    shadows = {name: variable for name, variable in named.items() if "part_" not in name}
    return v1.train.Scaffold(saver=v1.train.Saver(shadows | {"sliced/table": v1.global_variables("sliced")}))


class OwnSaver(v1.train.Saver):
    """A Saver whose methods may do anything."""


SCAFFOLDS: dict[str, Callable[[Any], Any]] = {
    "Saver of the export": lambda value: None,
    "moving averages": averaged,
    "Saver of another class": lambda value: v1.train.Scaffold(saver=OwnSaver(sharded=True)),
}


def sliced(scaffold: Callable[[Any], Any], use_resource: bool = True) -> Callable[..., Any]:
    """A model_fn with a table in slices, whose export has a Scaffold of its own."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with v1.variable_scope("sliced", partitioner=v1.fixed_size_partitioner(2), use_resource=use_resource):
            table = v1.get_variable("table", [3, 2], initializer=v1.random_uniform_initializer(-1, 1))
        value = linear(tf.concat([features["x"], tf.matmul(features["x"], tf.convert_to_tensor(table))], 1))
        if mode == "infer":
            return spec(mode, None, None, predictions=value, scaffold=scaffold(value))
        loss = tf.reduce_mean(tf.square(value - labels))
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
        with tf.control_dependencies([train_op]):
            return spec(mode, loss, v1.train.ExponentialMovingAverage(0.9).apply(v1.trainable_variables()))

    return model_fn


def exported(path: str, made: Any, folder: Path, **options: Any) -> Path:
    features = {"x": tf.io.FixedLenFeature([3], tf.float32), "word": tf.io.FixedLenFeature([], tf.string)}
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(features)
    return Path(os.fsdecode(engine(path).export_saved_model(made, str(folder / path), receiver, **options)))


def answers(path: Path) -> Any:
    (answer,) = tf.saved_model.load(str(path)).signatures["serving_default"](examples=tf.constant(examples())).values()
    return answer.numpy()


@pytest.mark.parametrize("use_resource", [True, False], ids=["resources", "references"])
@pytest.mark.parametrize("name", SCAFFOLDS)
def test_variables_are_copied_from_the_checkpoint(
    name: str, use_resource: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session loads them only if the script has a Saver of its own class."""
    engine("legacy").train(estimator(sliced(SCAFFOLDS[name]), tmp_path / "model"), input_fn, steps=6)
    made = estimator(sliced(SCAFFOLDS[name], use_resource), tmp_path / "model")
    legacy = exported("legacy", made, tmp_path)
    with monkeypatch.context() as patch:
        if name != "Saver of another class":
            patch.setattr(v1.train.Saver, "restore", lambda *arguments: pytest.fail("a session loaded the variables"))
        modern = exported("modern", made, tmp_path)
    readers = [tf.train.load_checkpoint(str(path / "variables" / "variables")) for path in (legacy, modern)]
    assert readers[0].debug_string() == readers[1].debug_string()
    np.testing.assert_array_equal(answers(modern), answers(legacy))
    assert files(modern) == files(legacy)
    assert v1.train.Saver.restore.__name__ == "restore", "nothing stays replaced"


def test_a_checkpoint_that_does_not_fit_fails_as_on_the_legacy_path(tmp_path: Path) -> None:
    engine("legacy").train(estimator(sliced(SCAFFOLDS["Saver of the export"]), tmp_path / "model"), input_fn, steps=2)
    other = estimator(with_vocabulary(tmp_path / "none"), tmp_path / "model")
    (tmp_path / "none").write_text("a\n")
    for path in PATHS:
        with pytest.raises(ValueError, match=r"Could not load all requested variables(?s:.)*Key bias not found"):
            exported(path, other, tmp_path)
        assert not list((tmp_path / path).glob("[0-9]*")), "no export appears"
