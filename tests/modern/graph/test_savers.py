"""A model_fn's Saver and Scaffold: what they save, keep, start and refuse is what it is on the legacy path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from tests.modern.jobs import PATHS, ModelFn, engine, estimator, linear, minimizing, regression_input, saved, spec, train, v1
from tests.modern.test_event_files import read

trainer = v1.train
EVERY_STEP = {"save_checkpoints_steps": 1}


def momentum() -> Any:
    return trainer.MomentumOptimizer(0.05, 0.9)


def with_scaffold(**pieces: Callable[[], Any]) -> ModelFn:
    """A model_fn whose Scaffold has pieces that are made after its train_op."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = minimizing(momentum)(features, labels, mode)
        return made._replace(scaffold=trainer.Scaffold(**{name: make() for name, make in pieces.items()}))

    return model_fn


def in_collection(features: Any, labels: Any, mode: str) -> Any:
    made = minimizing(momentum)(features, labels, mode)
    v1.add_to_collection(v1.GraphKeys.SAVERS, trainer.Saver(max_to_keep=3, save_relative_paths=True, pad_step_number=True))
    return made


def renamed() -> dict[str, Any]:
    return {f"old/{variable.op.name}": variable for variable in v1.global_variables()}


SAVERS: dict[str, ModelFn] = {
    "renamed, two kept": with_scaffold(saver=lambda: trainer.Saver(renamed(), max_to_keep=2)),
    "one kept, and one an hour": with_scaffold(
        saver=lambda: trainer.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1e-9, sharded=True)
    ),
    "in a collection": in_collection,
}


def listing(folder: Path) -> tuple[list[str], str]:
    """The files of checkpoints, and the state file without the folder's own name."""
    files = sorted(file.name for file in folder.glob("model.ckpt-*"))
    return files, (folder / "checkpoint").read_text().replace(str(folder), "FOLDER")


@pytest.mark.parametrize("name", SAVERS)
def test_a_savers_files_names_and_choices_are_its_own(name: str, tmp_path: Path) -> None:
    for steps in (3, 2):  # the second training goes on with the first one's list
        for path in PATHS:
            train(path, SAVERS[name], tmp_path / path, steps=steps, config=EVERY_STEP)
        assert listing(tmp_path / "modern") == listing(tmp_path / "legacy")
    legacy, modern = (saved(tmp_path / path) for path in PATHS)
    assert sorted(modern) == sorted(legacy)
    for key, value in legacy.items():
        np.testing.assert_allclose(modern[key], value, rtol=1e-6, atol=1e-7, err_msg=key)


def test_a_saver_of_some_variables_saves_those(tmp_path: Path) -> None:
    model_fn = with_scaffold(saver=lambda: trainer.Saver([v for v in v1.global_variables() if "Momentum" not in v.op.name]))
    for path in PATHS:
        assert sorted(train(path, model_fn, tmp_path / path, steps=2)) == [
            "dense/bias",
            "dense/kernel",
            "embedding",
            "global_step",
        ]
        with pytest.raises(RuntimeError, match="Momentum"):  # which it cannot go on from
            train(path, model_fn, tmp_path / path, steps=2)


def test_averages_are_evaluated_in_place_of_their_variables(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        averages = trainer.ExponentialMovingAverage(0.5)
        if mode == "eval":
            scaffold = trainer.Scaffold(saver=trainer.Saver(averages.variables_to_restore()))
            return spec(mode, loss, None, scaffold=scaffold)
        with tf.control_dependencies([momentum().minimize(loss, trainer.get_global_step())]):
            return spec(mode, loss, averages.apply(v1.trainable_variables()))

    train("legacy", model_fn, tmp_path, steps=6)
    results = [engine(path).evaluate(estimator(model_fn, tmp_path), regression_input, steps=3, name=path) for path in PATHS]
    assert results[1] == pytest.approx(results[0], rel=1e-6)
    plain = engine("legacy").evaluate(estimator(minimizing_linear, tmp_path), regression_input, steps=3, name="plain")
    assert results[1]["loss"] != pytest.approx(plain["loss"], rel=1e-3), "the averages are not the variables"


def minimizing_linear(features: Any, labels: Any, mode: str) -> Any:
    return spec(mode, tf.reduce_mean(tf.square(linear(features["x"]) - labels)), None)


def frozen_table() -> Any:
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0, name="seen")
    v1.get_default_graph().clear_collection(v1.GraphKeys.SAVEABLE_OBJECTS)
    return trainer.Saver([*v1.global_variables(), table._Saveable(table, "seen")])


@pytest.mark.parametrize(
    ("make", "said"),
    [(frozen_table, "seen-keys"), (lambda: trainer.Saver(write_version=trainer.SaverDef.V1), "checkpoint format")],
)
def test_what_is_no_plain_saver_is_refused(make: Callable[[], Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match=said):
        train("modern", with_scaffold(saver=make), tmp_path)
    assert not list(tmp_path.glob("model.ckpt*"))


def prepared(features: Any, labels: Any, mode: str) -> Any:
    """Starts its local variables from global ones, which an init_fn and a fed initialiser set; counts what was not ready."""
    start = v1.placeholder(tf.float32, [], name="start")
    offset = v1.get_variable("offset", initializer=start, trainable=False)
    shift = v1.get_variable("shift", shape=[], initializer=v1.zeros_initializer(), trainable=False)
    seen = v1.get_local_variable("seen", initializer=offset.read_value() + shift)
    loss = tf.reduce_mean(tf.square(linear(features["x"]) + seen - labels))
    move, start_at = shift.assign_add(0.25), shift.assign(0.5)
    with tf.control_dependencies([move]):
        train_op = momentum().minimize(loss, trainer.get_global_step())
    base = trainer.Scaffold(
        init_op=v1.global_variables_initializer(),
        init_feed_dict={start: 2.0},
        init_fn=lambda scaffold, session: session.run(start_at) if scaffold.saver else None,
        local_init_op=tf.group(v1.local_variables_initializer(), v1.tables_initializer()),
        ready_for_local_init_op=v1.report_uninitialized_variables(v1.global_variables()),
    )
    summary = v1.summary.merge([v1.summary.scalar("local", seen), v1.summary.scalar("fed", offset)])
    return spec(mode, loss, train_op, scaffold=trainer.Scaffold(copy_from_scaffold=base, summary_op=summary))


def test_a_scaffold_prepares_the_session_as_it_is_asked_to(tmp_path: Path) -> None:
    config = {"save_summary_steps": 1}
    for path in PATHS:
        for _ in range(2):  # from initialisers, then from a checkpoint
            train(path, prepared, tmp_path / path, steps=2, config=config)
        v1.summary.FileWriterCache.clear()
    values = saved(tmp_path / "modern")
    assert values["shift"] == 0.5 + 4 * 0.25
    np.testing.assert_allclose(values["dense/kernel"], saved(tmp_path / "legacy")["dense/kernel"], rtol=1e-6)
    legacy, modern = (read(tmp_path / path) for path in PATHS)
    assert modern == legacy
    assert [value for _, tag, value in modern if tag == "local"] == [2.5, 2.5, 3.0, 3.0]
    assert not [tag for _, tag, _ in modern if tag == "loss"], "a summary_op of one's own is all"


def test_a_scaffold_that_is_not_ready_ends_the_training(tmp_path: Path) -> None:
    model_fn = with_scaffold(ready_op=lambda: tf.constant(["the weather"]))
    for path in PATHS:
        with pytest.raises(RuntimeError, match="the weather"):
            train(path, model_fn, tmp_path / path, steps=2)
