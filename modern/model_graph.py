"""The graph that a model_fn builds, made exactly as Estimator makes it, with the batch left open."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.capture import Update, recorded_updates
from estimator_bridge.modern.carving import Tensor
from estimator_bridge.modern.inputs import InputPipeline, recorded_iterators
from estimator_bridge.modern.shapes import script_shapes

v1 = tf.compat.v1
TRAIN, EVAL, PREDICT = "train", "eval", "infer"  # the values of tf.estimator.ModeKeys


@dataclasses.dataclass(frozen=True)
class ModelGraph:
    """One call of a model_fn.

    Attributes:
        graph: holds everything below.
        pipeline: what input_fn returned.
        batch: the placeholders that stand for ``pipeline.leaves``; per replica, where a batch is split.
        spec: the EstimatorSpec.
        updates: calls of optimizers that have a Keras counterpart.
        global_step: its variable.
    """

    graph: Any
    pipeline: InputPipeline
    batch: tuple[Tensor, ...]
    spec: Any
    updates: tuple[Update, ...]
    global_step: Any

    def collection(self, key: str) -> list[Any]:
        """A copy of one of the graph's collections."""
        return list(self.graph.get_collection(key))

    def variables(self) -> list[Any]:
        """The graph's global and local variables, each once."""
        found = [*self.collection(v1.GraphKeys.GLOBAL_VARIABLES), *self.collection(v1.GraphKeys.LOCAL_VARIABLES)]
        return list({variable.op.name: variable for variable in found}.values())

    def check_fed(self, tensors: Sequence[Tensor]) -> None:
        """Raises NotSupportedError where one of a fragment's inputs is a placeholder that no batch fills."""
        fed = {placeholder.name for placeholder in self.batch}
        for tensor in tensors:
            if tensor.op.type == "Placeholder" and tensor.name not in fed:
                raise NotSupportedError(
                    f"The model_fn reads the placeholder {tensor.op.name!r}, and the modern path has no feed_dict.",
                    expected="values that come from features, labels, params or variables",
                    fix="Use tf.compat.v1.placeholder_with_default or a variable, or --path legacy.",
                )

    def initial_values(self, restored: bool = False) -> dict[str, Any]:
        """Runs the graph's initialisers, warm start and Scaffold included.

        Args:
            restored: run those of local variables only, since a checkpoint holds the global ones, which get blank values here.

        Returns:
            The value of every variable by its operation's name.
        """
        saved = self.collection(v1.GraphKeys.GLOBAL_VARIABLES) if restored else []
        blank = {variable.op.name: _blank(variable) for variable in saved}
        variables = [variable for variable in self.variables() if variable.op.name not in blank]
        with self.graph.as_default():
            scaffold = self.spec.scaffold or v1.train.Scaffold()
            init_op = scaffold.init_op or v1.global_variables_initializer()
            local_init_op = scaffold.local_init_op or tf.group(v1.local_variables_initializer(), v1.tables_initializer())
            on_cpu = v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
            with v1.Session(config=on_cpu) as session:
                if not restored:
                    session.run(init_op, feed_dict=scaffold.init_feed_dict)
                    if scaffold.init_fn:
                        scaffold.init_fn(session)
                session.run(local_init_op)
                values = session.run(variables)
        return blank | {variable.op.name: value for variable, value in zip(variables, values, strict=True)}


def operation(op_or_tensor: Any) -> Any:
    """The operation itself, or the one that makes a tensor."""
    return op_or_tensor.op if tf.is_tensor(op_or_tensor) else op_or_tensor


def build(
    estimator: Any,
    input_fn: Callable[..., Any],
    mode: str,
    checkpoint_path: str | None,
    replicas: int = 1,
    split: bool = False,
) -> ModelGraph:
    """Calls input_fn and model_fn in a graph of their own.

    Args:
        estimator: a ``tf.estimator.Estimator``.
        input_fn: as Estimator takes it.
        mode: a ``ModeKeys`` value.
        checkpoint_path: where the variables will come from; without one, warm-start settings apply.
        replicas: number of replicas that will train.
        split: each batch is split over them, and the model_fn sees the shape of one piece; else each takes whole batches.

    Returns:
        The graph, with placeholders between the input and the model.

    Raises:
        NotSupportedError: for what cannot be transplanted, named.
    """
    graph = tf.Graph()
    with graph.as_default(), script_shapes():
        v1.set_random_seed(estimator.config.tf_random_seed)
        estimator._create_and_assert_global_step(graph)
        pipeline = _call_input_fn(estimator, input_fn, mode)
        pipeline.check()
        batch = [_placeholder(leaf, replicas if split else 1) for leaf in pipeline.leaves]
        features, labels = pipeline.with_leaves(batch)
        with recorded_updates(1 if split else replicas) as updates:
            spec = estimator._call_model_fn(features, labels, mode, estimator.config)
        estimator._maybe_warm_start(checkpoint_path)
        model = ModelGraph(graph, pipeline, tuple(batch), spec, tuple(updates), v1.train.get_global_step(graph))
    _refuse(model)
    return model


def _call_input_fn(estimator: Any, input_fn: Callable[..., Any], mode: str) -> InputPipeline:
    with recorded_iterators() as iterators:
        if mode == PREDICT:
            features, _ = estimator._get_features_from_input_fn(input_fn, mode)
            labels = None
        else:
            features, labels, _ = estimator._get_features_and_labels_from_input_fn(input_fn, mode)
    started_by = [
        *v1.get_collection(v1.GraphKeys.TABLE_INITIALIZERS),
        *(variable.initializer for variable in v1.local_variables()),
        *(iterator._initializer for iterator, _ in iterators if iterator._initializer is not None),
    ]
    return InputPipeline(
        (features, labels),
        {iterator._iterator_resource.op.name: dataset for iterator, dataset in iterators},
        tuple(v1.get_collection(v1.GraphKeys.QUEUE_RUNNERS)),
        tuple(started_by),
    )


def _placeholder(leaf: Tensor, pieces: int) -> Tensor:
    shape = leaf.shape.as_list() if leaf.shape.rank is not None else None
    if pieces > 1:
        if not shape:
            raise NotSupportedError(
                f"The input tensor {leaf.name!r} cannot be split over {pieces} replicas.",
                expected="dense tensors with the batch as their first axis",
                received=f"shape {leaf.shape}",
                fix="Run on one replica, or set RunConfig(train_distribute=...), under which each replica takes whole batches.",
            )
        shape[0] = shape[0] // pieces if shape[0] is not None and shape[0] % pieces == 0 else None
    return v1.placeholder(leaf.dtype, shape, name="estimator_bridge/batch")  # no name that a variable of the script might have


def _blank(variable: Any) -> Any:
    dtype, shape = variable.dtype.base_dtype, [size or 0 for size in variable.shape.as_list()]
    return np.full(shape, b"", object) if dtype == tf.string else np.zeros(shape, dtype.as_numpy_dtype)


def _refuse(model: ModelGraph) -> None:
    for saveable in model.collection(v1.GraphKeys.SAVEABLE_OBJECTS):
        raise NotSupportedError(
            f"The model keeps state in {saveable.name!r}, which is no variable, and the modern path would not save it.",
            expected="variables, and tables that do not change",
            fix="Use --path legacy for this script.",
        )
    if (model.spec.scaffold and model.spec.scaffold.saver) or model.collection(v1.GraphKeys.SAVERS):
        raise NotSupportedError(
            "The model_fn brings its own Saver, and the modern path cannot save through it yet.",
            expected="an EstimatorSpec without Scaffold(saver=...)",
            fix="Drop the Saver, or use --path legacy.",
        )
    for variable in model.variables():
        if not hasattr(variable, "handle"):
            raise NotSupportedError(
                f"The variable {variable.op.name!r} is a reference variable, which cannot be transplanted.",
                expected="resource variables (use_resource is True or left out)",
                fix="Drop use_resource=False, or use --path legacy.",
            )
