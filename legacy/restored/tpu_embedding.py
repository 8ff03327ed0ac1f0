"""``tensorflow.python.tpu.tpu_embedding``: embedding tables in a TPU's own memory.

What was removed: the module, and AdagradParameters, AdamParameters, FtrlParameters and StochasticGradientDescentParameters of
``tf.compat.v1.tpu.experimental``, with TensorFlow 2.16 (March 2024).

Needed by: importing TPUEstimator; a TPUEstimator with an ``embedding_config_spec``, on CPUs too. The descriptions (tables,
features, optimizer parameters) are complete and need no TPU; only the engine, TPUEmbedding, is refused.

Optimizers have parameters and slots: AdagradParameters, AdamParameters and eight more, and the names and variables of their slots. Every
optimizer has the parameters that all have in common (``_COMMON``) and its own, in the order of positional arguments.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tensorflow.core.protobuf.tpu import tpu_embedding_configuration_pb2
from tensorflow.python.ops import init_ops

from estimator_bridge.legacy.restored.tensorflow_modules import api_version, load_public_modules, place
from estimator_bridge.legacy.restored.tpu_absence import NeedsTpuError

TRAINING = tpu_embedding_configuration_pb2.TPUEmbeddingConfiguration.TRAINING
INFERENCE = tpu_embedding_configuration_pb2.TPUEmbeddingConfiguration.INFERENCE

_Cores = Iterable[Mapping[str, Any]]  # tensors by the name of their feature, for each core
_COMBINERS = ("mean", "sum", "sqrtn", None)
_PUBLIC = ("AdagradParameters", "AdamParameters", "FtrlParameters", "StochasticGradientDescentParameters")

_REQUIRED = object()
_COMMON: dict[str, Any] = {
    "use_gradient_accumulation": True,
    "clip_weight_min": None,
    "clip_weight_max": None,
    "weight_decay_factor": None,
    "multiply_weight_decay_factor_by_learning_rate": None,
}
_CLIPPING: dict[str, Any] = {"clip_gradient_min": None, "clip_gradient_max": None}
_LAST = _COMMON | _CLIPPING
_RATE = {"learning_rate": _REQUIRED}
_L1_L2 = {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0}
_BETAS = {"beta1": 0.9, "beta2": 0.999}
_MOMENTUM = {"momentum": _REQUIRED, "use_nesterov": False}
_FTRL = {"multiply_linear_by_learning_rate": False, "beta": 0, "allow_zero_accumulator": False}  # between the common parameters

_DEFAULTS: dict[str, dict[str, Any]] = {
    "Adagrad": {**_RATE, "initial_accumulator": 0.1, **_LAST},
    "AdagradMomentum": {**_RATE, **_MOMENTUM, "exponent": 2, "beta2": 1, "epsilon": 1e-10, **_LAST},
    "Adam": {**_RATE, **_BETAS, "epsilon": 1e-8, "lazy_adam": True, "sum_inside_sqrt": True, **_LAST},
    "FrequencyEstimator": dict.fromkeys(("tau", "max_delta", "outlier_threshold", "weight_exponent"), _REQUIRED),
    "Ftrl": {**_RATE, "learning_rate_power": -0.5, "initial_accumulator_value": 0.1, **_L1_L2, **_COMMON, **_FTRL, **_CLIPPING},
    "Momentum": {**_RATE, **_MOMENTUM, **_LAST},
    "ProximalAdagrad": {**_RATE, "initial_accumulator": 0.1, **_L1_L2, **_LAST},
    "ProximalYogi": {"learning_rate": 0.01, **_BETAS, "epsilon": 1e-3, **_L1_L2, "initial_accumulator_value": 1e-6, **_LAST},
    "RMSProp": {**_RATE, "rho": _REQUIRED, "momentum": _REQUIRED, "epsilon": _REQUIRED, **_LAST},
    "StochasticGradientDescent": {**_RATE, **_LAST},
}

_RULES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("learning_rate_power",), lambda value: value <= 0, "0 or less"),
    (tuple(_BETAS), lambda value: 0 <= value < 1, "at least 0 and less than 1"),
    (("epsilon", "exponent", "initial_accumulator"), lambda value: value > 0, "greater than 0"),
    (("initial_accumulator_value", *_L1_L2), lambda value: value >= 0, "0 or greater"),
)
# Parameters that TensorFlow does not check.
_UNCHECKED = {
    ("AdagradMomentumParameters", "beta2"),
    ("ProximalYogiParameters", "initial_accumulator_value"),
    ("RMSPropParameters", "epsilon"),
}

# The order in which each optimizer's slots are passed.
_SLOTS = {
    "Adagrad": ("accumulator",),
    "AdagradMomentum": ("accumulator", "momenta"),
    "Adam": ("m", "v"),
    "FrequencyEstimator": ("last_hit_step",),
    "Ftrl": ("accumulator", "linear"),
    "Momentum": ("momenta",),
    "ProximalAdagrad": ("accumulator",),
    "ProximalYogi": ("v", "m"),
    "RMSProp": ("ms", "mom"),
}

# A class that does not take one of these parameters has this value.
_FIXED: dict[str, Any] = {"learning_rate": 1.0, "initial_linear_value": 0.0, **_LAST}


class OptimizationParameters:
    """The base class of all parameters, which checks their values.

    Raises:
        ValueError: A value is out of its range, or gradients are clipped without being accumulated.

    Example:
        >>> PARAMETERS["AdamParameters"](0.1, beta1=1.0)
        Traceback (most recent call last):
        ValueError: AdamParameters: `beta1` must be at least 0 and less than 1. Received: 1.0.
    """

    use_gradient_accumulation: Any
    clip_gradient_min: Any
    clip_gradient_max: Any

    def __post_init__(self) -> None:
        kind = type(self).__name__
        clips = (self.clip_gradient_min, self.clip_gradient_max)
        if not self.use_gradient_accumulation and clips != (None, None):
            raise ValueError(f"{kind}: clipping gradients needs `use_gradient_accumulation`. Received: {clips}.")
        if not self.use_gradient_accumulation and getattr(self, "lazy_adam", True) is False:
            raise ValueError(f"{kind}: `lazy_adam` may be False only with `use_gradient_accumulation`.")
        for names, holds, range_ in _RULES:
            for name in names:
                if hasattr(self, name) and (kind, name) not in _UNCHECKED and not holds(getattr(self, name)):
                    raise ValueError(f"{kind}: `{name}` must be {range_}. Received: {getattr(self, name)}.")


def _build(optimizer: str, defaults: Mapping[str, Any]) -> type:
    specs = [(field, Any) if default is _REQUIRED else (field, Any, default) for field, default in defaults.items()]
    fixed = {field: value for field, value in _FIXED.items() if field not in defaults}
    made = dataclasses.make_dataclass(
        f"{optimizer}Parameters", specs, bases=(OptimizationParameters,), namespace=fixed, eq=False
    )
    made.__module__, made.__doc__ = __name__, f"Parameters of an embedding table's optimizer: {optimizer}."
    return made


def _make_tuple(name: str, fields: tuple[str, ...]) -> type:
    return namedtuple(name, fields, module=__name__)


PARAMETERS = {f"{optimizer}Parameters": _build(optimizer, defaults) for optimizer, defaults in _DEFAULTS.items()}
# TensorFlow's name is FtrlSlotVariable, in the singular.
SLOTS = {
    name: _make_tuple(name, fields)
    for optimizer, fields in _SLOTS.items()
    for name in (f"{optimizer}SlotVariableNames", f"{optimizer}SlotVariable{'' if optimizer == 'Ftrl' else 's'}")
}
# Two families of small classes under the names they had: AdagradParameters and so on, AdagradSlotVariableNames and so on.
globals().update(PARAMETERS | SLOTS)


def restore() -> None:
    """Puts the module and the four public classes back, unless this TensorFlow has them.

    Example:
        >>> restore()
        >>> import tensorflow as tf
        >>> tf.compat.v1.tpu.experimental.AdagradParameters(0.1).initial_accumulator
        0.1
    """
    place("tensorflow.python.tpu.tpu_embedding", sys.modules[__name__])
    for name, module in load_public_modules().items():
        for public in _PUBLIC if api_version(name) == 1 else ():
            if not hasattr(module.tpu.experimental, public):
                setattr(module.tpu.experimental, public, PARAMETERS[public])


class TPUEmbedding:
    """Stands in for the engine.

    Raises:
        NeedsTpuError: An object is constructed.

    Example:
        >>> TPUEmbedding({}, {}, 8, "training")
        Traceback (most recent call last):
        estimator_bridge.legacy.restored.tpu_absence.NeedsTpuError: tpu_embedding.TPUEmbedding needs a TPU, ...
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NeedsTpuError(
            "tpu_embedding.TPUEmbedding",
            fix="Set use_tpu=False to keep the tables in ordinary variables, or move to tf.tpu.experimental.embedding.",
        )


class _Table(NamedTuple):
    vocabulary_size: int
    dimension: int
    initializer: Callable[..., Any] | None = None
    combiner: str | None = "mean"
    hot_id_replication: bool = False
    learning_rate: float | None = None
    learning_rate_fn: Any = None
    optimization_parameters: OptimizationParameters | None = None


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

    def __new__(cls, *args: Any, **kwargs: Any) -> TableConfig:  # noqa: D102
        table = super().__new__(cls, *args, **kwargs)
        for name in ("vocabulary_size", "dimension"):
            _require(_is_count(getattr(table, name), least=1), f"`{name}` must be a positive int.", getattr(table, name))
        initializer, rates = table.initializer, (table.learning_rate, table.learning_rate_fn)
        _require(initializer is None or callable(initializer), "`initializer` must be callable.", initializer)
        _require(table.combiner in _COMBINERS, f"`combiner` must be one of {_COMBINERS}.", table.combiner)
        _require(None in rates, "At most one of `learning_rate` and `learning_rate_fn` can be set.", rates)
        _require(
            isinstance(table.optimization_parameters, (OptimizationParameters, type(None))),
            "`optimization_parameters` must be one of tpu_embedding's, such as AdagradParameters.",
            table.optimization_parameters,
        )
        if initializer is None:
            initializer = init_ops.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(table.dimension))
        return table._replace(initializer=initializer)


class _Feature(NamedTuple):
    table_id: str
    max_sequence_length: int = 0
    weight_key: str | None = None


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

    def __new__(cls, *args: Any, **kwargs: Any) -> FeatureConfig:  # noqa: D102
        feature = super().__new__(cls, *args, **kwargs)
        length = feature.max_sequence_length
        _require(_is_count(length, least=0), "`max_sequence_length` must be zero or a positive int.", length)
        return feature


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


class EnqueueData(NamedTuple):
    """The ids of one feature for one core, from a SparseTensor.

    Args:
        embedding_indices: Vector of ids.
        sample_indices: Matrix with the example of each id; None if each id is an example.
        aggregation_weights: Weight of each id; None for 1.

    Example:
        >>> EnqueueData([3, 5]).sample_indices is None
        True
    """

    embedding_indices: Any
    sample_indices: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_sparse_tensor(sp_tensor: Any, weights: Any = None) -> EnqueueData:
        """Takes ids and samples from a SparseTensor, weights from another one.

        Args:
            sp_tensor: SparseTensor of ids.
            weights: SparseTensor of the same shape, or None.

        Returns:
            The data.

        Example:
            >>> import tensorflow as tf
            >>> EnqueueData.from_sparse_tensor(tf.sparse.from_dense([[0, 7]])).embedding_indices.numpy().tolist()
            [7]
        """
        return EnqueueData(sp_tensor.values, sp_tensor.indices, _values(weights))


class RaggedEnqueueData(NamedTuple):
    """The ids of one feature for one core, from a RaggedTensor.

    Args:
        embedding_indices: Vector of ids.
        row_splits: Positions where each example's ids begin and end.
        aggregation_weights: Weight of each id; None for 1.

    Example:
        >>> RaggedEnqueueData([3, 5], [0, 1, 2]).aggregation_weights is None
        True
    """

    embedding_indices: Any
    row_splits: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_ragged_tensor(rg_tensor: Any, weights: Any = None) -> RaggedEnqueueData:
        """Takes ids and rows from a RaggedTensor, weights from another one.

        Args:
            rg_tensor: RaggedTensor of ids.
            weights: RaggedTensor with the same rows, or None.

        Returns:
            The data.

        Example:
            >>> import tensorflow as tf
            >>> RaggedEnqueueData.from_ragged_tensor(tf.ragged.constant([[1], [2, 3]])).row_splits.numpy().tolist()
            [0, 1, 3]
        """
        return RaggedEnqueueData(rg_tensor.values, rg_tensor.row_splits, _values(weights))


def get_enqueue_datas_list_from_sparse_tensors_list(sp_tensors_list: _Cores) -> list[OrderedDict[str, EnqueueData]]:
    """Converts the features of every core.

    Args:
        sp_tensors_list: SparseTensors by feature name, for each core.

    Returns:
        For each core, EnqueueData by feature name, in the same order.

    Example:
        >>> get_enqueue_datas_list_from_sparse_tensors_list([{}])
        [OrderedDict()]
    """
    return _convert(sp_tensors_list, EnqueueData.from_sparse_tensor)


def get_enqueue_datas_list_from_ragged_tensors_list(rg_tensors_list: _Cores) -> list[OrderedDict[str, RaggedEnqueueData]]:
    """Converts the features of every core.

    Args:
        rg_tensors_list: RaggedTensors by feature name, for each core.

    Returns:
        For each core, RaggedEnqueueData by feature name, in the same order.

    Example:
        >>> get_enqueue_datas_list_from_ragged_tensors_list([{}])
        [OrderedDict()]
    """
    return _convert(rg_tensors_list, RaggedEnqueueData.from_ragged_tensor)


def _convert(cores: _Cores, convert: Callable[[Any], Any]) -> list[OrderedDict[str, Any]]:
    return [OrderedDict((name, convert(tensor)) for name, tensor in features.items()) for features in cores]


def _values(weights: Any) -> Any:
    return None if weights is None else weights.values
