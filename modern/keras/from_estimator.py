"""An Estimator as one tf_keras.Model, which trains, evaluates and predicts with one set of variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.config import session_config
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.model_graph import EVAL, PREDICT, TRAIN, v1
from estimator_bridge.modern.keras import data as keras_data
from estimator_bridge.modern.keras.graph_layer import predicting_model
from estimator_bridge.modern.keras.modes import Evaluation, Modes, Prediction, refuse_weights
from estimator_bridge.modern.keras.transplanted_model import TransplantedModel
from estimator_bridge.modern.step.transplant import Transplant

logging = v1.logging
InputFn = Callable[..., Any]
Tensor = Any


def from_estimator(estimator: Any, input_fn: InputFn | tf.data.Dataset) -> EstimatorModel:
    """Makes a Keras model of an Estimator.

    The model's variables have TF1's names and the values of the latest checkpoint in ``model_dir``, or initial values without a
    checkpoint. To train on several replicas, call it under the scope of a ``tf.distribute`` strategy; ``fit`` then splits each batch.

    Args:
        estimator: ``tf.estimator.Estimator``, canned or not.
        input_fn: Argument of ``Estimator.train``, or a dataset of (features, labels), that shows the structure of the batches. Initial
            values are drawn with the Estimator's random numbers only if it is an input_fn.

    Returns:
        The model: ``fit`` runs the model_fn's train_op, ``evaluate`` its ``eval_metric_ops``, ``predict`` and a call its predictions.

    Raises:
        NotSupportedError: The model_fn cannot be transplanted; nothing has been trained.

    Example:
        >>> from estimator_bridge import legacy, modern
        >>> legacy.install()
        >>> import numpy as np, tensorflow as tf
        >>> column = tf.feature_column.numeric_column("x")
        >>> estimator = tf.compat.v1.estimator.LinearRegressor([column])
        >>> x = np.array([[0.0], [1.0], [2.0]], np.float32)
        >>> data = tf.data.Dataset.from_tensor_slices(({"x": x}, 2 * x)).batch(3)
        >>> model = modern.from_estimator(estimator, data)
        >>> _ = model.fit(data, epochs=300, verbose=0)
        >>> np.round(model.predict({"x": np.array([[10.0]], np.float32)}, verbose=0)["predictions"])
        array([[20.]], dtype=float32)
    """
    if not tf.executing_eagerly():
        raise BridgeError("A Keras model needs eager execution.", fix="Call from_estimator outside of graphs and sessions.")
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if estimator.config.train_distribute is not None:
        raise NotSupportedError(
            "RunConfig(train_distribute=...) gives whole batches to each replica, but fit splits them.",
            expected="a RunConfig without train_distribute",
            fix="Drop train_distribute, and call from_estimator under strategy.scope().",
        )
    for note in session_config.apply(estimator.config.session_config):
        logging.warn("%s", note)
    latest = tf.train.latest_checkpoint(estimator.model_dir)
    call = input_fn if callable(input_fn) else keras_data.empty_input(input_fn.element_spec)
    graph = model_graph.build(estimator, call, TRAIN, latest, replicas, split=replicas > 1)
    transplant = Transplant(graph, split=replicas > 1)
    return EstimatorModel(estimator, transplant)


class EstimatorModel(TransplantedModel):
    """An Estimator as a Keras model; ``from_estimator`` makes it.

    ``fit``, ``evaluate`` and ``predict`` take Keras' arguments, and also an input_fn in place of data. The logs of ``fit`` have the
    loss of the last step, as an Estimator logs it. Losses, metrics, the optimizer and its learning rate are the model_fn's.

    Args:
        estimator: Estimator with the model_fn.
        transplant: Transplant of its training graph.
    """

    def __init__(self, estimator: Any, transplant: Transplant) -> None:
        super().__init__(transplant)
        self._modes = Modes(estimator, transplant)
        self._evaluation: Evaluation | None = None
        self._predicting: Prediction | None = None
        self.built = True
        self._set_save_spec(keras_data.named(self._modes.features))

    @property
    def metrics(self) -> list[Any]:
        """Metrics of the model_fn, after the first call of ``evaluate``."""
        return list(self._evaluation.metrics) if self._evaluation else []

    def reset_metrics(self) -> None:
        """Resets every local variable of the graph of EVAL mode."""
        if self._evaluation:
            self._evaluation.reset()

    def fit(self, x: Any = None, y: Any = None, *args: Any, validation_data: Any = None, **kwargs: Any) -> Any:
        """Trains as ``tf_keras.Model.fit`` does; ``x`` and ``validation_data`` may be input_fns.

        Raises:
            BridgeError: The batches differ from those that the training graph was built for.
            NotSupportedError: ``evaluate`` would refuse the validation, there are weights of classes or examples, or a callback sets
                the learning rate.
        """
        refuse_weights(kwargs)
        _refuse_other_rates(kwargs.get("callbacks"))
        x = self._modes.dataset(x, TRAIN)
        self._modes.check_training(x, y)
        validation_data = self._modes.dataset(validation_data, EVAL)
        if validation_data is not None:  # a refusal now is better than after an epoch
            held_out = validation_data if isinstance(validation_data, tuple) else (validation_data, None)
            refuse_weights({"sample_weight": held_out[2] if len(held_out) > 2 else None})
            self._modes.evaluation(*held_out[:2])
        return super().fit(x, y, *args, validation_data=validation_data, **kwargs)

    def evaluate(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as ``tf_keras.Model.evaluate`` does; ``x`` may be an input_fn."""
        refuse_weights(kwargs)
        x = self._modes.dataset(x, EVAL)
        chosen = self._modes.evaluation(x, y)
        if chosen is not self._evaluation:
            self._evaluation, self.test_function = chosen, None
        return super().evaluate(x, y, *args, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Predicts as ``tf_keras.Model.predict`` does, in the structure of ``EstimatorSpec.predictions``; ``x`` may be an input_fn."""
        x = self._modes.dataset(x, PREDICT)
        chosen = self._modes.prediction(keras_data.spec_of(x))
        if chosen is not self._predicting:
            self._predicting, self.predict_function = chosen, None
        return super().predict(x, *args, **kwargs)

    def call(self, inputs: Any) -> Any:
        """Returns ``EstimatorSpec.predictions`` of PREDICT mode for a batch of features."""
        with tf.init_scope():
            prediction = self._modes.prediction(
                keras_data.any_batch_size(tf.nest.map_structure(tf.type_spec_from_value, inputs))
            )
        return prediction(keras_data.leaves_for(prediction.model, inputs))

    def save(self, filepath: Any, overwrite: bool = True, save_format: str | None = None, **kwargs: Any) -> None:
        """Saves the predictions of PREDICT mode for the features of training: as a SavedModel, or as a .keras or .h5 file.

        Raises:
            NotSupportedError: The model has moving averages of several replicas; or a .keras or .h5 file cannot hold what predictions need:
                tables that read files, loops, branches, Python.
        """
        self._modes.check_saving()
        prediction = self._modes.prediction(self._modes.features)
        if save_format not in (None, "tf") or str(filepath).endswith((".keras", ".h5", ".hdf5")):
            model = predicting_model(prediction.model, prediction.variables, keras_data.named(self._modes.features))
            model.save(filepath, overwrite, save_format, **kwargs)
            return
        self._exported_tables = prediction.tables
        evaluation, self._evaluation = self._evaluation, None  # a SavedModel has no place for metrics of a graph
        try:
            super().save(filepath, overwrite, "tf", **({"include_optimizer": False} | kwargs))
        finally:
            self._evaluation = evaluation
            self._delete_tracking("_exported_tables")

    def get_config(self) -> dict[str, Any]:
        """Not available: a model_fn is Python code."""
        raise NotImplementedError("A model_fn is Python code, which a Keras config cannot hold.")

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Runs one step on one replica and returns ``{"loss": scalar}``."""
        return super().train_step(keras_data.leaves_for(self.transplant.model, data))

    def test_step(self, data: Any) -> dict[str, Tensor]:
        """Updates the metrics with one batch."""
        evaluation = self._evaluation
        assert evaluation is not None, "evaluate chooses the graph"
        evaluation.update(keras_data.leaves_for(evaluation.model, data))
        return {metric.name: metric.result() for metric in evaluation.metrics}

    def predict_step(self, data: Any) -> Any:
        """Returns the predictions of one batch; labels are ignored."""
        prediction = self._predicting
        assert prediction is not None, "predict chooses the graph"
        return prediction(keras_data.leaves_for(prediction.model, keras_data.features_of(data)))


def _refuse_other_rates(callbacks: Any) -> None:
    for callback in tf.nest.flatten(callbacks):
        if isinstance(callback, (tf_keras.callbacks.LearningRateScheduler, tf_keras.callbacks.ReduceLROnPlateau)):
            raise NotSupportedError(
                f"{type(callback).__name__} sets a learning rate, which is the model_fn's.",
                expected="callbacks that watch, stop or save",
                fix="Let the model_fn compute its learning rate from the global step.",
            )
