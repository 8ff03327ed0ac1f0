"""Choice of the graph of EVAL or PREDICT mode for a batch; one is built for each new structure of batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.model_graph import EVAL, PREDICT, v1
from estimator_bridge.modern.keras import data as keras_data
from estimator_bridge.modern.keras.data import Spec
from estimator_bridge.modern.keras.mode_graphs import Evaluation, Prediction
from estimator_bridge.modern.step.transplant import Transplant

_REPORTING = ("CheckpointSaverHook", "LoggingTensorHook", "NanTensorHook", "StepCounterHook", "SummarySaverHook")


class Modes:
    """The graphs of one Estimator over the variables of its training.

    Args:
        estimator: Estimator with the model_fn.
        transplant: Training on the strategy in scope.

    Attributes:
        features: Structure of a batch of features, of any size.
    """

    def __init__(self, estimator: Any, transplant: Transplant) -> None:
        self._estimator = estimator
        self._training = transplant.model
        self._replicas = tf.distribute.get_strategy().num_replicas_in_sync
        saved = {variable.op.name for variable in transplant.model.collection(v1.GraphKeys.GLOBAL_VARIABLES)}
        self._variables = {name: variable for name, variable in transplant.variables.items() if name in saved}
        own = self._replicas > 1  # copies, e.g., of moving averages
        self._means = {name: (_copy(one), one) for name, one in self._variables.items() if own and _differs_by_replica(one)}
        self._variables |= {name: mean for name, (mean, _) in self._means.items()}
        self._graphs: dict[str, Any] = {}
        structure = tf.nest.map_structure(tf.type_spec_from_value, self._training.pipeline.structure)
        self._examples = keras_data.any_batch_size(structure)
        self.features = self._examples[0]
        note_hooks(transplant.model.spec.training_hooks, transplant.model.spec.training_chief_hooks)

    def dataset(self, data: Any, mode: str) -> Any:
        """Returns the batches of an input_fn; other data for Keras stays as it is."""
        if not callable(data):
            return data
        return keras_data.structured(model_graph.input_pipeline(self._estimator, data, mode))

    def check_training(self, x: Any, y: Any) -> None:
        """Raises BridgeError for batches that the training graph was not built for, as far as their structure is known."""
        spec = _spec(x, y)
        if spec is not None:
            keras_data.leaves_for(self._training, spec if self._replicas == 1 else keras_data.any_batch_size(spec))

    def evaluation(self, x: Any, y: Any) -> Evaluation:
        """Returns the metrics for batches of a structure."""
        if self._replicas > 1:
            raise NotSupportedError(
                f"evaluate runs only on one device, but the model was built for {self._replicas} replicas.",
                fix="Use save_weights, and load_weights in a model that from_estimator makes outside of the strategy's scope.",
            )
        spec = _spec(x, y)
        return self._graph(EVAL, self._examples if spec is None else spec, Evaluation)

    def prediction(self, spec: Spec | None) -> Prediction:
        """Returns the predictions for batches of a structure; labels are ignored."""
        for mean, variable in self._means.values():
            mean.assign(variable.read_value())
        spec = self.features if spec is None else keras_data.features_of(spec)
        return self._graph(PREDICT, spec if self._replicas == 1 else keras_data.any_batch_size(spec), Prediction)

    def check_saving(self) -> None:
        """Raises NotSupportedError if predictions read means over replicas, which are not part of the model."""
        if self._means:
            raise NotSupportedError(
                f"A SavedModel cannot hold means over {self._replicas} replicas, such as that of {min(self._means)!r}.",
                expected="a model that from_estimator made outside of a strategy's scope",
                fix="Use save_weights, and load_weights in a model that from_estimator makes outside of the strategy's scope.",
            )

    def _graph(self, mode: str, spec: Spec, make: Callable[..., Any]) -> Any:
        key = f"{mode} {spec}"
        if key not in self._graphs:
            latest = tf.train.latest_checkpoint(self._estimator.model_dir)
            model = model_graph.build(self._estimator, keras_data.empty_input(spec), mode, latest)
            note_hooks(model.spec.evaluation_hooks, model.spec.prediction_hooks)
            tf_keras.Model()  # a model made in a graph turns all model classes into TF1's; this one turns them back
            self._graphs[key] = make(model, self._variables)
        return self._graphs[key]


def _differs_by_replica(variable: Any) -> bool:
    """Returns True for variables of which each replica keeps a copy, e.g., moving averages; predictions need the mean."""
    return getattr(variable, "synchronization", None) is tf.VariableSynchronization.ON_READ


def _copy(variable: Any) -> Any:
    return tf.Variable(variable.read_value(), trainable=False, name=variable.name.partition(":")[0])


def note_hooks(*groups: Sequence[Any]) -> None:
    """Logs the session hooks of a model_fn that are left out, since they only report.

    Raises:
        NotSupportedError: A hook may do more than report.
    """
    for hook in (hook for group in groups for hook in group or ()):
        name = type(hook).__name__
        if type(hook) is not getattr(v1.train, name, None) or name not in _REPORTING:
            raise NotSupportedError(
                f"The model_fn's session hook {type(hook).__qualname__} cannot run in a Keras model.",
                expected="hooks that only report: " + ", ".join(_REPORTING),
                fix="Give fit a callback that does the same, or train by Estimator.train on the modern path.",
            )
        v1.logging.warn("The model_fn's %s does not run here, since Keras' callbacks take its place.", name)


def refuse_weights(given: Mapping[str, Any]) -> None:
    """Raises NotSupportedError if the arguments contain Keras' weights of classes or examples."""
    for name in ("class_weight", "sample_weight"):
        if given.get(name) is not None:
            raise NotSupportedError(
                f"{name} has no effect on a model_fn, which computes its own loss.",
                expected="weights of examples among the features, for the model_fn or a canned Estimator's weight_column",
                received=name,
                fix=f"Drop {name}, or let the input_fn return the weights.",
            )


def _spec(x: Any, y: Any) -> Spec | None:
    """Returns the structure of a batch of (features, labels), or of features without labels."""
    spec = keras_data.spec_of(x)
    if isinstance(spec, tuple) and len(spec) > 2:
        refuse_weights({"sample_weight": spec[2]})
    if y is None or spec is None:
        return spec
    labels = keras_data.spec_of(y)
    return None if labels is None else (spec, labels)
