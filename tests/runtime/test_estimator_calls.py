"""Calls of Estimators: the engine that executes them, its duration, and the check of the model_dir."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.estimator_calls import (
    CALLS,
    Engine,
    EstimatorEngine,
    EvaluateCall,
    ExportCall,
    PredictCall,
    TrainCall,
    check_model_dir,
    interposed,
)


class Recorder(Engine):
    """Answers each call with its name."""

    def __init__(self, name: str = "recorder") -> None:
        self.name = name
        self.calls: list[tuple[Any, ...]] = []

    def train(self, estimator: Any, call: TrainCall) -> Any:
        self.calls.append((estimator, call))
        return self.name

    def evaluate(self, estimator: Any, call: EvaluateCall) -> dict[str, Any]:
        self.calls.append((estimator, call))
        return {"global_step": 1}

    def predict(self, estimator: Any, call: PredictCall) -> Iterator[Any]:
        self.calls.append((estimator, call))
        return iter((1, 2))

    def export_saved_model(self, estimator: Any, call: ExportCall) -> bytes:
        self.calls.append((estimator, call))
        return b"exported"


@pytest.fixture(scope="module")
def estimator_class() -> Any:
    from estimator_bridge.legacy import install

    install()
    from tensorflow_estimator.python.estimator import estimator

    return estimator.Estimator


@pytest.fixture
def estimator(estimator_class: Any, tmp_path: Path) -> Any:
    return estimator_class(lambda features, labels, mode: None, str(tmp_path / "made" / "model"))


def test_calls_are_handed_over_as_they_were_made(estimator: Any) -> None:
    engine = Recorder()

    with interposed(engine):
        assert estimator.train("input", steps=3) == "recorder"
        assert estimator.evaluate(input_fn="input", steps=2)["global_step"] == 1
        assert list(estimator.predict("input")) == [1, 2]
        assert estimator.export_saved_model("folder", "receiver") == b"exported"

    assert engine.calls == [
        (estimator, TrainCall("input", steps=3)),  # type: ignore[arg-type]
        (estimator, EvaluateCall("input", steps=2)),  # type: ignore[arg-type]
        (estimator, PredictCall("input")),  # type: ignore[arg-type]
        (estimator, ExportCall("folder", "receiver")),
    ]


def test_the_old_name_of_the_export_is_handed_over_as_the_new_one(estimator: Any) -> None:
    engine = Recorder()

    with interposed(engine):
        assert (
            estimator.export_savedmodel("folder", "receiver", checkpoint_path="ckpt", strip_default_attrs=True) == b"exported"
        )

    assert engine.calls == [(estimator, ExportCall("folder", "receiver", checkpoint_path="ckpt"))]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_the_arguments_and_defaults_of_the_method(estimator_class: Any, name: str) -> None:
    _, *expected = inspect.signature(estimator_class.__dict__[name]).parameters.values()
    actual = inspect.signature(CALLS[name]).parameters.values()
    assert [(one.name, one.default) for one in actual] == [(one.name, one.default) for one in expected]


def test_a_wrong_argument_is_reported_under_the_name_of_the_method(estimator: Any) -> None:
    with interposed(Recorder()), pytest.raises(TypeError, match=r"^Estimator\.train\(\) got an unexpected .* 'step'$"):
        estimator.train(list, step=1)


def test_the_engine_s_surroundings_are_active_while_it_is_interposed() -> None:
    active: list[bool] = []

    class Surrounded(Recorder):
        @contextlib.contextmanager
        def surroundings(self) -> Iterator[None]:
            active.append(True)
            yield
            active.clear()

    with interposed(Surrounded()):
        assert active
    assert not active


def test_subclasses_and_estimators_of_tensorflow_2_are_handed_over_too(estimator_class: Any, tmp_path: Path) -> None:
    import tensorflow as tf

    class Own(estimator_class):
        """Subclass like those of scripts, with a model_fn of its own; its methods may not be overridden."""

    with interposed(Recorder()):
        assert Own(lambda features, labels, mode: None, str(tmp_path)).train("input") == "recorder"
        column = tf.feature_column.numeric_column("x")
        assert tf.estimator.LinearRegressor([column], str(tmp_path)).train("input") == "recorder"
        assert tf.compat.v1.estimator.LinearRegressor([column], str(tmp_path)).train("input") == "recorder"


def test_train_and_evaluate_stays_and_calls_the_engine(estimator: Any) -> None:
    import tensorflow as tf

    engine = Recorder()
    with interposed(engine):
        tf.estimator.train_and_evaluate(
            estimator, tf.estimator.TrainSpec(lambda: None, max_steps=1), tf.estimator.EvalSpec(lambda: None)
        )

    assert engine.calls[0][0] is estimator
    assert engine.calls[0][1].max_steps == 1


def test_methods_come_back_after_an_error_and_from_nested_use(estimator_class: Any, estimator: Any) -> None:
    before = {name: estimator_class.__dict__[name] for name in CALLS}

    with interposed(Recorder("outer")):
        outer = estimator_class.train
        with contextlib.suppress(ValueError), interposed(Recorder("inner")):
            assert estimator.train("input") == "inner"
            raise ValueError
        assert estimator_class.train is outer
        assert estimator.train("input") == "outer"

    assert {name: estimator_class.__dict__[name] for name in CALLS} == before


def test_tensorflow_estimators_own_methods_can_stand_behind(estimator: Any, tmp_path: Path) -> None:
    """An engine that is made before keeps the real methods; one made inside would call itself without end."""
    with interposed(EstimatorEngine()):
        with pytest.raises(ValueError, match="Must specify steps > 0"):
            estimator.train(lambda: None, steps=0)
        with pytest.raises(ValueError, match="Must specify steps > 0"):
            estimator.evaluate(lambda: None, steps=0)
        with pytest.raises(ValueError, match="model_fn should return an EstimatorSpec"):
            next(estimator.predict(lambda: None, checkpoint_path=None, hooks=[]))
        for export in (estimator.export_saved_model, estimator.export_savedmodel):
            with pytest.raises(ValueError, match="input_receiver_fn must be defined"):
                export(str(tmp_path), None)


def test_the_model_dir_is_looked_at_before_training_only(estimator_class: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = estimator_class(lambda features, labels, mode: None, str(tmp_path / "file" / "model"))
    engine = Recorder()

    with interposed(engine):
        below.evaluate("input")
        with pytest.raises(BridgeError, match="model_dir cannot be written"):
            below.train("input")

    assert engine.calls == [(below, EvaluateCall("input"))]  # type: ignore[arg-type]


def test_a_model_dir_is_made_with_the_folders_above_it(tmp_path: Path) -> None:
    for _ in range(2):
        check_model_dir(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize(("place", "problem"), [("file", "it is a file"), ("file/model", "Not a directory")])
def test_a_model_dir_that_cannot_be_made(place: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")

    with pytest.raises(BridgeError) as raised:
        check_model_dir(str(tmp_path / place))

    assert f"{tmp_path / place}: {problem}" in str(raised.value)
    assert "Choose another model_dir" in str(raised.value)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_model_dir_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere

    with pytest.raises(BridgeError, match="no permission to write"):
        check_model_dir(str(tmp_path))


def test_other_file_systems_are_tensorflows_business(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_model_dir("gs://bucket/model")
    assert not list(tmp_path.iterdir())
