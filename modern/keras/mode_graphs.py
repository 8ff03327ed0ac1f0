"""Graphs of EVAL and PREDICT mode of a model_fn over the variables of training, without copies or checkpoints in between."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Fragment, Tensor, is_source, refused, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, metric_values, operation, v1
from estimator_bridge.modern.graph.variables import VariableStore, assigned
from estimator_bridge.modern.step.transplant import initialise_tables

Variables = Mapping[str, Any]  # operation name -> a variable of the training


class Prediction:
    """The predictions of a model_fn.

    Args:
        model: Graph of PREDICT mode.
        variables: Operation name -> variable of the training.

    Attributes:
        model: Graph of PREDICT mode.
        tables: Lookup tables, to be tracked by a model that is saved.
    """

    def __init__(self, model: ModelGraph, variables: Variables) -> None:
        self.model = model
        self._structure = model.spec.predictions
        outputs = tf.nest.flatten(self._structure)
        fragment = Fragment.cut(upstream([tensor.op for tensor in outputs], is_source), outputs)
        self._run = model.batch_function(fragment, _store(model, variables, _local_values(model, variables)))
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
        metrics: Metrics of tf_keras: ``loss``, the mean over batches, then ``eval_metric_ops`` by name.

    Raises:
        NotSupportedError: A metric writes to the model's own variables, or its value depends on the last batch.
    """

    def __init__(self, model: ModelGraph, variables: Variables) -> None:
        self.model = model
        with model.graph.as_default():
            pairs = {"loss": v1.metrics.mean(model.spec.loss)} | dict(sorted(model.spec.eval_metric_ops.items()))
        updating = upstream([operation(update) for _, update in pairs.values()], is_source)
        _refuse_writing(assigned(updating) & set(variables))
        local = model.initial_values()
        self._store = _store(model, variables, local)
        self._initial = {name: value for name, value in local.items() if name not in variables}
        self._update = model.batch_function(Fragment.cut(updating, []), self._store)
        self.metrics = [self._metric(name, value) for name, (value, _) in pairs.items()]

    def update(self, leaves: Sequence[Tensor]) -> None:
        """Updates all metrics with one batch, given in the order of ``ModelGraph.batch``."""
        self._update(leaves)

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


def _refuse_writing(names: set[str] | frozenset[str]) -> None:
    if names:
        raise NotSupportedError(
            f"The metrics of EVAL mode write to the model's variable {min(names)!r}.",
            expected="metrics that keep their state in local variables, as tf.compat.v1.metrics does",
            fix="Put the variable into tf.compat.v1.GraphKeys.LOCAL_VARIABLES, or use Estimator.evaluate.",
        )
