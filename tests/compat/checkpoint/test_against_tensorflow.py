"""Whatever TensorFlow writes we read, and whatever we write TensorFlow reads: bit by bit, for every dtype."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.format.dtypes import STRING, dtype
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.reading.index import Index, encode_index, index_path
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import publish, write_tensors
from tests.compat.checkpoint import strategies, tensorflow_side

MANY = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


_NUMBERS = itertools.count()


def fresh(scratch: Path) -> Path:
    return scratch / f"case-{next(_NUMBERS)}" / "model.ckpt"


def read(index: Index, name: str) -> Any:
    """A value by our own reader."""
    entry = index.entries[name]
    if entry.dtype == STRING:
        array = np.empty(int(np.prod(entry.shape, dtype=int)), object)
        array[:] = values.read_strings(index, entry, name)
        return array.reshape(entry.shape)
    data = b"".join(values.stream(index, name))
    return np.frombuffer(data, strategies.numpy_dtype(dtype(entry.dtype).name)).reshape(entry.shape)


@MANY
@given(strategies.TENSORS)
def test_reads_what_tensorflow_writes(scratch: Path, saved: dict[str, Any]) -> None:
    index = read_index(tensorflow_side.save(fresh(scratch), saved))
    values.check_shards(index)
    assert set(index.entries) == set(saved)
    assert all(tensorflow_side.same_bytes(read(index, name), value) for name, value in saved.items())
    assert all(values.verify(index, entry, name) for name, entry in index.stored())


@MANY
@given(strategies.TENSORS)
def test_tensorflow_reads_what_is_written(scratch: Path, given: dict[str, Any]) -> None:
    prefix = fresh(scratch)
    write_tensors(prefix, given)
    loaded = tensorflow_side.load(prefix)
    assert set(loaded) == set(given)
    assert all(tensorflow_side.same_bytes(loaded[name], value) for name, value in given.items())


@MANY
@given(st.data())
def test_partitioned_variables(scratch: Path, data: st.DataObject) -> None:
    """Cut along any dimensions, in several data files: read merged, rewritten, and read by TensorFlow slice by slice."""
    array = data.draw(strategies.arrays(strategies.SLICED).filter(lambda array: array.ndim and array.size))
    name = data.draw(strategies.ODD_NAMES)
    cut = [data.draw(strategies.cuts(size)) for size in array.shape]
    specs, pieces = [], []
    for extents in itertools.product(*cut):
        sizes = " ".join(map(str, array.shape))
        specs.append(f"{sizes} " + ":".join(f"{start},{length}" for start, length in extents))
        pieces.append(array[tuple(slice(start, start + length) for start, length in extents)].copy())
    prefix = fresh(scratch)
    num_shards = min(len(pieces), data.draw(st.integers(1, 3)))
    saved = [
        tensorflow_side.save_slices(
            prefix.with_name(f"part-{shard}"),
            [(name, spec, piece) for spec, piece in zip(specs[shard::num_shards], pieces[shard::num_shards], strict=True)],
        )
        for shard in range(num_shards)
    ]
    source = read_index(tensorflow_side.merge(saved, prefix))
    values.check_shards(source)
    assert tensorflow_side.same_bytes(read(source, name), array)

    draft = Draft(source)
    draft.alias(name, "alias/" + name)
    draft.rename(lambda old: "renamed/" + old)
    target = prefix.with_name("target")
    publish(draft, target)
    for new in ("renamed/" + name, "renamed/alias/" + name):
        kind = tf.as_dtype(array.dtype)
        whole, *parts = tensorflow_side.restore(target, [new] * (len(specs) + 1), ["", *specs], [kind] * (len(specs) + 1))
        assert tensorflow_side.same_bytes(whole, array)
        assert all(tensorflow_side.same_bytes(one, other) for one, other in zip(parts, pieces, strict=True))


@MANY
@given(strategies.TENSORS, st.integers(1, 3), strategies.arrays())
def test_changes_of_names(scratch: Path, saved: dict[str, Any], num_shards: int, added: Any) -> None:
    names = sorted(saved)
    prefix = fresh(scratch)
    parts = [
        tensorflow_side.save(prefix.with_name(f"part-{shard}"), {name: saved[name] for name in names[shard::num_shards]})
        for shard in range(min(num_shards, len(names)))
    ]
    draft = Draft(read_index(tensorflow_side.merge(parts, prefix)))
    draft.rename(lambda name: f"{name}/new")
    draft.alias(f"{names[0]}/new", "the alias")
    if len(names) > 1:
        draft.drop([f"{names[-1]}/new"])
    draft.put("added", tensors.of(added))
    publish(draft, prefix.with_name("target"))
    loaded = tensorflow_side.load(prefix.with_name("target"))
    expected = {f"{name}/new": saved[name] for name in names[: -1 if len(names) > 1 else None]}
    expected |= {"the alias": saved[names[0]], "added": added}
    assert set(loaded) == set(expected)
    assert all(tensorflow_side.same_bytes(loaded[name], value) for name, value in expected.items())


def test_index_of_many_blocks_is_read_back_the_same_by_both(scratch: Path) -> None:
    prefix = fresh(scratch)
    value = np.float32([1, 2])
    names = [f"layer_{number}/some/rather/long/scope/kernel/Adam_{number % 2}" for number in range(6000)]
    tensorflow_side.save(prefix, dict.fromkeys(names, value))
    index = read_index(prefix)
    assert len(index.entries) == len(names)
    index_path(prefix).write_bytes(b"".join(encode_index(index)))
    assert len(tensorflow_side.load(prefix)) == len(names)
    assert read_index(prefix) == index
