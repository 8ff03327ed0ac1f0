"""``estimator-bridge inspect`` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.index import Index, encode_index, index_path
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import publish, write_tensors

VALUES: dict[str, Any] = {
    "dense/kernel": [[1.0, 2.0], [3.0, 4.0]],
    "dense/kernel/Adam": [[0.0, 0.0], [0.0, 0.0]],
    "dense/kernel/Adam_1": [[0.0, 0.0], [0.0, 0.0]],
    "dense/kernel/ExponentialMovingAverage": [[1.0, 2.0], [3.0, 4.0]],
    "beta1_power": 0.9,
    "global_step": 1234,
    "note": "[bold]not a style",
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_tensors(tmp_path / "model_dir" / "model.ckpt-1234", VALUES)


def inspect(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main(["inspect", *map(str, arguments)])
    return code, capsys.readouterr().out


def inspect_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    code, out = inspect(capsys, *arguments, "--format", "json")
    return code, json.loads(out)


def test_table(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inspect(capsys, checkpoint)
    assert code == 0
    assert "name-based, step 1,234" in out
    assert "7 variables" in out
    assert "Adam v" in out
    assert "ExponentialMovingAverage" in out


def test_json_has_everything(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = inspect_json(capsys, checkpoint)
    variables = {row["name"]: row for row in told["variables"]}
    assert set(variables) == set(VALUES)
    assert (told["kind"], told["step"], told["num_variables"]) == ("name-based", 1234, 7)
    assert variables["dense/kernel/Adam_1"]["slot"]["variable"] == "dense/kernel"
    assert variables["dense/kernel"]["shape"] == [2, 2]


def test_a_model_dir_is_its_latest_checkpoint(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkpoint.parent / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1234"\n')
    assert inspect_json(capsys, checkpoint.parent)[1]["step"] == 1234
    assert inspect_json(capsys, index_path(checkpoint))[1]["step"] == 1234


def test_aliases_count_once(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draft = Draft(read_index(checkpoint))
    draft.alias("dense/kernel", "model/kernel/.ATTRIBUTES/VARIABLE_VALUE")
    draft.put(OBJECT_GRAPH, tensors.of(b""))
    publish(draft, tmp_path / "bilingual")
    _, before = inspect_json(capsys, checkpoint)
    _, after = inspect_json(capsys, tmp_path / "bilingual")
    assert after["kind"] == "bilingual"
    assert after["num_bytes"] - before["num_bytes"] == 5  # the object graph alone


def test_verify(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Verified: 7 tensors" in inspect(capsys, checkpoint, "--verify")[1]
    shard = read_index(checkpoint).shard(0)
    shard.write_bytes(bytes([shard.read_bytes()[0] ^ 1]) + shard.read_bytes()[1:])
    assert main(["inspect", str(checkpoint)]) == 0
    assert main(["inspect", str(checkpoint), "--verify"]) == 2
    assert "1 of 7 tensors have changed" in capsys.readouterr().err


def test_diff(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(capsys, checkpoint, "--diff", checkpoint) == (0, "7 of 7 variables equal\n")
    changed = {**VALUES, "dense/kernel": [[1.0, 2.0], [3.0, 4.5]], "beta1_power": float("nan"), "note": "other", "new": 1}
    other = write_tensors(tmp_path / "other", changed)
    code, out = inspect(capsys, checkpoint, "--diff", other)
    assert code == 1
    assert "only in the second" in out
    _, told = inspect_json(capsys, checkpoint, "--diff", other)
    rows = {row["name"]: row for row in told["variables"]}
    assert rows["dense/kernel"]["max_abs_diff"] == 0.5
    assert rows["beta1_power"]["max_abs_diff"] == "inf"
    assert rows["note"]["note"] == "string values differ"
    close = write_tensors(tmp_path / "close", {**VALUES, "beta1_power": 0.9001})
    assert inspect(capsys, checkpoint, "--diff", close)[0] == 1
    assert inspect(capsys, checkpoint, "--diff", close, "--abs-diff", "1e-3")[0] == 0


@pytest.mark.parametrize("path", ["missing", "missing.index", ""])
def test_nothing_there(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / path)]) == 2
    assert "There is no checkpoint." in capsys.readouterr().err


def test_a_hundred_thousand_variables_are_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = Index(tmp_path / "m", Header(1))
    for number in range(100_000):
        name = f"tower/layer_{number % 20}/part_{number}/kernel"
        index.entries[name] = Entry(1, (0,))
    index_path(index.prefix).write_bytes(b"".join(encode_index(index)))
    index.shard(0).touch()
    code, out = inspect(capsys, index.prefix)  # quadratic work would not end before the deadline of every test
    assert code == 0
    assert "tower/layer_0/" in out
    assert len(out.splitlines()) < 40


def test_starts_without_tensorflow(checkpoint: Path) -> None:
    ask = (
        "import sys\nfrom estimator_bridge.cli.main import main\n"
        f"main(['inspect', {str(checkpoint)!r}, '--verify'])\n"
        "heavy = {'tensorflow', 'numpy', 'keras', 'google.protobuf'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    subprocess.run([sys.executable, "-c", ask], env=environment, check=True, capture_output=True, timeout=60)
