"""Random inputs: the composed operations against plain loops over NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.legacy.upstream_contrib.operations import OPERATIONS

SEEDS = range(12)


def followed(ids: np.ndarray, parents: np.ndarray, lengths: np.ndarray, end: int) -> np.ndarray:
    """Follows each beam back, one step after the other."""
    steps, batch, width = ids.shape
    beams = np.full_like(ids, end)
    for row in range(batch):
        for beam in range(width):
            at = beam
            for step in reversed(range(min(lengths[row], steps))):
                beams[step, row, beam] = ids[step, row, at]
                at = parents[step, row, at]
            ended = np.flatnonzero(beams[:, row, beam] == end)
            beams[ended[0] if ended.size else steps :, row, beam] = end
    return beams


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_tree(seed: int) -> None:
    random = np.random.default_rng(seed)
    steps, batch, width = random.integers(1, 20), random.integers(1, 4), random.integers(1, 6)
    ids = random.integers(0, 15, (steps, batch, width), np.int32)
    parents = random.integers(0, width, ids.shape, np.int32)
    lengths = random.integers(-1, steps + 2, batch).astype(np.int32)

    received = OPERATIONS["GatherTree"](ids, parents, lengths, 3)

    assert received.numpy().tolist() == followed(ids, parents, lengths, 3).tolist()


def test_gather_tree_joins_what_is_known_of_the_shapes() -> None:
    with tf.Graph().as_default():
        ids = tf.compat.v1.placeholder(tf.int32, [None, None, 3])
        beams = OPERATIONS["GatherTree"](ids, ids, tf.compat.v1.placeholder(tf.int32, [4]), 0)

    assert beams.shape.as_list() == [None, 4, 3]


def filled(image: np.ndarray) -> np.ndarray:
    """Numbers areas by their first pixel, by a flood from it."""
    numbers = np.zeros(image.shape, np.int64)
    for number, start in enumerate(np.ndindex(*image.shape), 1):
        todo = [start] if image[start] and not numbers[start] else []
        while todo:
            picture, row, column = place = todo.pop()
            numbers[place] = number
            for near in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if 0 <= near[0] < image.shape[1] and 0 <= near[1] < image.shape[2]:
                    other = (picture, *near)
                    if image[other] == image[start] and not numbers[other]:
                        todo.append(other)
    return numbers


@pytest.mark.parametrize("seed", SEEDS)
def test_connected_components(seed: int) -> None:
    random = np.random.default_rng(seed)
    image = random.integers(0, random.integers(2, 4), random.integers(1, 12, 3))

    received = OPERATIONS["ImageConnectedComponents"](image)

    assert received.numpy().tolist() == filled(image).tolist()


def test_connected_components_of_a_spiral() -> None:
    image = np.zeros((1, 33, 33), np.uint8)
    row, column, step = 0, 0, (0, 1)
    image[0, 0, 0] = 1
    for length in sorted([32, *range(2, 33, 2), *range(2, 33, 2)], reverse=True):
        for _ in range(length):
            row, column = row + step[0], column + step[1]
            image[0, row, column] = 1
        step = (step[1], -step[0])

    received = OPERATIONS["ImageConnectedComponents"](image).numpy()

    assert received.tolist() == filled(image).tolist()
    assert received.max() == 1


def paired(distances: np.ndarray, valid: int, most: int) -> list[list[int]]:
    """Takes the smallest distance again and again."""
    rows, columns = [-1] * distances.shape[0], [-1] * distances.shape[1]
    valid = len(rows) if valid < 0 else valid
    for _ in range(min(valid, len(columns), most if most > 0 else 99)):
        free = [(row, column) for row in range(valid) for column in range(len(columns)) if rows[row] == columns[column] == -1]
        row, column = min(free, key=lambda pair: distances[pair])
        rows[row], columns[column] = column, row
    return [rows, columns]


@pytest.mark.parametrize("seed", SEEDS)
def test_bipartite_match(seed: int) -> None:
    random = np.random.default_rng(seed)
    distances = random.integers(0, 9, random.integers(1, 8, 2)).astype(np.float32)
    distances[random.uniform(size=distances.shape) < 0.1] = np.inf
    valid, most = int(random.integers(-1, distances.shape[0] + 1)), int(random.integers(-1, 4))

    received = OPERATIONS["BipartiteMatch"](distances, float(valid), most)

    assert [one.numpy().tolist() for one in received] == paired(distances, valid, most)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "reduce", "empty"),
    [("Sum", np.sum, 0), ("Prod", np.prod, 1), ("Max", np.max, -(2**31)), ("Min", np.min, 2**31 - 1)],
)
def test_slices(name: str, reduce: np.ufunc, empty: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    data = random.integers(-3, 4, random.integers(1, 6, random.integers(1, 4))).astype(np.int32)
    axis = int(random.integers(0, data.ndim))
    pairs = random.integers(0, 8, (random.integers(0, 5), 2))
    parts = [np.take(data, range(first, min(last, data.shape[axis])), axis) for first, last in pairs]
    one = np.take(data, [0], axis)
    expected = [reduce(part, axis) if part.shape[axis] else np.full_like(one.sum(axis), empty) for part in parts]

    received = OPERATIONS[f"ReduceSlice{name}"](data, pairs, axis)

    assert received.shape[axis] == len(pairs)
    assert [np.take(received, slot, axis).tolist() for slot in range(len(pairs))] == [part.tolist() for part in expected]


def test_slices_of_a_known_axis_keep_the_other_sizes() -> None:
    with tf.Graph().as_default():
        data = tf.compat.v1.placeholder(tf.float32, [None, 8, 5])
        reduced = OPERATIONS["ReduceSliceSum"](data, [[0, 2], [1, 3], [4, 9]], 1)

    assert reduced.shape.as_list() == [None, 3, 5]


@pytest.mark.parametrize("own", [False, True])
def test_skip_grams_stay_in_the_window(own: bool) -> None:
    tokens, labels = OPERATIONS["SkipGramGenerateCandidates"](np.arange(500), 1, 3, 0, -1, own)

    distances = labels.numpy() - tokens.numpy()
    widest = [abs(distances[tokens.numpy() == token]).max() for token in range(3, 497)]
    assert set(distances) == {-3, -2, -1, 1, 2, 3} | ({0} if own else set())
    assert all(100 < widest.count(width) < 230 for width in (1, 2, 3))
