"""Variables of the right shape or name that mean something else: they are reported, and never written as if they were the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.compat.checkpoint import CheckpointError, convert, read_index
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.trackable import Node
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE, OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.values import stream
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.cli.convert.test_checkpoint import write_keras_side

KERNEL = "net/dense/kernel"
POWERS = {"beta1_power": 0.9**8, "beta2_power": 0.999**8}


def write_old_side(prefix: Path, suffixes: Sequence[str] = (), extra: dict[str, Any] | None = None) -> Path:
    """A kernel of ones, its slots of twos and threes."""
    names = [KERNEL, *(f"{KERNEL}/{suffix}" for suffix in suffixes)]
    values = {name: np.full((2, 2), number, np.float32) for number, name in enumerate(names, 1)}
    return write_tensors(prefix, {**values, "global_step": 7, **(extra or {})})


def write_newer_side(prefix: Path, lists: Sequence[str]) -> Path:
    """Writes the checkpoint that tf.train.Checkpoint makes of a kernel and a newer optimizer of tf_keras, by hand; lists as the optimizer made them."""
    nodes = [Node({"model": 1, "optimizer": 2}), Node({"kernel": 3}), Node({"_iterations": 4, "_variables": 5})]
    nodes += [
        trackable.variable("dense/kernel", f"model/kernel{ATTRIBUTE}"),
        trackable.variable("iteration", f"i{ATTRIBUTE}"),
        Node(),
    ]
    values: dict[str, Any] = {f"model/kernel{ATTRIBUTE}": np.zeros((2, 2), np.float32), f"i{ATTRIBUTE}": 7}
    for number, name in enumerate(lists):
        key = f"optimizer/_variables/{number}{ATTRIBUTE}"
        nodes[2].children[f"_{name}"] = len(nodes)
        nodes += [Node({"0": len(nodes) + 1}), trackable.variable(f"{name}/dense/kernel", key)]
        values[key] = np.full((2, 2), number + 5, np.float32)
    return write_tensors(prefix, {**values, OBJECT_GRAPH: tensors.of_strings([trackable.encode(nodes)], ())})


def number(prefix: Path, name: str) -> float:
    return float(np.frombuffer(b"".join(stream(read_index(prefix), name)), "<f4")[0])


ADAM, RMSPROP = ("momentums", "velocities"), ("velocities", "momentums")


@pytest.mark.parametrize(
    ("suffixes", "lists"),
    [
        (("RMSProp", "RMSProp_1"), ADAM),
        (("Adam", "Adam_1"), RMSPROP),
        (("Adam", "Adam_1"), ("momentums",)),
        (("Momentum",), ADAM),
        (("Ftrl", "Ftrl_1"), ("accumulators",)),
        (("Adagrad",), ("accumulators", "linears")),
    ],
)
def test_slots_of_another_optimizer(suffixes: Sequence[str], lists: Sequence[str], tmp_path: Path) -> None:
    """The lists of Keras' optimizers are called alike: Adam's velocities are no mean squares of RMSprop's to go on with."""
    old, new = write_old_side(tmp_path / "old" / "m", suffixes), write_newer_side(tmp_path / "new" / "m", lists)
    there = convert(old, tmp_path / "there", like=new, learning_rate=0.1)
    assert (there.written, len(there.unmatched_targets)) == (False, len(lists))
    assert [slot.target for slot in there.slots] == [""] * len(suffixes)
    back = convert(new, tmp_path / "back", to="name-based", like=old, learning_rate=0.1)
    assert not back.written
    assert back.unmatched_targets == [f"{KERNEL}/{suffix}" for suffix in suffixes]
    assert [slot.target for slot in back.slots] == [""] * len(lists)


@pytest.mark.parametrize(
    ("suffixes", "lists"), [(("RMSProp", "RMSProp_1"), RMSPROP), (("Adam", "Adam_1"), ADAM), (("AdamW", "AdamW_1"), ADAM)]
)
def test_slots_of_the_same_optimizer(suffixes: Sequence[str], lists: Sequence[str], tmp_path: Path) -> None:
    old, new = write_old_side(tmp_path / "old" / "m", suffixes), write_newer_side(tmp_path / "new" / "m", lists)
    assert convert(old, tmp_path / "there", like=new).written
    assert [number(tmp_path / "there", f"optimizer/_variables/{place}{ATTRIBUTE}") for place in (0, 1)] == [2, 3]
    assert convert(new, tmp_path / "back", to="name-based", like=old).written
    assert [number(tmp_path / "back", f"{KERNEL}/{suffix}") for suffix in suffixes] == [5, 6]


def test_a_given_optimizer_that_contradicts_the_checkpoint(tmp_path: Path) -> None:
    new = write_newer_side(tmp_path / "new" / "m", ADAM)
    with pytest.raises(CheckpointError, match="The checkpoint's optimizer was Adam"):
        convert(new, tmp_path / "back", to="name-based", optimizer="RMSProp")


def test_a_slot_that_keras_does_not_have_is_no_zeros_unless_the_table_says_so(tmp_path: Path) -> None:
    """RMSprop without momentum has none to lose; one that is not centered does not know the mean of the gradients."""
    old = write_old_side(tmp_path / "old" / "m", ("RMSProp", "RMSProp_1", "RMSProp_2"))
    report = convert(write_newer_side(tmp_path / "new" / "m", ("velocities",)), tmp_path / "back", to="name-based", like=old)
    assert report.unmatched_targets == [f"{KERNEL}/RMSProp_1"]
    assert report.slots[-1].target == f"{KERNEL}/RMSProp_2"


@pytest.mark.parametrize("left_over", ["net/dense/kernel/Momentum", "net/other/Momentum", "train/learning_rate"])
def test_a_slot_without_its_variable_is_no_variable(left_over: str, tmp_path: Path) -> None:
    old = write_tensors(
        tmp_path / "m", {left_over: np.ones((3, 2), np.float32), "net/dense/bias": [1.0, 2.0], "global_step": 7}
    )
    report = convert(old, tmp_path / "there", like=write_keras_side(tmp_path / "keras" / "m"))
    assert (report.written, report.unmatched_sources) == (False, [left_over])
    assert f"model/kernel{ATTRIBUTE}" in report.unmatched_targets


def test_a_slot_of_a_scripts_own_optimizer_is_no_variable(tmp_path: Path) -> None:
    """``net/dense/kernel/MyOptimizer`` has the shape of a layer that the model has and the old graph had not."""
    new = write_newer_side(tmp_path / "new" / "m", ())
    old = write_tensors(
        tmp_path / "m", {"a/w": np.ones(3, np.float32), "a/w/Mine": np.ones((2, 2), np.float32), "global_step": 7}
    )
    report = convert(old, tmp_path / "there", like=new)
    assert (report.written, report.matches, "a/w/Mine" in report.unmatched_sources) == (False, (), True)


def test_averages_never_change_only_names(tmp_path: Path) -> None:
    """An object graph that is only kept would go on naming the values that were not averaged."""
    old = write_old_side(tmp_path / "old" / "m", ["ExponentialMovingAverage"])
    new = write_newer_side(tmp_path / "new" / "m", ())
    both = tmp_path / "both" / "m"
    assert convert(old, both, like=new).written
    with pytest.raises(CheckpointError, match="would keep the values that it has"):
        convert(both, tmp_path / "wrong", use_averages=True)
    assert convert(both, tmp_path / "right", use_averages=True, like=new).written
    assert {number(tmp_path / "right", name) for name in (KERNEL, f"model/kernel{ATTRIBUTE}")} == {2}
    assert convert(both, tmp_path / "names", to="name-based", use_averages=True).written
    assert number(tmp_path / "names", KERNEL) == 2


def test_a_step_of_another_type(tmp_path: Path) -> None:
    """Keras counts in int64, and restores no other type."""
    old = write_old_side(tmp_path / "old" / "m", ("Adam", "Adam_1"), {**POWERS, "global_step": np.int32(7)})
    assert convert(old, tmp_path / "m", like=write_newer_side(tmp_path / "new" / "m", ADAM)).written
    entry = read_index(tmp_path / "m").entries[f"i{ATTRIBUTE}"]
    assert (entry.dtype, entry.size) == (tensors.number(0).dtype, 8)


def test_the_old_graph_finds_all_its_variables(tmp_path: Path) -> None:
    """Whatever kind the source is of."""
    old, other = (write_old_side(tmp_path / suffix / "m", [suffix]) for suffix in ("Momentum", "Adagrad"))
    report = convert(old, tmp_path / "new", to="name-based", like=other)
    assert (report.written, report.unmatched_targets) == (False, [f"{KERNEL}/Adagrad"])
    assert convert(old, tmp_path / "new", to="name-based", like=other, rename=[("Momentum", "Adagrad")]).written


def test_a_like_that_would_be_ignored(tmp_path: Path) -> None:
    old, new = write_old_side(tmp_path / "old" / "m"), write_newer_side(tmp_path / "new" / "m", ADAM)
    for source in (old, new):
        with pytest.raises(CheckpointError, match="not needed for this conversion"):
            convert(source, tmp_path / "m", to="name-based", like=new)


def test_pairs_by_hand_mean_the_same_with_and_without_the_old_graph(tmp_path: Path) -> None:
    new = write_newer_side(tmp_path / "new" / "m", ("momentums",))
    old = write_tensors(tmp_path / "old" / "m", {"a/w": np.ones((2, 2), np.float32), "global_step": 1})
    for like in (None, old):
        report = convert(
            new, tmp_path / f"back-{like is None}", to="name-based", like=like, given={"a/w": "dense/kernel"}, learning_rate=1
        )
        assert [(pair.target, pair.how) for pair in report.matches] == [("a/w", "map")]
        assert report.written
        with pytest.raises(CheckpointError, match="no variable has this name"):
            convert(new, tmp_path / "m", to="name-based", like=like, given={"a/w": "dense/kernels"}, learning_rate=1)


def test_no_argument_is_ignored(tmp_path: Path) -> None:
    old = write_old_side(tmp_path / "old" / "m", ("Adam", "Adam_1"))
    new, other = (write_newer_side(tmp_path / name / "m", ADAM) for name in ("new", "other"))
    for likes in ([new, other], [new, old]):
        with pytest.raises(CheckpointError, match="not needed for this conversion"):
            convert(old, tmp_path / "m", like=likes)
    with pytest.raises(CheckpointError, match="--optimizer-family has no effect"):
        convert(old, tmp_path / "m", like=new, optimizer_family="legacy")
    assert convert(new, tmp_path / "m", like=[other, old]).written


def test_between_two_models_of_keras_no_default_of_tf1_is_advised(tmp_path: Path) -> None:
    """Neither had epsilon=1e-8, and the betas are not known."""
    new, other = (write_newer_side(tmp_path / name / "m", ADAM) for name in ("new", "other"))
    report = convert(new, tmp_path / "m", to="object-based", like=other)
    assert report.written
    assert not [warning for warning in report.warnings if "TF1" in warning or "beta" in warning], report.warnings


def test_a_metric_of_any_size_comes_along_since_the_graph_announces_it(tmp_path: Path) -> None:
    key = f"keras_api/metrics/0/confusion{ATTRIBUTE}"
    nodes = [Node({"model": 1, "keras_api": 2}), Node({"kernel": 3}), Node({"metrics": 4})]
    nodes += [trackable.variable("dense/kernel", f"model/kernel{ATTRIBUTE}"), Node({"0": 5}), Node({"confusion": 6})]
    nodes.append(trackable.variable("confusion", key))
    kept = np.arange(2**19, dtype=np.float32)  # 2 MiB
    graph = tensors.of_strings([trackable.encode(nodes)], ())
    values: dict[str, Any] = {f"model/kernel{ATTRIBUTE}": np.zeros((2, 2), np.float32), key: kept, OBJECT_GRAPH: graph}
    report = convert(
        write_old_side(tmp_path / "old" / "m"), tmp_path / "m", like=write_tensors(tmp_path / "like" / "m", values)
    )
    assert report.written
    assert b"".join(stream(read_index(tmp_path / "m"), key)) == kept.tobytes()
