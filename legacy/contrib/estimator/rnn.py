"""Estimators of recurrent networks over sequence columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.feature_column.sequence_feature_column import concatenate_context_input
from tensorflow_estimator.python.estimator.canned import head as canned
from tensorflow_estimator.python.estimator.canned import optimizers

from estimator_bridge.legacy.contrib.estimator.extenders import clip_gradients_by_norm
from estimator_bridge.legacy.contrib.feature_column import sequence_input_layer

_LEARNING_RATE = 0.05
_CLIP_NORM = 5.0
_MIN_SLICE_BYTES = 64 << 20
_BASIC = "basic_rnn"  # unless told otherwise
_CELLS = {"basic_rnn": tf.nn.rnn_cell.BasicRNNCell, "lstm": tf.nn.rnn_cell.BasicLSTMCell, "gru": tf.nn.rnn_cell.GRUCell}

CellFn = Callable[[str], Any]


class RNNEstimator(tf.estimator.Estimator):
    """An Estimator of a recurrent network and a head.

    Args:
        head: of ``tf.contrib.estimator``.
        sequence_feature_columns: of the sequences.
        context_feature_columns: of what holds for all steps of a sequence.
        num_units: of each layer's cell.
        cell_type: basic_rnn (unless given), lstm, gru, or a class of cells.
        rnn_cell_fn: makes the cell for a mode, instead of ``num_units`` and ``cell_type``.
        return_sequences: must be False; a head of sequences was never public in TensorFlow 1.15.
        model_dir: where the model is saved.
        optimizer: a name, with learning rate 0.05 and gradients clipped to norm 5, or an optimizer.
        input_layer_partitioner: of the embeddings.
        config: a RunConfig.

    Raises:
        ValueError: ``rnn_cell_fn`` together with ``num_units`` or ``cell_type``.
    """

    def __init__(
        self,
        head: Any,
        sequence_feature_columns: Iterable[Any],
        context_feature_columns: Iterable[Any] | None = None,
        num_units: Sequence[int] | None = None,
        cell_type: Any = None,
        rnn_cell_fn: CellFn | None = None,
        return_sequences: bool = False,
        model_dir: str | None = None,
        optimizer: Any = "Adagrad",
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        if return_sequences:
            raise ValueError("Provided head must be a `_SequentialHead` object when `return_sequences` is set to True.")
        if rnn_cell_fn and (num_units or cell_type is not None):
            raise ValueError("num_units and cell_type must not be specified when using rnn_cell_fn")
        cell_fn = rnn_cell_fn or _cell_fn(num_units or (), cell_type or _BASIC)
        columns = tuple(sequence_feature_columns or ()), tuple(context_feature_columns or ())

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            replicas = config.num_ps_replicas if config else 0
            with tf.variable_scope("rnn", partitioner=tf.min_max_variable_partitioner(replicas)):
                partitioner = input_layer_partitioner or tf.min_max_variable_partitioner(
                    replicas, min_slice_size=_MIN_SLICE_BYTES
                )
                minimizer = _optimizer(optimizer)
                logits = _logits(features, cell_fn(mode), head.logits_dimension, columns, partitioner)
                return head.create_estimator_spec(
                    features=features,
                    mode=mode,
                    labels=labels,
                    train_op_fn=lambda loss: minimizer.minimize(loss, global_step=tf.train.get_global_step()),
                    logits=logits,
                )

        super().__init__(model_fn, model_dir, config)


class RNNClassifier(RNNEstimator):
    """A recurrent network's Estimator that tells classes apart.

    Args:
        n_classes: how many.
        weight_column: a feature column, or the feature's name.
        label_vocabulary: the classes' names, where labels are strings.
        loss_reduction: how the examples' losses become one.
    """

    def __init__(
        self,
        sequence_feature_columns: Iterable[Any],
        context_feature_columns: Iterable[Any] | None = None,
        num_units: Sequence[int] | None = None,
        cell_type: Any = None,
        rnn_cell_fn: CellFn | None = None,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        loss_reduction: str = tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        super().__init__(
            canned._binary_logistic_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            sequence_feature_columns,
            context_feature_columns,
            num_units,
            cell_type,
            rnn_cell_fn,
            model_dir=model_dir,
            optimizer=optimizer,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
        )


def _cell_fn(num_units: Sequence[int], cell_type: Any) -> CellFn:
    cell_class = _CELLS.get(cell_type, cell_type)
    if not (isinstance(cell_class, type) and issubclass(cell_class, tf.nn.rnn_cell.RNNCell)):
        raise ValueError(f"Supported cell types are {list(_CELLS)}; got {cell_type}")  # noqa: TRY004 -- as TensorFlow 1 has it

    def cell_fn(mode: str) -> Any:
        cells = [cell_class(num_units=units) for units in num_units]
        return cells[0] if len(cells) == 1 else tf.nn.rnn_cell.MultiRNNCell(cells)

    return cell_fn


def _optimizer(given: Any) -> Any:
    if isinstance(given, tf.train.Optimizer):
        return given
    return clip_gradients_by_norm(optimizers.get_optimizer_instance(given, learning_rate=_LEARNING_RATE), _CLIP_NORM)


def _logits(features: Any, cell: Any, units: int, columns: tuple[Any, Any], partitioner: Any) -> Any:
    sequence_columns, context_columns = columns
    with tf.variable_scope("sequence_input_layer", values=tuple(features.values()), partitioner=partitioner):
        inputs, lengths = sequence_input_layer(features, sequence_columns)
        tf.summary.histogram("sequence_length", lengths)
        if context_columns:
            inputs = concatenate_context_input(tf.feature_column.input_layer(features, context_columns), inputs)
    outputs, _ = tf.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32)
    with tf.variable_scope("logits"):
        return tf.layers.dense(_last_of_each(outputs, lengths), units, kernel_initializer=tf.glorot_uniform_initializer())


def _last_of_each(outputs: Any, lengths: Any) -> Any:
    """Each sequence's output at its last step, of shape [batch_size, units]."""
    with tf.name_scope("select_last_activations", values=[outputs, lengths]):
        batch_size, padded_length, units = tf.unstack(tf.shape(outputs))
        rows = tf.cast(tf.range(batch_size) * padded_length, tf.int64) + lengths - 1
        last = tf.gather(tf.reshape(outputs, [batch_size * padded_length, units]), rows)
        last.set_shape([outputs.shape[0], outputs.shape[2]])
        return last
