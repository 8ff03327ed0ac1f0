"""The symbolic inputs of a model, one for each feature that its columns read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.canned.columns.missing import DropMissing

Tensor = Any
Column = Any
Spec = Any  # tf.TensorSpec or tf.SparseTensorSpec
T = TypeVar("T")


class Inputs:
    """A ``tf_keras.Input`` for each feature, and the layers above them that columns share.

    A feature of fixed length (of numeric columns) is dense, ``[batch, *shape]``. Every other one (categories, their weights,
    sequences) is a sparse tensor ``[batch, None]``, as ``tf.io.parse_example`` gives them. Where an input is sparse, a model that is
    called, fitted or evaluated takes a dense tensor as well and drops what is missing, as TensorFlow 1 does: ``""``, -1, and of
    weights 0.0. A SavedModel's signatures take the declared kind only.

    Args:
        columns: ``tf.feature_column`` objects of either generation.
        specs: what features are where columns do not say it or another kind is wanted: key -> ``tf.TensorSpec`` or
            ``tf.SparseTensorSpec``, the batch dimension included. A ``crossed_column`` of keys takes strings unless told.

    Attributes:
        keras: key -> ``tf_keras.Input``: what ``tf_keras.Model(inputs=...)`` takes.

    Raises:
        BridgeError: two columns that declare one feature differently, where ``specs`` does not decide.

    Example:
        >>> import tensorflow as tf
        >>> price = tf.feature_column.numeric_column("price", shape=(2,))
        >>> colour = tf.feature_column.categorical_column_with_hash_bucket("colour", 10)
        >>> inputs = Inputs([price, tf.feature_column.indicator_column(colour)])
        >>> [(key, tuple(value.shape), value.dtype.name) for key, value in inputs.keras.items()]
        [('colour', (None, None), 'string'), ('price', (None, 2), 'float32')]
    """

    def __init__(self, columns: Iterable[Column], specs: Mapping[str, Spec] | None = None) -> None:
        declared = _declared(list(columns), dict(specs or {}))
        self._names: set[str] = set()
        self._made: dict[str, tuple[object, Any]] = {}
        self._reported: set[int] = set()
        self.keras = {key: self._input(key, declared[key]) for key in sorted(declared)}

    def __getitem__(self, key: str) -> Tensor:
        """The input of a feature.

        Raises:
            BridgeError: a feature of no column that these inputs were made for.
        """
        if key not in self.keras:
            raise BridgeError(
                f"No input was made for the feature {key!r}.",
                expected=f"one of {sorted(self.keras)}",
                fix="Give Inputs every column of the model.",
            )
        return self.keras[key]

    def present(self, key: str, missing: object = None) -> Tensor:
        """A feature's values without the missing ones: sparse, ``[batch, None]``."""
        return self.once(f"present {key} {missing}", lambda: DropMissing(missing, name=self.name(key, "present"))(self[key]))

    def once(self, what: object, make: Callable[[], T]) -> T:
        """What ``make`` returned when it was first asked for: columns that occur twice share their layers."""
        key = repr(what)  # not the column itself: named tuples of different classes may be equal
        if key not in self._made:
            self._made[key] = (what, make())  # kept alive: a repr may hold an address
        made: T = self._made[key][1]
        return made

    def is_new(self, variable: Any) -> bool:
        """Whether this is asked for the first time of a variable, which lives as long as the model."""
        known = id(variable) in self._reported
        self._reported.add(id(variable))
        return not known

    def name(self, *parts: str) -> str:
        """A layer's name that no other layer of the model has."""
        wanted = name = sanitized("_".join(parts))
        count = 0
        while name in self._names:
            count += 1
            name = f"{wanted}_{count}"
        self._names.add(name)
        return name

    def _input(self, key: str, spec: Spec) -> Tensor:
        sparse = isinstance(spec, tf.SparseTensorSpec)
        return tf_keras.Input(spec.shape[1:], dtype=spec.dtype, sparse=sparse, name=self.name(key))


def selected(features: Mapping[str, Tensor], inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The features that a model has inputs for.

    Raises:
        BridgeError: one that is missing, or of fractions where ids are read: Keras would cut them off, feature columns refuse them.

    Example:
        >>> list(selected({"size": tf.constant([1.0]), "id": tf.constant([1])}, {"size": tf_keras.Input([1])}))
        ['size']
    """
    for key, wanted in inputs.items():
        received = features[key].dtype if key in features else None
        if received is None or (received.is_floating and not wanted.dtype.is_floating):
            raise BridgeError(
                f"The model reads a feature {key!r} that is not given as it reads it.",
                expected=wanted.dtype.name,
                received=received.name if received else f"only {', '.join(map(repr, features))}",
            )
    return {key: features[key] for key in inputs}


def sanitized(name: str) -> str:
    """A column's name as variable scopes have it: ``_`` for what a scope cannot hold."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name)


def _declared(columns: list[Column], specs: dict[str, Spec]) -> dict[str, Spec]:
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
                    fix=f"Say what the feature is: Inputs(columns, specs={{{key!r}: tf.TensorSpec(...)}}).",
                )
    return {key: tf.SparseTensorSpec([None, None], tf.string) for key in crossed} | found


def _example_spec(column: Column) -> dict[str, Any]:
    for name in ("parse_example_spec", "_parse_example_spec"):  # the second: columns of TensorFlow 1's first generation
        if hasattr(column, name):
            return dict(getattr(column, name))
    raise NotSupportedError(
        f"{type(column).__name__} is not a feature column.", expected="what tf.feature_column makes", received=repr(column)
    )


def _as_tensor_spec(feature: Any) -> Spec:
    if isinstance(feature, tf.io.FixedLenFeature):
        return tf.TensorSpec([None, *feature.shape], feature.dtype)
    return tf.SparseTensorSpec([None, None], feature.dtype)


def _crossed_keys(column: Column) -> Iterator[str]:
    """The features that a cross takes as they are, whatever their dtype."""
    if hasattr(column, "categorical_column"):
        yield from _crossed_keys(column.categorical_column)
    for key in getattr(column, "keys", ()):
        if isinstance(key, str):
            yield key
        else:
            yield from _crossed_keys(key)
