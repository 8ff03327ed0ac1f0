"""Equal batches have equal digests; whatever differs in a batch changes its digest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import estimator_bridge
from estimator_bridge.runtime.batch_digest import batch_digest
from tests.runtime.batch_with_digest import example_batch

DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64")


def digest(arrays: list[Any]) -> int:
    import tensorflow as tf

    return int(batch_digest([tf.constant(array) for array in arrays]))


def in_graph(arrays: list[Any]) -> int:
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return int(session.run(batch_digest([tf.constant(array) for array in arrays])))


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(shape)
    count = dtype.itemsize * size
    return np.frombuffer(draw(st.binary(min_size=count, max_size=count)), dtype).reshape(shape)


batches = st.lists(arrays(), max_size=3)


def bits(batch: list[Any]) -> list[Any]:
    return [(array.dtype, array.shape, array.tobytes()) for array in batch]


@given(batches)
@settings(max_examples=40)
def test_the_same_bits_have_the_same_digest(batch: list[Any]) -> None:
    assert digest(batch) == digest([array.copy() for array in batch])


@given(batches, batches)
@example([np.float32(0.0)], [np.float32(-0.0)])
@example([np.zeros([2, 3], np.int32)], [np.zeros([3, 2], np.int32)])
@example([np.zeros([0, 3], np.int32)], [np.zeros([0, 2], np.int32)])
@example([np.zeros(4, np.int32)], [np.zeros(4, np.float32)])
@example([], [np.float32(0.0)])
@example([np.float32(1), np.float32(2)], [np.float32(2), np.float32(1)])
@example([np.float32(1), np.float32(1)], [np.float32(1)])
@settings(max_examples=80)
def test_other_bits_shapes_types_or_order_have_another(one: list[Any], other: list[Any]) -> None:
    assume(bits(one) != bits(other))
    assert digest(one) != digest(other)


@given(arrays().filter(lambda array: array.nbytes and array.dtype.kind != "b"), st.data())
@settings(max_examples=40)
def test_each_bit_counts(array: Any, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, array.nbytes * 8 - 1))
    changed = bytearray(array.tobytes())
    changed[index // 8] ^= 1 << index % 8
    assert digest([array]) != digest([np.frombuffer(bytes(changed), array.dtype).reshape(array.shape)])


@pytest.mark.parametrize(
    ("one", "other"), [([b"a", b"bc"], [b"ab", b"c"]), ([b""], [b"\0"]), ([b"\xff"], [b"\xfe"]), ([b"a"], [[b"a"]])]
)
def test_strings(one: Any, other: Any) -> None:
    one, other = np.array(one, object), np.array(other, object)
    assert digest([one]) == digest([one.copy()]) == in_graph([one])
    assert digest([one]) != digest([other])


def test_graphs_and_eager_mode_agree() -> None:
    import tensorflow as tf

    batch = example_batch()
    traced = tf.function(lambda *tensors: batch_digest(tensors))
    assert in_graph(batch) == digest(batch) == int(traced(*map(tf.constant, batch)))


def test_it_is_an_int64_scalar_in_the_tensors_graph() -> None:
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        result = batch_digest([tf.compat.v1.placeholder(tf.float32, [None, 3])])
    assert (result.dtype, result.shape, result.graph) == (tf.int64, [], graph)


@pytest.mark.usefixtures("warm_python")
def test_processes_agree() -> None:
    """Each side of a comparison computes its own, whatever Python's seed of hashes is: there 0, here any."""
    environment = {"PYTHONPATH": str(Path(estimator_bridge.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("batch_with_digest.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert int(done.stdout) == digest(example_batch())
