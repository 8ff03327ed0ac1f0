"""The graph that a model_fn builds, made exactly as Estimator makes it, but with placeholders for the batch."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, NoReturn

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.distribute.mirrored_strategy import MirroredExtended
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended
from tensorflow.python.ops import control_flow_util
from tensorflow.python.ops.control_flow_v2_func_graphs import CondBranchFuncGraph

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import BATCH, Fragment, Tensor, is_source, refused, upstream
from estimator_bridge.modern.graph.host_call import host_call
from estimator_bridge.modern.graph.input_pipeline import InputPipeline, recorded_iterators
from estimator_bridge.modern.graph.optimizers.capture import Derivation, Update, recorded_derivations, recorded_updates
from estimator_bridge.modern.graph.optimizers.synchronous import SynchronousUpdate, recorded_synchronous
from estimator_bridge.modern.graph.reference_variables import reference_variables, true_variables
from estimator_bridge.modern.graph.savers import missing_from, saved_tensors
from estimator_bridge.modern.graph.shapes import script_shapes
from estimator_bridge.modern.graph.variables import VariableStore, assigned
from estimator_bridge.runtime.patching import replaced

v1 = tf.compat.v1
TRAIN, EVAL, PREDICT = "train", "eval", "infer"  # the values of tf.estimator.ModeKeys


@dataclasses.dataclass(frozen=True)
class ModelGraph:
    """The graph of one call of a model_fn.

    Attributes:
        graph: ``tf.Graph`` of all of the following.
        pipeline: Pipeline of the input_fn.
        batch: Placeholders for ``pipeline.leaves``, with one replica's rows if the batch is split. If it is not split, they default to
            the pipeline's tensors, so that the graph beside a checkpoint is complete.
        spec: EstimatorSpec.
        updates: Calls of optimizers that have a Keras counterpart.
        global_step: Variable of the global step.
        every_batch: Further operations and tensors that run with every batch: the host_call of a TPUEstimator.
        checkpoint_path: Checkpoint with the variables' values; None to run their initialisers.
        checkpoint_dir: model_dir in training, whose list of checkpoints is continued; else None.
        synchronous: Calls of SyncReplicasOptimizers.
        references: Operation names of the variables that TensorFlow 1 made reference variables.
        derivations: Calls of ``tf.gradients``.
    """

    graph: Any
    pipeline: InputPipeline
    batch: tuple[Tensor, ...]
    spec: Any
    updates: tuple[Update, ...]
    global_step: Any
    every_batch: tuple[Any, ...]
    checkpoint_path: str | None
    checkpoint_dir: str | None
    synchronous: Sequence[SynchronousUpdate] = ()
    references: Set[str] = frozenset()
    derivations: Sequence[Derivation] = ()

    def collection(self, key: str) -> list[Any]:
        """Returns a copy of one of the graph's collections."""
        return list(self.graph.get_collection(key))

    def variables(self) -> list[Any]:
        """Returns the graph's global and local variables, each once."""
        found = [*self.collection(v1.GraphKeys.GLOBAL_VARIABLES), *self.collection(v1.GraphKeys.LOCAL_VARIABLES)]
        return list({variable.op.name: variable for variable in found}.values())

    def check_fed(self, tensors: Sequence[Tensor]) -> None:
        """Raises NotSupportedError if one of a fragment's inputs is a placeholder that no batch fills."""
        fed = {placeholder.name for placeholder in self.batch}
        for tensor in tensors:
            if tensor.op.type == "Placeholder" and tensor.name not in fed:
                raise refused(
                    tensor.op,
                    f"The model_fn reads the placeholder {tensor.op.name!r}, and no session hook feeds it.",
                    expected="values that come from features, labels, params or variables, or on one replica from a hook's feed_dict",
                    fix="Use tf.compat.v1.placeholder_with_default or a variable, or feed it in before_run at every step.",
                )

    def batch_function(self, fragment: Fragment, store: VariableStore) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """Returns a function of the tensors of a batch, in the order of ``batch``, that runs a fragment.

        Args:
            fragment: Fragment of this graph.
            store: Its variables.

        Raises:
            NotSupportedError: The fragment reads a placeholder that no batch fills.
        """
        self.check_fed(fragment.inputs)
        names, call = [placeholder.name for placeholder in self.batch], store.function(fragment)

        def run(batch: Sequence[Tensor]) -> list[Tensor]:
            known = dict(zip(names, batch, strict=True))
            outputs: list[Tensor] = call([known[tensor.name] for tensor in fragment.inputs])
            return outputs

        return run

    def initial_values(self) -> dict[str, Any]:
        """Finishes the graph and starts a session as Estimator does: checkpoint or initialisers, warm start and Scaffold included.

        Returns:
            The value of every variable by its operation's name.

        Raises:
            BridgeError: The checkpoint lacks some of the model's variables.
            RuntimeError: The Scaffold's ready_op reports variables without a value.
        """
        variables = self.variables()
        on_cpu = v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
        path = None if self.checkpoint_dir else self.checkpoint_path
        creator = v1.train.ChiefSessionCreator(self.spec.scaffold, "", on_cpu, self.checkpoint_dir, path)
        with self.graph.as_default():
            try:
                session = creator.create_session()
            except tf.errors.NotFoundError as error:
                saved = saved_tensors(self.graph, self.spec.scaffold.saver)
                raise (missing_from(self.checkpoint_path, saved) or error) from None
            with session:
                values = session.run(variables)
        return {variable.op.name: value for variable, value in zip(variables, values, strict=True)}


def _runs_in_threads(config: Any) -> bool:
    return isinstance(getattr(config.train_distribute, "extended", None), (MirroredExtended, ParameterServerStrategyExtended))


def operation(op_or_tensor: Any) -> Any:
    """Returns an operation itself, or the operation that makes a tensor."""
    return op_or_tensor.op if tf.is_tensor(op_or_tensor) else op_or_tensor


def metric_values(tensors: Sequence[Tensor]) -> Fragment:
    """Cuts out the values of metrics.

    Raises:
        NotSupportedError: A value depends on the batch.
    """
    fragment = Fragment.cut(upstream([tensor.op for tensor in tensors], is_source), tensors)
    if fragment.inputs:
        raise refused(
            tensors[0].op,
            f"The value of a metric depends on the batch ({fragment.inputs[0].name!r}).",
            expected="(value, update) pairs whose value reads only variables, as tf.metrics makes them",
            fix="Make the metric with tf.compat.v1.metrics, or use --path legacy.",
        )
    return fragment


def build(
    estimator: Any,
    input_fn: Callable[..., Any],
    mode: str,
    checkpoint_path: str | None,
    replicas: int = 1,
    split: bool = False,
    input_seed: int | None = None,
    micro_batches: int = 1,
    around_model: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> ModelGraph:
    """Calls input_fn and model_fn in a graph of their own.

    Args:
        estimator: ``tf.estimator.Estimator``.
        input_fn: Function as Estimator takes it.
        mode: ``ModeKeys`` value.
        checkpoint_path: Checkpoint with the variables' values; None to apply warm-start settings.
        replicas: Number of replicas that will train or evaluate.
        split: True if the replicas split each batch, so that the model_fn sees the shape of one part; else each takes whole batches.
        input_seed: Seed of the input_fn's random numbers if the RunConfig has none.
        micro_batches: Number of parts in which each replica computes its rows of a batch; the model_fn sees the shape of one.
        around_model: Function that makes the context in which the model_fn is called.

    Returns:
        The graph, with placeholders between the input and the model.

    Raises:
        NotSupportedError: The graph cannot be transplanted.
    """
    graph = tf.Graph()
    references = reference_variables(kept=estimator.config.train_distribute is None)
    shapes = v1.variable_creator_scope(_without_validated_shape)
    counted = _counted_replicas(1 if split else replicas)
    is_distributed = mode == TRAIN and estimator.config.train_distribute is not None
    whole = _whole_variables() if is_distributed else contextlib.nullcontext()
    with graph.as_default(), script_shapes(), control_flow_v2(), true_variables(), references as names, shapes, counted, whole:
        pipeline = _input_pipeline(estimator, input_fn, mode, input_seed)
        batch = _placeholders(pipeline, replicas if split else 1, micro_batches)
        features, labels = pipeline.with_leaves(batch)
        with (
            recorded_updates(1 if split else replicas, mode == TRAIN and _runs_in_threads(estimator.config)) as updates,
            recorded_synchronous() as synchronous,
            recorded_derivations() as derivations,
            _shape_refusals(micro_batches, replicas if split else 1),
            around_model(),
        ):
            spec, every_batch = host_call(estimator._call_model_fn(features, labels, mode, estimator.config))
        if isinstance(spec.loss, tf.Variable):  # e.g., a moving average
            spec = spec._replace(loss=tf.convert_to_tensor(spec.loss))
        estimator._maybe_warm_start(checkpoint_path)
        if mode == TRAIN:
            spec = spec._replace(train_op=tf.group(spec.train_op, *every_batch)) if every_batch else spec
            _add_saver(spec.scaffold, estimator.config)
        model = ModelGraph(
            graph,
            pipeline,
            tuple(batch),
            spec,
            tuple(updates),
            v1.train.get_global_step(graph),
            tuple(every_batch),
            checkpoint_path,
            estimator.model_dir if mode == TRAIN else None,
            tuple(synchronous),
            names,
            tuple(derivations),
        )
    _refuse(model)
    return model


@contextlib.contextmanager
def _counted_replicas(number: int) -> Iterator[None]:
    """While active, tf.distribute tells the script how many replicas train: it may scale its loss, learning rate or batch by that.

    What would combine values of several replicas is refused: the graph is that of one.
    """

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotSupportedError(
            "The model_fn combines values of the replicas itself.",
            expected="a model_fn that leaves that to its optimizer",
            received=f"ReplicaContext.all_reduce or all_gather, called by a model_fn for {number} replicas",
            fix="Train on one replica, or with --path legacy.",
        )

    owners = distribute_lib.StrategyBase, distribute_lib.ReplicaContextBase
    with contextlib.ExitStack() as stack:
        for owner in owners:
            stack.enter_context(replaced(owner, num_replicas_in_sync=property(lambda _: number)))
        if number > 1:
            stack.enter_context(replaced(distribute_lib.ReplicaContextBase, all_reduce=refuse))
            stack.enter_context(replaced(distribute_lib.ReplicaContext, all_gather=refuse))
        yield


@contextlib.contextmanager
def _whole_variables() -> Iterator[None]:
    """While active, partitioners have no effect, as under a strategy in TensorFlow 1, where the slots of whole variables have other names."""

    def get(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return getter(*args, **{**kwargs, "partitioner": None})

    with v1.variable_scope(v1.get_variable_scope(), custom_getter=get, auxiliary_name_scope=False):
        yield


@contextlib.contextmanager
def _shape_refusals(micro_batches: int, pieces: int) -> Iterator[None]:
    """While active, replaces errors of a model_fn that is called with the shapes of a micro-batch, or of a replica's piece of a batch."""
    try:
        yield
    except ValueError as error:
        if micro_batches == pieces == 1 or not re.search(r"shape|dimension|elements|rank", str(error), re.IGNORECASE):
            raise
        part, flag = (
            ("a micro-batch", f"--micro {micro_batches}")
            if micro_batches > 1
            else ("a replica's piece", f"--replicas {pieces}")
        )
        raise NotSupportedError(
            f"The model_fn fails when it is called with the rows of {part}.",
            expected="a model_fn that takes the size of its batch from its features, e.g., by -1 in tf.reshape",
            received=str(error).partition("\n")[0],
            fix=f"Change that, or train without {flag}.",
        ) from error


def _without_validated_shape(next_creator: Callable[..., Any], **options: Any) -> Any:
    """Creates a variable; with validate_shape=False its shape is unknown, as a reference variable's, and not that of its first value."""
    if options.get("validate_shape") is False:
        options["shape"] = tf.TensorShape(None)
    return next_creator(**options)


@contextlib.contextmanager
def control_flow_v2() -> Iterator[None]:
    """While active, loops and conditions become functions, even if the script disabled that; TF1's loops are cycles.

    Names in a condition's branch begin with the name scopes around it, as in TF1, where a branch was a part of the graph: names of
    ``tf.get_variable`` and of slots depend on no name scope, but those of ``tf.Variable`` do, the powers of Adam's betas among them.
    """
    init = CondBranchFuncGraph.__init__

    def begin(branch: Any, *args: Any, **kwargs: Any) -> None:
        init(branch, *args, **kwargs)
        branch._name_stack = branch.scope_around = branch.outer_graph.get_name_scope()

    with replaced(control_flow_util, ENABLE_CONTROL_FLOW_V2=True), replaced(CondBranchFuncGraph, __init__=begin):
        yield


def input_pipeline(estimator: Any, input_fn: Callable[..., Any], mode: str) -> InputPipeline:
    """Calls an input_fn in a graph of its own, with the random numbers that it would draw in ``build``."""
    with tf.Graph().as_default(), script_shapes():
        return _input_pipeline(estimator, input_fn, mode)


def _input_pipeline(estimator: Any, input_fn: Callable[..., Any], mode: str, seed: int | None = None) -> InputPipeline:
    own = estimator.config.tf_random_seed
    v1.set_random_seed(seed if own is None else own)
    estimator._create_and_assert_global_step(v1.get_default_graph())
    with recorded_iterators() as iterators:
        if mode == PREDICT:
            inputs = (estimator._get_features_from_input_fn(input_fn, mode)[0], None)
        else:
            inputs = estimator._get_features_and_labels_from_input_fn(input_fn, mode)[:2]
    global_step = v1.train.get_global_step()
    initializers = [
        *(variable.initializer for variable in v1.global_variables() if variable is not global_step),
        *v1.get_collection(v1.GraphKeys.TABLE_INITIALIZERS),
        *(variable.initializer for variable in v1.local_variables()),
    ]
    pipeline = InputPipeline(
        inputs,
        {iterator._iterator_resource.op.name: dataset for iterator, dataset in iterators},
        tuple(v1.get_collection(v1.GraphKeys.QUEUE_RUNNERS)),
        tuple(initializers),
        tuple(iterator._initializer for iterator, _ in iterators if iterator._initializer is not None),
    )
    v1.set_random_seed(own)
    pipeline.check()
    return pipeline


def _add_saver(scaffold: Any, config: Any) -> None:
    """Adds Estimator's own Saver for training unless the script brings one."""
    if not (scaffold.saver or v1.get_collection(v1.GraphKeys.SAVERS)):
        saver = v1.train.Saver(
            sharded=True,
            max_to_keep=config.keep_checkpoint_max,
            keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            defer_build=True,
            save_relative_paths=True,
        )
        v1.add_to_collection(v1.GraphKeys.SAVERS, saver)


def _placeholders(pipeline: InputPipeline, replicas: int, micro_batches: int) -> list[Tensor]:
    """Makes the placeholders of a batch, or of one part if ``replicas`` split it or each computes ``micro_batches``."""
    if replicas * micro_batches == 1:
        return [v1.placeholder_with_default(leaf, leaf.shape, name=BATCH) for leaf in pipeline.leaves]
    tensors = [one for one in tf.nest.flatten(pipeline.structure) if tf.is_tensor(one)]
    if not tensors:
        raise NotSupportedError(
            "The input_fn gives no tensors, so no batch can be divided.", fix="Train on one device, without --micro."
        )
    return [made for tensor in tensors for made in _placeholders_of_part(tensor, replicas, micro_batches)]


def _placeholders_of_part(tensor: Any, replicas: int, micro_batches: int) -> list[Tensor]:
    if isinstance(tensor, tf.SparseTensor) and replicas == 1:
        rank = tensor.shape.rank
        shapes: list[list[int | None]] = [[None, rank], [None], [rank]]
        leaves = tensor.indices, tensor.values, tensor.dense_shape
        return [v1.placeholder(leaf.dtype, shape, name=BATCH) for leaf, shape in zip(leaves, shapes, strict=True)]
    shape = tensor.shape.as_list() if isinstance(tensor, tf.Tensor) and tensor.shape.rank else None
    if not shape:
        over = f"over {replicas} replicas" if replicas > 1 else f"into {micro_batches} micro-batches"
        raise NotSupportedError(
            f"The input tensor {tensor.name!r} cannot be split {over}.",
            expected=f"dense {'' if replicas > 1 else 'or sparse '}tensors with the batch as their first axis",
            received=f"{type(tensor).__name__} of shape {tensor.shape}",
            fix="Run on one replica, or set RunConfig(train_distribute=...), under which each replica takes whole batches."
            if replicas > 1
            else "Train without --micro.",
        )
    pieces = replicas * micro_batches
    shape[0] = shape[0] // pieces if shape[0] is not None and shape[0] % pieces == 0 else None
    return [v1.placeholder(tensor.dtype, shape, name=BATCH)]


def _refuse(model: ModelGraph) -> None:
    if model.spec.train_op is not None:
        model.pipeline.check_unwritten(assigned(upstream([operation(model.spec.train_op)], is_source)))
    for saveable in model.collection(v1.GraphKeys.SAVEABLE_OBJECTS):
        raise refused(
            saveable.specs[0].tensor.op,
            f"The model keeps state in {saveable.name!r}, which is not a variable, so the modern path would not save it.",
            expected="variables, and tables that do not change",
            fix="Use --path legacy for this script.",
        )
    for variable in model.variables():
        if not hasattr(variable, "handle"):
            raise refused(
                variable.op,
                f"The variable {variable.op.name!r} is a reference variable, which cannot be transplanted.",
                expected="variables made by tf.compat.v1.get_variable or tf.compat.v1.Variable, whatever use_resource says",
                fix="Make the variable by one of these, not by an imported graph or by its class, or use --path legacy.",
            )
