"""``estimator-bridge convert checkpoint`` as a user calls it."""

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
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.trackable import Attribute, Node, SlotReference
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE, OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors

OLD: dict[str, Any] = {
    "scope/dense/kernel": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "scope/dense/kernel/Momentum": [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]],
    "scope/dense/bias": [0.5, 0.25],
    "scope/dense/bias/Momentum": [4.0, 5.0],
    "global_step": 1000,
}
NAMES = ("dense/kernel", "dense/bias")


def write_keras_side(prefix: Path, learning_rate: Any = 0.5) -> Path:
    """Writes the checkpoint that tf.train.Checkpoint makes of a Dense layer and an SGD of tf_keras.optimizers.legacy, by hand."""
    tensors_by_key: dict[str, Any] = {"save_counter" + ATTRIBUTE: 1}
    nodes = [Node({"model": 1, "optimizer": 2, "save_counter": 3}), Node({"kernel": 4, "bias": 5}), Node()]
    nodes.append(variable("save_counter", "save_counter"))
    for name, shape in zip(NAMES, ([[0.0] * 2] * 3, [0.0] * 2), strict=True):
        key = f"model/{name.rpartition('/')[2]}"
        nodes.append(variable(name, key))
        tensors_by_key[key + ATTRIBUTE] = shape
    for name, value in (("iter", 0), ("learning_rate", learning_rate)):
        nodes[2].children[name] = len(nodes)
        nodes.append(variable(name, f"optimizer/{name}"))
        tensors_by_key[f"optimizer/{name}{ATTRIBUTE}"] = value
    for number, name in ((4, "kernel"), (5, "bias")):
        key = f"model/{name}/.OPTIMIZER_SLOT/optimizer/momentum"
        nodes[2].slots.append(SlotReference(number, "momentum", len(nodes)))
        nodes.append(variable(f"dense/{name}/momentum", key))
        tensors_by_key[key + ATTRIBUTE] = tensors_by_key[f"model/{name}{ATTRIBUTE}"]
    graph = tensors.of_strings([trackable.encode(nodes)], ())
    return write_tensors(prefix, {**tensors_by_key, OBJECT_GRAPH: graph})


def variable(full_name: str, key: str) -> Node:
    return Node(attributes=[Attribute(trackable.VALUE, full_name, key + ATTRIBUTE)])


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_tensors(tmp_path / "old" / "model.ckpt-1000", OLD)


@pytest.fixture
def like(tmp_path: Path) -> Path:
    return write_keras_side(tmp_path / "keras" / "ckpt-1")


def convert(*arguments: object) -> int:
    return main(["convert", "checkpoint", *map(str, arguments)])


def convert_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = convert(*arguments, "--format", "json")
    return code, json.loads(capsys.readouterr().out)


def numbers(prefix: Path, name: str) -> list[float]:
    import numpy as np

    from estimator_bridge.compat.checkpoint.reading.values import stream

    return np.frombuffer(b"".join(stream(read_index(prefix), name)), "<f4").tolist()


def test_bilingual_by_default(old: Path, like: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = convert_json(capsys, old, tmp_path / "new" / "m", "--like", like)
    assert (code, report["written"], report["sharing"]) == (0, True, ["link"])
    index = read_index(tmp_path / "new" / "m")
    assert set(OLD) < set(index.entries)
    assert index.entries["model/kernel" + ATTRIBUTE] == index.entries["scope/dense/kernel"]
    slot = "model/bias/.OPTIMIZER_SLOT/optimizer/momentum" + ATTRIBUTE
    assert numbers(index.prefix, slot) == [-2.0, -2.5]  # the learning rate of the Keras checkpoint is 0.5
    assert index.entries["optimizer/iter" + ATTRIBUTE] == index.entries["global_step"]


def test_the_learning_rate_can_be_given(old: Path, like: Path, tmp_path: Path) -> None:
    assert convert(old, tmp_path / "m", "--like", like, "--learning-rate", "0.1") == 0
    slot = "model/bias/.OPTIMIZER_SLOT/optimizer/momentum" + ATTRIBUTE
    assert numbers(tmp_path / "m", slot) == pytest.approx([-0.4, -0.5])
    assert numbers(tmp_path / "m", "optimizer/learning_rate" + ATTRIBUTE) == pytest.approx([0.1])


def test_object_based_has_no_other_names(old: Path, like: Path, tmp_path: Path) -> None:
    assert convert(old, tmp_path / "m", "--like", like, "--to", "object-based") == 0
    assert set(read_index(tmp_path / "m").entries) == set(read_index(like).entries)


def test_there_and_back(old: Path, like: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(old, tmp_path / "there" / "m", "--like", like, "--to", "object-based") == 0
    assert convert(tmp_path / "there" / "m", tmp_path / "back" / "m", "--to", "name-based", "--like", old) == 0
    capsys.readouterr()
    assert main(["inspect", str(old), "--diff", str(tmp_path / "back" / "m")]) == 0
    assert "5 of 5 variables equal" in capsys.readouterr().out


def test_back_from_both_kinds_at_once(old: Path, like: Path, tmp_path: Path) -> None:
    assert convert(old, tmp_path / "there", "--like", like) == 0
    assert convert(tmp_path / "there", tmp_path / "back", "--to", "name-based") == 0
    assert set(read_index(tmp_path / "back").entries) == set(OLD)


def test_back_without_the_old_graph_keeps_keras_names(old: Path, like: Path, tmp_path: Path) -> None:
    assert convert(like, tmp_path / "m", "--to", "name-based") == 0
    slots = {f"{name}/Momentum" for name in NAMES}
    assert set(read_index(tmp_path / "m").entries) == {*NAMES, *slots, "global_step"}


def test_unmatched_is_exit_code_1_and_nothing_is_written(
    old: Path, like: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = write_tensors(tmp_path / "extra", {**OLD, "other": [1.0, 2.0, 3.0]})
    assert convert(extra, tmp_path / "m", "--like", like) == 1
    assert "In the source only: other" in capsys.readouterr().out
    assert not list(tmp_path.glob("m.*"))
    assert convert(extra, tmp_path / "m", "--like", like, "--allow-unmatched") == 0
    assert convert(extra, tmp_path / "n", "--like", like, "--drop", "^other$") == 0


def test_moving_averages_become_the_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    averaged = {"w": [1.0], "w/Adam": [2.0], "w/ExponentialMovingAverage": [3.0], "b": [4.0]}
    source = write_tensors(tmp_path / "old", averaged)
    assert convert(source, tmp_path / "m", "--to", "name-based", "--use-averages") == 0
    assert set(read_index(tmp_path / "m").entries) == {"w", "w/Adam", "b"}
    assert numbers(tmp_path / "m", "w") == [3.0]
    assert convert(tmp_path / "m", tmp_path / "n", "--to", "name-based", "--use-averages") == 2
    assert "no moving averages" in capsys.readouterr().err


def test_rename(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules"
    rules.write_text("# comment\n^scope/=tower_0/\n\n(.*)/dense/(.*)=\\1/hidden/\\2\n")
    code, report = convert_json(capsys, old, tmp_path / "m", "--to", "name-based", "--rename-file", rules)
    assert (code, report["renamed"]) == (0, 4)
    assert "tower_0/hidden/bias/Momentum" in read_index(tmp_path / "m").entries


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--rename", ".*=same"], "twice"),
        (["--rename", "(=x"], "not a regular expression"),
        (["--rename", r"scope=\2"], "--rename cannot be used"),
        (["--rename", "scope"], "equals sign"),
        (["--rename-file", "missing"], "file of --rename-file"),
        (["--drop", "^nothing$"], "No variable has such a name"),
        (["--partition", "scope/dense/kernel=x"], "number of slices"),
        (["--partition", "scope/dense/kernel=9"], "fewer rows"),
        (["--partition", "global_step=2"], "cannot be partitioned"),
        (["--forget-bias", "lstm=one"], "needs a number"),
        (["--forget-bias", "lstm=1"], "No LSTM cell"),
        (["--swap-averages"], "no moving averages"),
        (["--learning-rate", "nan"], "not a learning rate"),
        (["--learning-rate", "-0.1"], "not a learning rate"),
        (["--like", "missing"], "There is no checkpoint"),
    ],
)
def test_mistakes(
    old: Path, tmp_path: Path, options: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert convert(old, "target/m", "--to", "name-based", *options) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("name", ["m.keras", "m.weights.h5", "m.h5"])
def test_a_checkpoint_is_never_written_under_the_name_of_a_file_of_keras(
    name: str, old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert(old, tmp_path / "target" / name, "--to", "name-based") == 2
    assert "name is that of a file of Keras" in capsys.readouterr().err
    assert convert(old, tmp_path / "target" / name) == 2
    expected = "name is that of a file of Keras" if name == "m.h5" else "--like"
    assert expected in capsys.readouterr().err, "the name asks for a file of Keras, which needs a model"
    assert not (tmp_path / "target").exists()


def test_the_modern_paths_own_object_graph_by_default(old: Path, tmp_path: Path) -> None:
    assert convert(old, tmp_path / "m") == 0
    index = read_index(tmp_path / "m")
    places = {f"model/named_variables/{name.replace('/', '.S')}{ATTRIBUTE}": name for name in OLD}
    assert set(index.entries) == {*OLD, *places, "save_counter" + ATTRIBUTE, OBJECT_GRAPH}
    assert all(index.entries[key] == index.entries[name] for key, name in places.items())


def test_there_and_back_by_the_modern_paths_graph_with_other_partitions(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sliced = ["--partition", "scope/dense/kernel=3"]
    assert convert(old, tmp_path / "there", "--to", "object-based", *sliced) == 0
    assert f"model/named_variables/scope.Sdense.Skernel 3 2 1,1:0,2{ATTRIBUTE}" in read_index(tmp_path / "there").entries
    assert convert(tmp_path / "there", tmp_path / "back", "--to", "name-based") == 0
    assert len(read_index(tmp_path / "back").pieces["scope/dense/kernel/Momentum"]) == 3
    capsys.readouterr()
    assert main(["inspect", str(old), "--diff", str(tmp_path / "back")]) == 0
    assert "5 of 5 variables equal" in capsys.readouterr().out


def test_a_renamed_variable_is_renamed_in_the_modern_paths_graph_too(old: Path, tmp_path: Path) -> None:
    assert convert(old, tmp_path / "first") == 0
    assert convert(tmp_path / "first", tmp_path / "second", "--rename", "^scope/=tower/") == 0
    places = {name for name in read_index(tmp_path / "second").entries if name.startswith("model/")}
    assert f"model/named_variables/tower.Sdense.Skernel{ATTRIBUTE}" in places
    assert len(places) == len(OLD)
    assert not any("scope" in name for name in places)


def test_a_keras_graph_stays_if_names_change(old: Path, like: Path, tmp_path: Path) -> None:
    assert convert(old, tmp_path / "first", "--like", like) == 0
    assert convert(tmp_path / "first", tmp_path / "second", "--rename", "^scope/=tower/") == 0
    assert read_index(like).entries.keys() < read_index(tmp_path / "second").entries.keys()
    assert "tower/dense/kernel" in read_index(tmp_path / "second").entries


def test_a_name_based_like_is_no_object_graph(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(old, tmp_path / "m", "--like", old) == 2
    assert "No checkpoint of --like has an object graph" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["m.h5", "--to", "keras-weights"], "name ends in .weights.h5"),
        (["m.weights.h5", "--to", "keras"], "name ends in .keras"),
        (["m.keras", "--to", "keras"], "--like"),
        (["m.keras", "--to", "keras", "--like", "missing.keras"], "no such model"),
    ],
)
def test_mistakes_with_keras_files(
    old: Path, tmp_path: Path, arguments: list[str], told: str, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert convert(old, f"new/{arguments[0]}", *arguments[1:]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_dry_run_writes_nothing(old: Path, like: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(old, tmp_path / "m", "--like", like, "--dry-run") == 0
    assert "Would write" in capsys.readouterr().out
    assert not list(tmp_path.glob("m.*"))


def test_truncated_source(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = read_index(old).shard(0)
    shard.write_bytes(shard.read_bytes()[:-1])
    assert convert(old, tmp_path / "m", "--to", "name-based") == 2
    assert "too short" in capsys.readouterr().err


def test_needs_no_tensorflow(old: Path, like: Path, tmp_path: Path) -> None:
    ask = (
        "import sys\nfrom estimator_bridge.cli.main import main\n"
        f"assert main(['convert', 'checkpoint', {str(old)!r}, {str(tmp_path / 'm')!r}, '--like', {str(like)!r}]) == 0\n"
        "assert 'tensorflow' not in sys.modules and 'google.protobuf' not in sys.modules\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    subprocess.run([sys.executable, "-c", ask], env=environment, check=True, capture_output=True, timeout=60)
