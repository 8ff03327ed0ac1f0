"""Optimizer state that is cut between workers: the same checkpoints as without, of every optimizer, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.parallel.sharded_state import Shard
from tests.modern.jobs import engine, estimator, linear, regression_input, spec, v1
from tests.running import ROOT, Ended, estimator_bridge_command

SCRIPT = ROOT / "tests" / "data" / "many_optimizers.py"
SHARDED = '[optimizer]\nstate = "sharded"\n'
MICRO = "[batch]\nmicro = 2\n"


@given(shape=st.lists(st.integers(1, 5), max_size=3), workers=st.integers(1, 5), by_rows=st.booleans())
def test_parts_of_all_workers_make_up_the_whole(shape: list[int], workers: int, by_rows: bool) -> None:
    """Each worker has a part, and none but the last is smaller than the others."""
    whole: Any = SimpleNamespace(shape=tf.TensorShape(shape), dtype=tf.float32, values=[SimpleNamespace(device="")])
    value = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    shards = [Shard.of(whole, workers, worker, by_rows and bool(shape)) for worker in range(workers)]
    units = shape[0] if by_rows and shape else value.size
    if None in shards:
        assert set(shards) == {None}
        assert -(-units // workers) * (workers - 1) >= units
        return
    parts = [shard.cut(value) for shard in shards if shard]
    np.testing.assert_array_equal(tf.reshape(tf.concat(parts, 0), shape), value)
    rows = tf.concat([shard.padded(part, 1) for shard, part in zip(shards, parts, strict=True) if shard], 0)
    for number, (shard, part) in enumerate(zip(shards, parts, strict=True)):
        assert shard
        np.testing.assert_array_equal(shard.joined(rows), value)
        np.testing.assert_array_equal(shard.own(shard.padded(value, workers)[number]), part)


def launched(folder: Path, name: str, plan: str, steps: int, *options: str, workers: int = 2) -> Ended:
    """Trains the script by some workers into the folder ``name``, with logs beside it."""
    (folder / "plan.toml").write_text(plan)
    cluster = ["--worker", workers - 1, "--path", "modern", "--plan", "plan.toml", "--log-dir", f"{name}-logs"]
    return estimator_bridge_command("launch", *cluster, SCRIPT, folder / name, steps, *options, cwd=folder)


def saved_by(folder: Path, name: str, plan: str, steps: int, *options: str, workers: int = 2) -> dict[str, Any]:
    """Returns the last checkpoint of a training."""
    ended = launched(folder, name, plan, steps, *options, workers=workers)
    assert ended.code == 0, ended.err[-3000:]
    reader = tf.train.load_checkpoint(str(folder / name))
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


@pytest.mark.slow
def test_every_optimizer_leaves_the_checkpoint_that_whole_state_leaves(tmp_path: Path) -> None:
    """Bit by bit, with dense and sparse gradients, and after going on with the state of the other."""
    whole, cut = (saved_by(tmp_path, name, plan, 10) for name, plan in (("whole", ""), ("cut", SHARDED)))
    assert whole["global_step"] == cut["global_step"] == 10
    slots = [key for key in whole if re.fullmatch(r"\w+/(dense/|out/)?(table|kernel|bias)/\w+", key)]
    assert len(slots) == 5 * (0 + 1 + 1 + 1 + 2 + 3 + 2 + 2)  # of five variables for each optimizer
    assert all(np.array_equal(whole[key], cut[key]) for key in whole.keys() | cut.keys())
    log = (tmp_path / "cut-logs" / "chief-0.log").read_text()
    (kept,) = {int(found) for found in re.findall(r"keeps (\d+) bytes of the state", log)}
    assert kept <= 0.6 * sum(whole[key].nbytes for key in slots)  # a table of 11 rows is cut into 6 and 5

    whole, cut = (saved_by(tmp_path, name, plan, 16) for name, plan in (("whole", SHARDED), ("cut", "")))
    assert all(np.array_equal(whole[key], cut[key]) for key in whole.keys() | cut.keys())


@pytest.mark.slow
def test_gradients_are_clipped_by_the_norms_of_whole_variables(tmp_path: Path) -> None:
    """Each by its own, before the state is cut; the plan lets it pass, too."""
    whole, cut = (saved_by(tmp_path, name, plan, 5, "clipped-each") for name, plan in (("whole", ""), ("cut", SHARDED)))
    assert all(np.array_equal(whole[key], cut[key]) for key in whole.keys() | cut.keys())
    (tmp_path / "plan.toml").write_text(SHARDED)
    for option, code in (("clipped-each", 0), ("lamb", 2)):
        ended = estimator_bridge_command("plan", "--plan", "plan.toml", SCRIPT, "model", 5, option, cwd=tmp_path)
        assert ended.code == code, ended.err
    assert "by a norm or the like of the whole variable" in ended.err
    assert "many_optimizers.py:" in ended.err


@pytest.mark.slow
def test_each_of_two_workers_keeps_half_of_the_state(tmp_path: Path) -> None:
    """At most 52 % of the bytes that the checkpoint has, and within 1 % of what the plan says."""
    (tmp_path / "plan.toml").write_text(SHARDED)
    cluster = ["--worker", 1, "--path", "modern", "--plan", "plan.toml", "--log-dir", "logs"]
    script = ROOT / "examples" / "digits" / "train.py"
    ended = estimator_bridge_command("launch", *cluster, script, "--model_dir=model", "--train_steps=3", cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    reader = tf.train.load_checkpoint(str(tmp_path / "model"))
    slots = [reader.get_tensor(key).nbytes for key in reader.get_variable_to_shape_map() if key.endswith("/Momentum")]
    assert slots
    (tmp_path / "plan.toml").write_text(f"[mesh]\ndata = 2\n{SHARDED}")
    planned = estimator_bridge_command(
        "plan", "--plan", "plan.toml", "--format", "json", script, "--model_dir=other", cwd=tmp_path
    )
    for task in ("chief-0", "worker-0"):
        log = (tmp_path / "logs" / f"{task}.log").read_text()
        (kept,) = {int(found) for found in re.findall(r"keeps (\d+) bytes of the state", log)}
        assert kept <= 0.52 * sum(slots)
        assert kept == pytest.approx(json.loads(planned.out)["worker_slot_bytes"], rel=0.01)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # nine processes build the graph of eight optimizers
def test_three_workers_with_micro_batches_and_half_precision(tmp_path: Path) -> None:
    """Sums of three are added up in another order; float16 rounds, and the training says so."""
    whole, cut, rounded = (
        saved_by(tmp_path, name, MICRO + plan, 10, "clipped", workers=3)
        for name, plan in (("whole", ""), ("cut", SHARDED), ("rounded", f'{SHARDED}gradients = "float16"\n'))
    )
    for key in whole:
        np.testing.assert_allclose(cut[key], whole[key], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(rounded[key], whole[key], rtol=0.02, atol=1e-3)
    assert any(not np.array_equal(rounded[key], cut[key]) for key in cut)
    assert "in float16, so the results are approximate" in (tmp_path / "rounded-logs" / "chief-0.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("slot-summary", "reads a slot of 'adam/table:0'"),
        ("stateless", "No optimizer of the script keeps state"),
        ("lamb", "An optimizer of the script updates 'momentum/table' by a norm or the like"),
    ],
)
def test_what_cannot_be_cut_is_refused(tmp_path: Path, option: str, message: str) -> None:
    """Before any step."""
    ended = launched(tmp_path, "model", SHARDED, 10, option)
    assert ended.code == 2
    assert message in ended.out + ended.err
    assert not list(tmp_path.glob("model/model.ckpt-[1-9]*"))


@pytest.mark.slow
def test_the_legacy_path_with_whole_state_trains_alike(tmp_path: Path) -> None:
    """Compared step by step; the report says what the modern side keeps where."""
    (tmp_path / "plan.toml").write_text(SHARDED)
    options = ["--worker", 1, "--plan", "plan.toml", "--out", "report", "--format", "json"]
    ended = estimator_bridge_command("compare", *options, SCRIPT, "model", 10, "mirrored", cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    result = json.loads(ended.out)
    assert (result["verdict"], max(one["max_abs_diff"] for one in result["variables"])) == ("equal", 0)
    assert "The modern side keeps a part of the optimizers' state in each worker." in result["notes"]


@pytest.mark.slow
def test_gradients_of_16_bits_are_declared_approximate(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(f'{SHARDED}gradients = "bfloat16"\n')
    options = ["--worker", 1, "--plan", "plan.toml", "--variable-abs-diff", 0.1, "--rel-diff", 0.1, "--format", "json"]
    ended = estimator_bridge_command("compare", *options, SCRIPT, "model", 10, "mirrored", cwd=tmp_path)
    result = json.loads(ended.out)
    assert max(one["max_abs_diff"] for one in result["variables"]) > 0
    assert any(note.startswith("Level of the plan: declared approximate") for note in result["notes"])


def test_one_worker_is_refused(tmp_path: Path) -> None:
    """There is nothing to cut."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        return spec(mode, loss, v1.train.AdamOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    with pytest.raises(BridgeError, match="One worker keeps the whole state"):
        engine("modern", sharded_state=True).train(estimator(model_fn, tmp_path), regression_input, steps=1)
    with pytest.raises(NotSupportedError, match="--jit-compile cannot be combined"):
        engine("modern", sharded_state=True, jit_compile=True)
