"""Functions of ``tf.contrib`` in model functions that stay graphs: the new script defines some, and the package tf_slim has others."""

from __future__ import annotations

import functools
from pathlib import Path

_TABLE = Path(__file__).with_name("tf_slim_names.txt")
SLIM = "tf_slim_of_today"
"""Function of the new script that returns the package with the names of TensorFlow that it asks for."""
UPDATES = {"layers.optimize_loss": "optimize_loss", "training.create_train_op": "create_train_op", "slim.learning.create_train_op": "create_train_op"}  # fmt: skip
"""Functions below ``tf.contrib`` that train, and those of the new script that do the same."""
_DECODERS = (
    "AttentionWrapper", "AttentionWrapperState", "BahdanauAttention", "BasicDecoder", "BasicDecoderOutput", "BeamSearchDecoder",
    "BeamSearchDecoderOutput", "BeamSearchDecoderState", "CustomHelper", "FinalBeamSearchDecoderOutput", "GreedyEmbeddingHelper",
    "LuongAttention", "SampleEmbeddingHelper", "ScheduledEmbeddingTrainingHelper", "TrainingHelper", "dynamic_decode", "sequence_loss",
    "tile_batch",
)  # fmt: skip
DERIVED = frozenset(
    {"BasicDecoder", "DecoderOfSteps", "GreedyEmbeddingHelper", "HelperOfDecoder", "LayerRNNCell", "TrainingHelper"}
)
"""Classes of the new script whose attributes have the names that contrib's classes give them, so that other classes are derived from them."""
_CELLS = (
    "GRUBlockCellV2",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "LayerRNNCell",
    "TimeReversedFusedRNN",
    "LayerNormBasicLSTMCell",
    "OutputProjectionWrapper",
    "transpose_batch_time",
)
_ASSIGNING = ("assign_from_checkpoint_fn", "assign_from_values_fn")
_OWN = {
    **{f"{module}.{name}": name for module in ("framework", "slim") for name in _ASSIGNING},
    **UPDATES,
    "layers.embed_sequence": "embed_sequence",
    **{f"seq2seq.{name}": name for name in _DECODERS},
    "seq2seq.Helper": "HelperOfDecoder",
    "tensorflow.train.ExponentialMovingAverage": "MovingAverageOfGraph",
    "seq2seq.Decoder": "DecoderOfSteps",
    **{f"rnn.{name}": name for name in _CELLS},
}
OWN = frozenset(_OWN.values())
"""Functions and classes that the new script defines."""


def in_graphs(name: str) -> str:
    """Returns the name in a new script of a function of contrib; empty if there is none that computes the same in a graph.

    Example:
        >>> in_graphs("tensorflow.contrib.layers.separable_conv2d"), in_graphs("tensorflow.contrib.slim.arg_scope")
        ('tf_slim.separable_conv2d', 'tf_slim.arg_scope')
        >>> in_graphs("tensorflow.contrib.seq2seq.tile_batch"), in_graphs("tensorflow.contrib.seq2seq.safe_embedding_lookup")
        ('tile_batch', '')
        >>> in_graphs("tensorflow.contrib.losses.metric_learning.triplet_semihard_loss")
        'tf_slim.losses.metric_learning.triplet_semihard_loss'
    """
    of_class = name.removesuffix(".__init__")
    found = _names().get(of_class.removeprefix("tensorflow.contrib."), "")
    return found and found + name[len(of_class) :]


@functools.cache
def _names() -> dict[str, str]:
    rows = (line.partition(": ") for line in _TABLE.read_text().splitlines())
    names = {module: names.split() for module, _, names in rows}
    shared = {"layers", "framework"}  # contrib.slim has their names, too
    found = {f"{owner}.{name}": f"tf_slim.{name}" for module in shared for owner in (module, "slim") for name in names[module]}
    for module in names.keys() - shared:
        found |= {f"{module}.{name}": f"tf_slim.{module.removeprefix('slim.')}.{name}" for name in names[module]}
        found |= {f"slim.{module}.{name}": f"tf_slim.{module}.{name}" for name in names[module] if "." not in module}
    return {**found, **_OWN}
