"""Descriptions of embedding tables, of the features looked up in them, and of the devices that hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow.python.ops import init_ops

from estimator_bridge.legacy.restored.tpu_embedding.parameters import OptimizationParameters

_COMBINERS = ("mean", "sum", "sqrtn", None)


class _Table(NamedTuple):
    vocabulary_size: int
    dimension: int
    initializer: Callable[..., Any] | None
    combiner: str | None
    hot_id_replication: bool
    learning_rate: float | None
    learning_rate_fn: Any
    optimization_parameters: OptimizationParameters | None


class TableConfig(_Table):
    """An embedding table.

    Args:
        vocabulary_size: Number of rows.
        dimension: Width of a row.
        initializer: Initializer of the table; by default a truncated normal of standard deviation 1 / sqrt(dimension).
        combiner: Reduction of several rows to one: mean, sum, sqrtn, or None for dense ids.
        hot_id_replication: True if frequent rows are copied.
        learning_rate: Fixed learning rate of this table.
        learning_rate_fn: Learning rate of this table as a function of the global step.
        optimization_parameters: Parameters of this table, in place of the TPUEmbedding's.

    Raises:
        ValueError: A size is not a positive int, the initializer is not callable, the combiner is unknown, both learning rates
            are given, or the parameters are of another kind.

    Example:
        >>> TableConfig(vocabulary_size=10, dimension=2).combiner
        'mean'
    """

    __slots__ = ()

    def __new__(  # noqa: D102
        cls,
        vocabulary_size: int,
        dimension: int,
        initializer: Callable[..., Any] | None = None,
        combiner: str | None = "mean",
        hot_id_replication: bool = False,
        learning_rate: float | None = None,
        learning_rate_fn: Any = None,
        optimization_parameters: OptimizationParameters | None = None,
    ) -> TableConfig:
        for name, size in (("vocabulary_size", vocabulary_size), ("dimension", dimension)):
            _require(_is_count(size, least=1), f"`{name}` must be a positive int.", size)
        _require(initializer is None or callable(initializer), "`initializer` must be callable.", initializer)
        _require(combiner in _COMBINERS, f"`combiner` must be one of {_COMBINERS}.", combiner)
        rates = (learning_rate, learning_rate_fn)
        _require(None in rates, "At most one of `learning_rate` and `learning_rate_fn` can be set.", rates)
        _require(
            optimization_parameters is None or isinstance(optimization_parameters, OptimizationParameters),
            "`optimization_parameters` must be one of tpu_embedding's, such as AdagradParameters.",
            optimization_parameters,
        )
        if initializer is None:
            initializer = init_ops.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))
        return super().__new__(
            cls,
            vocabulary_size,
            dimension,
            initializer,
            combiner,
            hot_id_replication,
            learning_rate,
            learning_rate_fn,
            optimization_parameters,
        )


class _Feature(NamedTuple):
    table_id: str
    max_sequence_length: int
    weight_key: str | None


class FeatureConfig(_Feature):
    """A feature that is looked up in an embedding table.

    Args:
        table_id: Key of the table.
        max_sequence_length: Maximum length of a sequence feature; 0 for others.
        weight_key: Feature with the combiner's weights, or None.

    Raises:
        ValueError: ``max_sequence_length`` is not an int, or negative.

    Example:
        >>> FeatureConfig("words").max_sequence_length
        0
    """

    __slots__ = ()

    def __new__(cls, table_id: str, max_sequence_length: int = 0, weight_key: str | None = None) -> FeatureConfig:  # noqa: D102
        _require(
            _is_count(max_sequence_length, least=0),
            "`max_sequence_length` must be zero or a positive int.",
            max_sequence_length,
        )
        return super().__new__(cls, table_id, max_sequence_length, weight_key)


class DeviceConfig(NamedTuple):
    """The TPU hosts that hold the tables.

    Example:
        >>> DeviceConfig(num_hosts=1, num_cores=8, job_name="worker").num_cores
        8
    """

    num_hosts: int
    num_cores: int
    job_name: str


class VariablesAndOps(NamedTuple):
    """The variables of all tables and the ops that move them to a TPU and back.

    Example:
        >>> VariablesAndOps({}, {}, [], []).load_ops
        []
    """

    embedding_variables_by_table: Any
    slot_variables_by_table: Any
    load_ops: Any
    retrieve_ops: Any


def _is_count(value: object, *, least: int) -> bool:
    return isinstance(value, int) and value >= least


def _require(valid: bool, message: str, received: object) -> None:
    if not valid:
        raise ValueError(f"{message} Received: {received!r}.")
