"""``tensorflow.python.tpu.tpu_embedding``: embedding tables in a TPU's own memory.

What was removed: the module, and AdagradParameters, AdamParameters, FtrlParameters and StochasticGradientDescentParameters of
``tf.compat.v1.tpu.experimental``, with TensorFlow 2.16 (March 2024).

Needed by: importing TPUEstimator; a TPUEstimator with an ``embedding_config_spec``, on CPUs too. The descriptions (tables,
features, optimizer parameters) are complete and need no TPU; only the engine, TPUEmbedding, is refused.
"""

import sys

from tensorflow.core.protobuf.tpu import tpu_embedding_configuration_pb2

from estimator_bridge.legacy.restored.placement import place
from estimator_bridge.legacy.restored.public_modules import load_public_modules
from estimator_bridge.legacy.restored.tpu_embedding.engine import TPUEmbedding
from estimator_bridge.legacy.restored.tpu_embedding.enqueue import (
    EnqueueData,
    RaggedEnqueueData,
    get_enqueue_datas_list_from_ragged_tensors_list,
    get_enqueue_datas_list_from_sparse_tensors_list,
)
from estimator_bridge.legacy.restored.tpu_embedding.parameters import PARAMETERS
from estimator_bridge.legacy.restored.tpu_embedding.slots import SLOTS
from estimator_bridge.legacy.restored.tpu_embedding.tables import DeviceConfig, FeatureConfig, TableConfig, VariablesAndOps

TRAINING = tpu_embedding_configuration_pb2.TPUEmbeddingConfiguration.TRAINING
INFERENCE = tpu_embedding_configuration_pb2.TPUEmbeddingConfiguration.INFERENCE

# Two families of small classes under the names they had: AdagradParameters and so on, AdagradSlotVariableNames and so on.
globals().update(PARAMETERS)
globals().update(SLOTS)

__all__ = [
    "INFERENCE",
    "TRAINING",
    "DeviceConfig",
    "EnqueueData",
    "FeatureConfig",
    "RaggedEnqueueData",
    "TPUEmbedding",
    "TableConfig",
    "VariablesAndOps",
    "get_enqueue_datas_list_from_ragged_tensors_list",
    "get_enqueue_datas_list_from_sparse_tensors_list",
    "restore",
]

_PUBLIC = ("AdagradParameters", "AdamParameters", "FtrlParameters", "StochasticGradientDescentParameters")


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
        experimental = getattr(getattr(module, "tpu", None), "experimental", None)
        if not name.endswith(".v1") or experimental is None:
            continue
        for public in _PUBLIC:
            if not hasattr(experimental, public):
                setattr(experimental, public, PARAMETERS[public])
