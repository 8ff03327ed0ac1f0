"""The symbolic inputs of a model, one for each feature that its columns read."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.canned.configured import Configured

Tensor = Any
Column = Any
Spec = Any  # tf.TensorSpec or tf.SparseTensorSpec
T = TypeVar("T")


class Inputs:
    """A ``tf_keras.Input`` for each feature, and the layers that several columns share.

    A feature of fixed length (of numeric columns) is dense, ``[batch, *shape]``. All others (categories, their weights, sequences)
    are sparse tensors ``[batch, None]``, as ``tf.io.parse_example`` returns them. Instead of a sparse tensor, ``call``, ``fit`` and
    ``evaluate`` also accept a dense one. They drop its missing values as TensorFlow 1 does: ``""``, -1, and 0.0 for weights. A
    SavedModel's signatures accept only the declared kind.

    Args:
        columns: ``tf.feature_column`` objects of either generation.
        specs: Key -> ``tf.TensorSpec`` or ``tf.SparseTensorSpec``, batch dimension included, for features that the columns do not
            declare or that need another kind. A ``crossed_column`` reads strings by default.

    Attributes:
        keras: Key -> ``tf_keras.Input``, for ``tf_keras.Model(inputs=...)``.

    Raises:
        BridgeError: if two columns declare one feature differently and ``specs`` does not contain it.

    Example:
        >>> import tensorflow as tf
        >>> price = tf.feature_column.numeric_column("price", shape=(2,))
        >>> colour = tf.feature_column.categorical_column_with_hash_bucket("colour", 10)
        >>> inputs = Inputs([price, tf.feature_column.indicator_column(colour)])
        >>> [(key, tuple(value.shape), value.dtype.name) for key, value in inputs.keras.items()]
        [('colour', (None, None), 'string'), ('price', (None, 2), 'float32')]
    """

    def __init__(self, columns: Iterable[Column], specs: Mapping[str, Spec] | None = None) -> None:
        declared = _declare_features(list(columns), dict(specs or {}))
        self._names: set[str] = set()
        self._made: dict[str, tuple[object, Any]] = {}
        self._reported: set[int] = set()
        self.keras = {key: self._input(key, declared[key]) for key in sorted(declared)}

    def __getitem__(self, key: str) -> Tensor:
        """Returns the input of a feature.

        Raises:
            BridgeError: if none of the columns of these inputs reads the feature.
        """
        if key not in self.keras:
            raise BridgeError(
                f"There is no input for the feature {key!r}.",
                expected=f"one of {sorted(self.keras)}",
                fix="Pass all columns of the model to Inputs.",
            )
        return self.keras[key]

    def without_missing(self, key: str, missing: object = None) -> Tensor:
        """Returns a feature's values without the missing ones, sparse ``[batch, None]``."""
        return self.once(
            f"present {key} {missing}", lambda: DropMissing(missing=missing, name=self.name(key, "present"))(self[key])
        )

    def once(self, what: object, make: Callable[[], T]) -> T:
        """Returns the result of the first call for ``what``, so that a column that occurs twice shares its layers."""
        key = repr(what)  # not the column: named tuples of different classes may be equal
        if key not in self._made:
            self._made[key] = (what, make())  # kept alive because a repr may contain an address
        made: T = self._made[key][1]
        return made

    def is_new(self, variable: Any) -> bool:
        """Returns True at the first call for a variable, which must live as long as the model."""
        known = id(variable) in self._reported
        self._reported.add(id(variable))
        return not known

    def name(self, *parts: str) -> str:
        """Returns a layer name that is unique in the model."""
        wanted = name = sanitize("_".join(parts))
        count = 0
        while name in self._names:
            count += 1
            name = f"{wanted}_{count}"
        self._names.add(name)
        return name

    def _input(self, key: str, spec: Spec) -> Tensor:
        sparse = isinstance(spec, tf.SparseTensorSpec)
        return tf_keras.Input(spec.shape[1:], dtype=spec.dtype, sparse=sparse, name=self.name(key))


def select_features(features: Mapping[str, Tensor], inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the features that a model has inputs for.

    Raises:
        BridgeError: if a feature is missing, or contains fractions in place of ids. Keras would round them down silently.

    Example:
        >>> list(select_features({"size": tf.constant([1.0]), "id": tf.constant([1])}, {"size": tf_keras.Input([1])}))
        ['size']
    """
    for key, wanted in inputs.items():
        received = features[key].dtype if key in features else None
        if received is None or (received.is_floating and not wanted.dtype.is_floating):
            raise BridgeError(
                f"The feature {key!r} is missing or has an unsupported type.",
                expected=f"a tensor of {wanted.dtype.name}",
                received=received.name if received else f"only {', '.join(map(repr, features))}",
                fix=f"Return the feature as {wanted.dtype.name} from the input_fn.",
            )
    return {key: features[key] for key in inputs}


def sanitize(name: str) -> str:
    """Returns a column's name as a variable scope, with ``_`` for each character that a scope cannot contain."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name)


def _declare_features(columns: list[Column], specs: dict[str, Spec]) -> dict[str, Spec]:
    found: dict[str, Spec] = dict(specs)
    crossed = {key for column in columns for key in _crossed_keys(column)}
    for column in columns:
        own = set(_crossed_keys(column))
        for key, feature in _example_spec(column).items():
            spec = _as_tensor_spec(feature)
            if key in specs or key in own:
                continue
            if found.setdefault(key, spec) != spec:
                raise BridgeError(
                    f"Two columns declare the feature {key!r} differently.",
                    expected=f"{found[key]}",
                    received=f"{spec}",
                    fix=f"Declare the feature with Inputs(columns, specs={{{key!r}: tf.TensorSpec(...)}}).",
                )
    return {key: tf.SparseTensorSpec([None, None], tf.string) for key in crossed} | found


def _example_spec(column: Column) -> dict[str, Any]:
    for name in ("parse_example_spec", "_parse_example_spec"):  # TensorFlow 1's first generation has the second
        if hasattr(column, name):
            return dict(getattr(column, name))
    raise NotSupportedError(
        f"{type(column).__name__} is not a feature column.", expected="a column from tf.feature_column", received=repr(column)
    )


def _as_tensor_spec(feature: Any) -> Spec:
    if isinstance(feature, tf.io.FixedLenFeature):
        return tf.TensorSpec([None, *feature.shape], feature.dtype)
    return tf.SparseTensorSpec([None, None], feature.dtype)


def _crossed_keys(column: Column) -> Iterator[str]:
    """Yields the features that a crossed column reads directly, without a column of their own."""
    if hasattr(column, "categorical_column"):
        yield from _crossed_keys(column.categorical_column)
    for key in getattr(column, "keys", ()):
        if isinstance(key, str):
            yield key
        else:
            yield from _crossed_keys(key)


class DropMissing(Configured, tf_keras.layers.Layer):
    """Drops missing values from a dense tensor and returns a sparse one; sparse tensors pass unchanged.

    Args:
        missing: Value that marks a missing entry; None for TensorFlow 1's convention: ``""`` for strings, -1 for integers.

    Example:
        >>> DropMissing()(tf.constant([["a", ""], ["", "b"]])).indices.numpy().tolist()
        [[0, 0], [1, 1]]
    """

    missing: object = None

    def call(self, values: Tensor) -> Tensor:
        """Maps ``[batch]`` or ``[batch, n]`` to sparse ``[batch, n]``; n is 1 for a vector."""
        values = at_least_2d(values)
        if isinstance(values, tf.SparseTensor):
            return values
        missing = self.missing if self.missing is not None else "" if values.dtype == tf.string else -1
        indices = tf.where(tf.not_equal(values, tf.cast(missing, values.dtype)))
        return tf.SparseTensor(indices, tf.gather_nd(values, indices), tf.shape(values, tf.int64))


def at_least_2d(values: Tensor) -> Tensor:
    """Returns a vector as ``[batch, 1]``; other tensors pass unchanged."""
    if values.shape.rank != 1:
        return values
    return tf.sparse.expand_dims(values, 1) if isinstance(values, tf.SparseTensor) else values[:, tf.newaxis]
