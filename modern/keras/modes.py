"""Graphs of EVAL and PREDICT mode of a model_fn over the variables of training, without copies or checkpoints in between.

One graph is built for each new structure of batches.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.fragments import Fragment, Tensor, is_source, refused, upstream
from estimator_bridge.modern.graph.model_graph import EVAL, PREDICT, ModelGraph, metric_values, operation, v1
from estimator_bridge.modern.graph.variables import VariableStore, assigned
from estimator_bridge.modern.keras import data as keras_data
from estimator_bridge.modern.keras.data import Spec
from estimator_bridge.modern.step.transplant import Transplant, initialise_tables

Variables = Mapping[str, Any]  # operation name -> a variable of the training
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
        apart = tf.VariableSynchronization.ON_READ  # each replica keeps its own copy, e.g., of a moving average
        self._means = {
            name: (tf.Variable(one.read_value(), trainable=False, name=one.name.partition(":")[0]), one)
            for name, one in self._variables.items()
            if self._replicas > 1 and getattr(one, "synchronization", None) is apart
        }
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
                f"A saved model cannot hold means over {self._replicas} replicas, such as that of {min(self._means)!r}.",
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


class Prediction:
    """The predictions of a model_fn.

    Args:
        model: Graph of PREDICT mode.
        variables: Operation name -> variable of the training.

    Attributes:
        model: Graph of PREDICT mode.
        variables: Operation name -> variable.
        tables: Lookup tables, to be tracked by a model that is saved.
    """

    def __init__(self, model: ModelGraph, variables: Variables) -> None:
        self.model = model
        self._structure = model.spec.predictions
        outputs = tf.nest.flatten(self._structure)
        fragment = Fragment.cut(upstream([tensor.op for tensor in outputs], is_source), outputs)
        store = _store(model, variables, _local_values(model, variables))
        self.variables: Variables = store.by_name
        self._run = model.batch_function(fragment, store)
        self.tables = Tables(model)

    def __call__(self, leaves: Sequence[Tensor]) -> Any:
        """Returns ``EstimatorSpec.predictions`` of one batch, given in the order of ``ModelGraph.batch``."""
        return tf.nest.pack_sequence_as(self._structure, self._run(leaves))


class Evaluation:
    """The metrics of a model_fn.

    Args:
        model: Graph of EVAL mode.
        variables: Operation name -> variable of the training.

    Attributes:
        model: Graph of EVAL mode.
        update: Function that updates all metrics with one batch, given in the order of ``ModelGraph.batch``.
        metrics: Metrics of tf_keras: ``loss``, the mean over batches, then ``eval_metric_ops`` by name.

    Raises:
        NotSupportedError: A metric writes to the model's own variables, or its value depends on the last batch.
    """

    def __init__(self, model: ModelGraph, variables: Variables) -> None:
        self.model = model
        with model.graph.as_default():
            pairs = {"loss": v1.metrics.mean(model.spec.loss)} | dict(sorted(model.spec.eval_metric_ops.items()))
        updating = upstream([operation(update) for _, update in pairs.values()], is_source)
        if names := assigned(updating) & set(variables):
            raise NotSupportedError(
                f"The metrics of EVAL mode write to the model's variable {min(names)!r}.",
                expected="metrics that keep their state in local variables, as tf.compat.v1.metrics does",
                fix="Put the variable into tf.compat.v1.GraphKeys.LOCAL_VARIABLES, or use Estimator.evaluate.",
            )
        local = model.initial_values()
        self._store = _store(model, variables, local)
        self._initial = {name: value for name, value in local.items() if name not in variables}
        self.update = model.batch_function(Fragment.cut(updating, []), self._store)
        self.metrics = [self._metric(name, value) for name, (value, _) in pairs.items()]

    def reset(self) -> None:
        """Resets all local variables as a new session would, not only those that a metric's value reads."""
        self._assign(self._initial)

    def _assign(self, names: Sequence[str] | Mapping[str, Any]) -> None:
        for name in names:
            self._store.by_name[name].assign(self._initial[name])

    def _metric(self, name: str, value: Any) -> GraphMetric:
        fragment = metric_values(tf.nest.flatten(value))
        read = self._store.function(fragment)
        own = [handle.op.name for handle in fragment.handles if handle.op.name in self._initial]
        return GraphMetric(name, read, functools.partial(self._assign, own))


class GraphMetric(tf_keras.metrics.Metric):
    """A (value, update) pair of a graph; the model updates all of its pairs at once.

    Args:
        name: Key in ``eval_metric_ops``.
        read: Function of an empty list that returns the value, as the only tensor of a list.
        reset: Function that resets the metric's variables.
    """

    def __init__(self, name: str, read: Callable[[Sequence[Tensor]], list[Tensor]], reset: Callable[[], None]) -> None:
        super().__init__(name=name)
        self._read, self._reset = read, reset

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Not available, since a metric of a graph reads features and labels."""
        raise NotSupportedError(f"Only the model can update the metric {self.name!r}.", fix="Use model.evaluate.")

    def result(self) -> Tensor:
        """Returns the value so far."""
        return self._read([])[0]

    def reset_state(self) -> None:
        """Resets the metric to its value before the first batch."""
        self._reset()


class Tables(tf.saved_model.experimental.TrackableResource):
    """Lookup tables of a graph as part of a SavedModel, with their files as assets; loading the SavedModel fills the tables.

    Args:
        model: Graph with the tables.
    """

    def __init__(self, model: ModelGraph) -> None:
        initialisers = [operation(op) for op in model.collection(v1.GraphKeys.TABLE_INITIALIZERS)]
        files = {tensor.name: tensor for tensor in model.collection(v1.GraphKeys.ASSET_FILEPATHS)}
        fragment = Fragment.cut(upstream(initialisers), [])
        self._fill = _given(fragment, list(files.values())).function([])
        self._assets = [tf.saved_model.Asset(tf.compat.as_str(tf.get_static_value(tensor).item())) for tensor in files.values()]
        for index, asset in enumerate(self._assets):
            self._track_trackable(asset, f"asset_{index}")
        super().__init__()

    def _create_resource(self) -> Tensor:
        # Stands for the tables, which are found by their names.
        return tf.raw_ops.AnonymousHashTable(key_dtype=tf.int64, value_dtype=tf.int64)

    def _initialize(self) -> None:
        self._fill([], [asset.asset_path for asset in self._assets])


def _given(fragment: Fragment, constants: Sequence[Tensor]) -> Fragment:
    """Returns the same fragment with some of its constants as inputs."""
    names = {tensor.op.name for tensor in constants}
    graph_def = v1.GraphDef(versions=fragment.graph_def.versions, library=fragment.graph_def.library)
    graph_def.node.extend(node for node in fragment.graph_def.node if node.name not in names)
    return dataclasses.replace(fragment, graph_def=graph_def, inputs=(*fragment.inputs, *constants))


def _local_values(model: ModelGraph, variables: Variables) -> dict[str, Any]:
    """Returns the values of the variables that are not saved, as in a new session."""
    missing = [v.op for v in model.collection(v1.GraphKeys.GLOBAL_VARIABLES) if v.op.name not in variables]
    if missing:
        raise refused(
            missing[0],
            f"The variable {missing[0].name!r} is not part of the training graph ({len(missing)} such variables).",
            expected="a model_fn that makes the same variables in every mode, as checkpoints require",
            fix="Make the variable in TRAIN mode as well.",
        )
    local = [variable for variable in model.variables() if variable.op.name not in variables]
    with model.graph.as_default():
        own = model.spec.scaffold.local_init_op
        init_op = own if own is not None else tf.group(v1.local_variables_initializer(), v1.tables_initializer())
        with v1.Session(config=v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)) as session:
            session.run(init_op)
            values = session.run(local)
    return {variable.op.name: value for variable, value in zip(local, values, strict=True)}


def _store(model: ModelGraph, variables: Variables, local: Mapping[str, Any]) -> VariableStore:
    store = VariableStore(model.variables(), local, shared=variables)
    initialise_tables(model)
    return store
