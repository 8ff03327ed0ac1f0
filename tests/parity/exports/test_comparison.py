from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies

from estimator_bridge.cli.main import main
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.exports.requests import read_requests

ROWS = 70  # more than one batch


class Line(tf.Module):
    """y = slope * x + 1, with the sign of y as text; answers to serialized examples or to x itself."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = tf.Variable(slope)

    def answer(self, x: Any) -> dict[str, Any]:
        y = self.slope * x + 1.0
        return {"y": y, "sign": tf.where(y < 0, "minus", "plus")}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def of_examples(self, examples: Any) -> dict[str, Any]:
        return self.answer(tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"])

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def of_x(self, x: Any) -> dict[str, Any]:
        return self.answer(x)

    @tf.function(input_signature=[tf.TensorSpec([1, 2], tf.float32, "x")])
    def of_one_x(self, x: Any) -> dict[str, Any]:
        return {"prediction": self.answer(x)["y"]}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of exports, and the same requests in three files."""
    folder = tmp_path_factory.mktemp("exports")
    for name, slope, method in (
        ("old/1700000000", 7.0, "of_x"),
        ("old/1700000100", 2.0, "of_examples"),
        ("same", 2.0, "of_x"),
        ("renamed", 2.0, "of_one_x"),
        ("other", 2.001, "of_x"),
    ):
        line = Line(slope)
        tf.saved_model.save(line, str(folder / name), {"serving_default": getattr(line, method)})
    x = np.arange(2.0 * ROWS, dtype=np.float32).reshape(ROWS, 2) - 100
    np.savez(folder / "requests.npz", x=x)
    (folder / "requests.json").write_text(json.dumps({"instances": [{"x": row.tolist()} for row in x]}))
    with tf.io.TFRecordWriter(str(folder / "requests.tfrecord")) as writer:
        for row in x:
            example = tf.train.Example()
            example.features.feature["x"].float_list.value.extend(row.tolist())
            writer.write(example.SerializeToString())
    return folder


def compared(models: Path, capsys: pytest.CaptureFixture[str], *arguments: str, requests: str = "npz") -> tuple[int, Any]:
    code = main(["compare", "--format", "json", "--requests", str(models / f"requests.{requests}"), *arguments])
    out = capsys.readouterr().out
    return code, json.loads(out) if out else None


@pytest.mark.parametrize("requests", ["npz", "json", "tfrecord"])
def test_models_that_take_examples_and_arrays_get_the_same_requests(
    models: Path, requests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = compared(models, capsys, str(models / "old"), str(models / "same"), requests=requests)

    assert (code, result["verdict"], result["requests"]) == (0, "equal", ROWS)
    assert {output["old"]: output["max_abs_diff"] for output in result["outputs"]} == {"y": 0.0, "sign": 0.0}


def test_rows_that_differ_are_counted(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = compared(models, capsys, str(models / "old"), str(models / "other"))

    difference = {output["old"]: output for output in result["outputs"]}
    assert code == 1
    assert difference["y"]["max_abs_diff"] == pytest.approx(0.001 * 100, rel=1e-3), "at x = -100"
    assert difference["y"]["rows_outside"] == ROWS
    assert difference["sign"]["rows_outside"] == 0


def test_models_answer_without_tf32(tmp_path: Path) -> None:
    """On an H100, TF32 made 1.2e-5 in an answer of a difference of 4e-6 in the variables of two equal trainings."""
    settings: list[bool] = []

    def note(x: Any) -> Any:
        settings.append(tf.config.experimental.tensor_float_32_execution_enabled())
        return x

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def answer(x: Any) -> dict[str, Any]:
        return {"y": tf.py_function(note, [x], tf.float32)}

    tf.saved_model.save(tf.Module(), str(tmp_path), {"serving_default": answer})
    np.savez(tmp_path / "requests.npz", x=np.zeros([1, 2], np.float32))
    assert main(["compare", "--requests", str(tmp_path / "requests.npz"), str(tmp_path), str(tmp_path)]) == 0

    assert settings == [False, False]
    assert tf.config.experimental.tensor_float_32_execution_enabled(), "as before"


def test_outputs_of_other_names_need_a_map(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = compared(models, capsys, str(models / "old"), str(models / "renamed"))
    assert (code, result["verdict"]) == (2, "not comparable")

    pairs = tmp_path / "pairs"
    pairs.write_text("y = prediction\n")
    code, result = compared(models, capsys, "--map", str(pairs), str(models / "old"), str(models / "renamed"))
    assert (code, result["unpaired"]) == (1, ["old: sign"]), "an output without a counterpart is no equality"
    assert result["outputs"][0]["rows_outside"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--requests", "requests.txt", "old", "same"], "kind of the requests"),
        (["--requests", "nowhere.npz", "old", "same"], "cannot be read"),
        (["--requests", "requests.npz", "old"], "two SavedModels"),
        (["--requests", "requests.npz", "--out", "report", "old", "same"], "--out is for scripts"),
        (["--requests", "requests.npz", "--steps", "3", "old", "same"], "--steps is for scripts"),
        (["--requests", "requests.npz", "--worker", "0", "old", "same"], "--worker is for scripts"),
        (["--requests", "requests.npz", "old", "nowhere"], "no SavedModel"),
        (["--requests", "requests.npz", "--signature", "predict", "old", "same"], "one of: serving_default"),
        (["--requests", "wide.npz", "old", "same"], "answer a request"),
        (["--requests", "lacking.npz", "same", "old"], "no value for the input 'x'"),
        (["--requests", "empty.tfrecord", "old", "old"], "Feature: x (data type: float) is required but could not be found"),
    ],
)
def test_a_mistake_is_told(
    arguments: list[str], message: str, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(models)
    np.savez("wide.npz", x=np.zeros([3, 5], np.float32))
    np.savez("lacking.npz", z=np.zeros([3, 2], np.float32))

    with tf.io.TFRecordWriter("empty.tfrecord") as writer:
        writer.write(tf.train.Example().SerializeToString())

    assert main(["compare", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "{{node" not in err


@hypothesis.settings(max_examples=20, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(
    kind=strategies.sampled_from(["npz", "json", "tfrecord"]),
    cut=strategies.integers(0, 400),
    place=strategies.integers(0, 400),
    byte=strategies.integers(0, 255),
)
def test_damaged_requests_are_told(models: Path, tmp_path: Path, kind: str, cut: int, place: int, byte: int) -> None:
    content = bytearray((models / f"requests.{kind}").read_bytes())[: max(1, cut)]
    content[place % len(content)] = byte
    damaged = tmp_path / f"damaged.{kind}"
    damaged.write_bytes(content)

    with contextlib.suppress(BridgeError):  # no other exception
        assert 0 < len(read_requests(damaged)) < ROWS


def test_json_that_holds_no_rows_is_told(tmp_path: Path) -> None:
    for number, text in enumerate(['{"instances": [1]}', '{"instances": 3}', "[]", '{"instances": []}', "{"]):
        file = tmp_path / f"{number}.json"
        file.write_text(text)
        with pytest.raises(BridgeError, match="requests"):
            read_requests(file)
