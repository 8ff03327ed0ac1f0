"""``input_data`` of TensorFlow 1's MNIST tutorials: handwritten digits from local files, batches in TensorFlow 1's order.

Nothing is downloaded. The four files, gzipped or not, are those that the tutorials downloaded.
"""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from estimator_bridge.errors import BridgeError

_FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
_IMAGES, _LABELS = 2051, 2049  # the first number of a file: unsigned bytes in three dimensions, and in one
_CLASSES = 10


class Datasets(NamedTuple):
    """The three parts of the data."""

    train: DataSet
    validation: DataSet
    test: DataSet


class DataSet:
    """Images and labels, in batches.

    Args:
        images: (examples, rows, columns, 1), from 0 to 255.
        labels: (examples,), or (examples, 10) one-hot.
        fake_data: answer with ones.
        one_hot: Labels of fake data are vectors.
        dtype: float32, which scales to 0..1, or uint8.
        reshape: flatten each image.
        seed: Seed of the order of batches; by default the graph's seed.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = "float32",
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        import tensorflow as tf
        from tensorflow.python.framework import random_seed

        of_graph, of_op = random_seed.get_seed(seed)
        np.random.seed(of_graph if seed is None else of_op)  # the order of batches is that of this generator
        dtype = tf.as_dtype(dtype).base_dtype
        if dtype not in (tf.uint8, tf.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self.fake_data = fake_data
        self.one_hot = one_hot
        self.epochs_completed = 0
        self.labels = labels
        self.images = images if fake_data else _prepared(images, labels, reshape, scaled=dtype == tf.float32)
        self.num_examples = 10000 if fake_data else len(images)
        self._next = 0

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next examples; what an epoch has left is completed from the next one, in a new order.

        Args:
            batch_size: Number of examples.
            fake_data: answer with ones.
            shuffle: draw a new order for each epoch.

        Returns:
            Images and labels.
        """
        if fake_data:
            label: Any = [1] + [0] * (_CLASSES - 1) if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        if self.epochs_completed == 0 and self._next == 0 and shuffle:
            self._shuffle()
        first, self._next = self._next, self._next + batch_size
        if self._next <= self.num_examples:
            return self.images[first : self._next], self.labels[first : self._next]
        rest = self.images[first:], self.labels[first:]
        self.epochs_completed += 1
        self._next -= self.num_examples
        if shuffle:
            self._shuffle()
        return np.concatenate([rest[0], self.images[: self._next]]), np.concatenate([rest[1], self.labels[: self._next]])

    def _shuffle(self) -> None:
        order = np.arange(self.num_examples)
        np.random.shuffle(order)
        self.images, self.labels = self.images[order], self.labels[order]


def _prepared(images: Any, labels: Any, reshape: bool, scaled: bool) -> Any:
    if len(images) != len(labels):
        raise ValueError(f"There are {len(images)} images and {len(labels)} labels.")
    if reshape:
        images = images.reshape(len(images), math.prod(images.shape[1:]))  # -1 means nothing where there are no images
    return np.multiply(images.astype(np.float32), np.float32(1.0 / 255.0)) if scaled else images


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = "float32",
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """Training, validation and test data.

    Args:
        train_dir: the folder with the four files.
        fake_data: data sets that answer with ones, without files.
        one_hot: labels as vectors.
        dtype: float32, which scales to 0..1, or uint8.
        reshape: flatten each image.
        validation_size: Number of the first training examples that are kept apart.
        seed: Seed of the order of batches.
        source_url: not used; nothing is downloaded.

    Returns:
        The three data sets.

    Raises:
        BridgeError: a file is missing or is not what its name says.
        ValueError: there are fewer training examples than ``validation_size``.
    """
    options = {"dtype": dtype, "seed": seed}
    if fake_data:
        return Datasets(*(DataSet([], [], fake_data=True, one_hot=one_hot, **options) for _ in range(3)))
    paths = _find(Path(train_dir))
    images, test_images = (extract_images(paths[name]) for name in ("train_images", "test_images"))
    labels, test_labels = (extract_labels(paths[name], one_hot) for name in ("train_labels", "test_labels"))
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"Validation size should be between 0 and {len(images)}. Received: {validation_size}.")
    parts = [
        (images[validation_size:], labels[validation_size:]),
        (images[:validation_size], labels[:validation_size]),
        (test_images, test_labels),
    ]
    return Datasets(*(DataSet(*part, reshape=reshape, **options) for part in parts))


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """``read_data_sets`` with its defaults."""
    return read_data_sets(train_dir)


def extract_images(f: Any) -> Any:
    """The images of a file, (examples, rows, columns, 1), unsigned bytes.

    Args:
        f: a path, or a file open for reading bytes.
    """
    shape, values = _read(f, _IMAGES)
    return values.reshape(*shape, 1)


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = _CLASSES) -> Any:
    """The labels of a file, (examples,), unsigned bytes; one-hot (examples, classes), float64.

    Args:
        f: a path, or a file open for reading bytes.
        one_hot: Returns labels as vectors.
        num_classes: Length of these vectors.
    """
    _, labels = _read(f, _LABELS)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense: Any, num_classes: int) -> Any:
    """Labels as vectors, float64.

    Example:
        >>> dense_to_one_hot(np.array([1, 0]), 2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.eye(num_classes)[labels_dense]


def _find(folder: Path) -> dict[str, Path]:
    found, missing = {}, []
    for name, file in _FILES.items():
        path = next((path for path in (folder / f"{file}.gz", folder / file) if path.is_file()), None)
        if path is None:
            missing.append(file)
        else:
            found[name] = path
    if missing:
        raise BridgeError(
            "The MNIST files are not there, and nothing is downloaded.",
            expected=", ".join(f"{file}.gz" for file in _FILES.values()) + f" in {folder}, gzipped or not",
            received=f"no {', no '.join(missing)}",
            fix=f"Download the four files from a copy of MNIST that you trust, and put them into {folder.resolve()}.",
        )
    return found


def _read(file: Any, magic: int) -> tuple[tuple[int, ...], Any]:
    """Shape and values: four bytes say the kind, four each the dimensions, most significant first; then the values."""
    raw = file.read() if hasattr(file, "read") else Path(file).read_bytes()
    name = getattr(file, "name", file)
    try:
        raw = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    except (EOFError, OSError) as error:
        raise _damaged(name, magic, str(error)) from None
    said = int.from_bytes(raw[:4], "big")
    dimensions = magic & 0xFF
    values = np.frombuffer(raw, np.uint8, offset=min(4 + 4 * dimensions, len(raw)))
    shape = tuple(int.from_bytes(raw[4 * index : 4 * index + 4], "big") for index in range(1, dimensions + 1))
    size = int(np.prod(shape, dtype=np.int64))
    if said != magic or len(values) < size:
        raise _damaged(name, magic, f"one that starts with {said} and has {len(values)} values after {shape}")
    return shape, values[:size]


def _damaged(name: Any, magic: int, received: str) -> BridgeError:
    expected = f"a file that starts with {magic}, then its dimensions, then as many bytes"
    return BridgeError(
        f"{name} is not the MNIST file that its name says.", expected=expected, received=received, fix="Download it again."
    )
