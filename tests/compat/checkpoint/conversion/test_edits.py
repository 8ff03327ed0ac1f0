"""Names changed by rules: slots and slices follow their variables, nothing ends up under another's name, no byte moves."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.conversion import edits
from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.compat.checkpoint import tensorflow_side

GOLDEN = Path(__file__).parents[3] / "golden"


def draft(*names: str) -> Draft:
    return Draft(Index(Path("m"), Header(1), {name: Entry(1, (), offset=number) for number, name in enumerate(names)}))


def renamed(names: tuple[str, ...], *rules: tuple[str, str]) -> tuple[str, ...]:
    """The new names in the order of the old ones, which the entries remember."""
    changed = draft(*names)
    edits.rename(changed, rules)
    return tuple(sorted(changed.entries, key=lambda name: changed.entries[name].offset))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([("^a/", "b/"), ("^b/", "c/")], ("c/w", "c/w/Adam", "d/a/w")),  # one after the other, also over what was renamed
        ([("^b/", "c/"), ("^a/", "b/")], ("b/w", "b/w/Adam", "d/a/w")),
        ([("^a/w$", "x")], ("x", "x/Adam", "d/a/w")),  # the slot follows, although the rule does not find it
        ([("w", "v")], ("a/v", "a/v/Adam", "d/a/v")),
        ([("/Adam$", "/Adam_1")], ("a/w", "a/w/Adam_1", "d/a/w")),  # a rule about slots is one
        ([(r"^(\w)/(?=w)", r"\1_0/")], ("a_0/w", "a_0/w/Adam", "d/a/w")),
        ([("a", "t"), ("t", "a")], ("a/w", "a/w/Adam", "d/a/w")),
    ],
)
def test_overlapping_rules(rules: list[tuple[str, str]], expected: tuple[str, ...]) -> None:
    assert renamed(("a/w", "a/w/Adam", "d/a/w"), *rules) == expected


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (("a/w", "b/w"), ("^[ab]/", "c/")),
        (("a/w", "b/w"), ("^a/", "b/")),  # onto one that keeps its name
        (("a/w", "a/w/Adam", "b"), ("^b$", "a/w/Adam")),  # onto a slot
        (("a", "a/Adam", "b/Adam"), ("^a$", "b")),  # by a slot that follows
        (("w",), ("w", "")),
    ],
)
def test_two_of_one_name_are_refused_and_nothing_is_changed(names: tuple[str, ...], rule: tuple[str, str]) -> None:
    changed = draft(*names)
    with pytest.raises(NamingError):
        edits.rename(changed, [rule])
    assert tuple(changed.entries) == names


def test_names_may_be_exchanged() -> None:
    rules = [("^a$", "\x01"), ("^b$", "a"), ("^\x01$", "b")]
    assert renamed(("a", "a/Ftrl", "b", "b/Ftrl"), *rules) == ("b", "b/Ftrl", "a", "a/Ftrl")


def test_slots_of_canned_estimators_follow() -> None:
    names = ("logits/w", "logits/w/t_0/Adagrad", "logits/w/part_0/Ftrl", "training/Adam/logits/w/m", "global_step")
    assert renamed(names, ("^logits/w$", "x")) == ("x", "x/t_0/Adagrad", "x/part_0/Ftrl", "training/Adam/x/m", "global_step")


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "w"]), min_size=1, max_size=3).map("/".join)
RULES = st.lists(
    st.tuples(st.sampled_from(["^a", "b$", "a/", "w", "^ab?/w$", "(a|b)/"]), st.sampled_from(["", "c", r"x/"])), max_size=3
)


@settings(max_examples=200)
@given(st.sets(WORDS, min_size=1, max_size=6), RULES, st.sampled_from(["Adam", "Momentum", "part_0/Ftrl"]))
def test_any_rules(variables: set[str], rules: list[tuple[str, str]], suffix: str) -> None:
    """Either every variable has the name that Python's re gives it, and its slot stands with it, or nothing was changed."""

    def by_re(name: str) -> str:
        for pattern, replacement in rules:
            name = re.sub(pattern, replacement, name)
        return name

    names = [name for variable in sorted(variables) for name in (variable, f"{variable}/{suffix}")]
    changed = draft(*names)
    try:
        edits.rename(changed, rules)
    except NamingError:
        new = [by_re(variable) for variable in variables]
        slots = [
            by_re(name) if by_re(name) != name else f"{by_re(v)}/{suffix}" for v in variables for name in [f"{v}/{suffix}"]
        ]
        assert len({*new, *slots}) < len(names) or "" in {*new, *slots}
        assert list(changed.entries) == names
        return
    offsets = {entry.offset: name for name, entry in changed.entries.items() if isinstance(entry, Entry)}
    for number, variable in enumerate(sorted(variables)):
        assert offsets[2 * number] == by_re(variable)
        old = f"{variable}/{suffix}"
        assert offsets[2 * number + 1] == (by_re(old) if by_re(old) != old else f"{by_re(variable)}/{suffix}")


def test_slices_follow_and_no_byte_is_written(tmp_path: Path) -> None:
    """A checkpoint of real parameter servers: renamed, made whole and cut again, all over the same data files."""
    for path in (GOLDEN / "checkpoints").glob(
        "partitioned.ckpt-2.[di]*"
    ):  # on the disk of the target, so that they can be linked
        shutil.copy(path, tmp_path)
    source = read_index(tmp_path / "partitioned.ckpt-2")
    rules = [("^embedding/table$", "words"), ("^dense/", "out/")]
    convert(source.prefix, tmp_path / "m", to="name-based", rename=rules)
    target = read_index(tmp_path / "m")
    assert {name: len(pieces) for name, pieces in target.pieces.items()} == dict.fromkeys(
        ["words", "words/Adam", "words/Adam_1"], 2
    )
    assert {path.stat().st_ino for path in target.shards()} == {path.stat().st_ino for path in source.shards()}
    old, new = tensorflow_side.load(source.prefix), tensorflow_side.load(tmp_path / "m")
    for name, value in old.items():
        assert tensorflow_side.same_bytes(new[name.replace("embedding/table", "words").replace("dense/", "out/")], value)


@pytest.mark.parametrize("cuts", [(0, 4, 8, 11), (0, 1, 11)])
def test_contiguous_slices_are_renamed_merged_and_cut_in_place(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    whole = np.arange(33, dtype=np.float32).reshape(11, 3)
    rows: list[tuple[str, str, Any]] = [
        (name, f"11 3 {start},{stop - start}:0,3", whole[start:stop] + plus)
        for plus, name in enumerate(("emb", "emb/Adagrad"))
        for start, stop in itertools.pairwise(cuts)
    ]
    source = read_index(tensorflow_side.save_slices(tmp_path / "m", rows))
    before = [(path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in source.shards()]
    for number in (1, 2, 5):
        target = tmp_path / f"cut-{number}"
        convert(source.prefix, target, to="name-based", rename=[("^emb$", "words")], partition=[("words", number)])
        found = read_index(target)
        assert [(path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in found.shards()] == before
        new = tensorflow_side.load(target)
        assert tensorflow_side.same_bytes(new["words"], whole)
        assert tensorflow_side.same_bytes(new["words/Adagrad"], whole + 1)


def test_variables_renamed_to_the_models_names_need_no_map(tmp_path: Path) -> None:
    import tensorflow as tf

    model = tf.train.Checkpoint(first=tf.Variable([0.0, 0.0], name="x/w"), second=tf.Variable([0.0, 0.0], name="y/w"))
    like = model.save(str(tmp_path / "like"))
    old = write_tensors(tmp_path / "old" / "m", {"p/w": [1.0, 2.0], "q/w": [3.0, 4.0]})
    assert not convert(old, tmp_path / "new" / "m", like=like).written
    assert convert(old, tmp_path / "new" / "m", like=like, rename=[("^p/", "x/"), ("^q/", "y/")]).written
    model.restore(str(tmp_path / "new" / "m")).assert_consumed()
    assert (model.first.numpy().tolist(), model.second.numpy().tolist()) == ([1.0, 2.0], [3.0, 4.0])
