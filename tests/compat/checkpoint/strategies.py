"""Strategies for hypothesis: tensors of every dtype that a checkpoint can hold, names, and ways to cut a shape into slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

DTYPES = (
    *("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("complex64", "complex128", "bool", "bfloat16"),
)
SLICED = ("float32", "float64", "bfloat16", "int32", "int64", "complex64")  # TensorFlow slices few others
PARTS = st.text("abcxyz_.-0189", min_size=1, max_size=12)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
ODD_NAMES = st.one_of(NAMES, st.text(min_size=1, max_size=20).filter(lambda name: "\0" not in name and name.isprintable()))


def numpy_dtype(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@st.composite
def arrays(draw: st.DrawFn, dtypes: Sequence[str] = DTYPES) -> Any:
    dtype = numpy_dtype(draw(st.sampled_from(dtypes)))
    shape = draw(st.lists(st.integers(0, 5), max_size=4).map(tuple))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(bool)
    data = generator.bytes(int(np.prod(shape, dtype=int)) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape)


@st.composite
def string_arrays(draw: st.DrawFn) -> Any:
    shape = draw(st.lists(st.integers(0, 3), max_size=2).map(tuple))
    count = int(np.prod(shape, dtype=int))
    values = draw(st.lists(st.binary(max_size=300), min_size=count, max_size=count))
    array = np.empty(count, object)
    array[:] = values
    return array.reshape(shape)


TENSORS = st.dictionaries(ODD_NAMES, st.one_of(arrays(), arrays(), string_arrays()), min_size=1, max_size=8)


@st.composite
def cuts(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """A dimension cut into (start, length), none of them empty."""
    inner = draw(st.sets(st.integers(1, size - 1), max_size=3)) if size > 1 else set()
    edges = [0, *sorted(inner), size]
    return list(zip(edges, np.diff(edges).tolist(), strict=False))
