"""Balance of bytes: the best runs, and the largest sizes first where runs do not balance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from estimator_bridge.modern.parallel.balance import balanced


def loads_of(sizes: list[int], loads: list[int], devices: list[int]) -> list[int]:
    """Returns the bytes of each device."""
    return [
        load + sum(size for size, one in zip(sizes, devices, strict=True) if one == number) for number, load in enumerate(loads)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_device_is_as_small_as_runs_or_60_percent_allow(seed: int) -> None:
    """All runs of nine sizes over three devices are tried."""
    random = np.random.RandomState(seed)
    sizes, loads = random.randint(0, 50, 9).tolist(), random.randint(0, 30, 3).tolist()
    found = balanced(sizes, loads)
    runs = [
        [0] * first + [1] * (second - first) + [2] * (9 - second)
        for first, second in itertools.product(range(10), repeat=2)
        if first <= second
    ]
    best = min(max(loads_of(sizes, loads, run)) for run in runs)
    assert max(loads_of(sizes, loads, found)) <= best
    if best * 3 <= 1.2 * (sum(sizes) + sum(loads)):
        assert found == sorted(found)


@pytest.mark.parametrize(
    ("sizes", "loads", "expected"),
    [
        ([], [0, 0], []),
        ([7], [0, 0], [0]),
        ([7], [1, 0], [1]),
        ([5, 5, 5, 5], [0, 0, 0, 0], [0, 1, 2, 3]),
        ([98, 1, 1], [0, 0], [0, 1, 1]),
    ],
)
def test_small_cases(sizes: list[int], loads: list[int], expected: list[int]) -> None:
    """Computed by hand."""
    assert balanced(sizes, loads) == expected
