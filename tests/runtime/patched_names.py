"""Every name of TensorFlow, tensorflow-estimator and Keras that this package replaces while it runs, and why.

In tests, ``estimator_bridge.runtime.patching`` refuses a name that is not listed here. A test proves that each name exists on every
supported TensorFlow, and that each is replaced somewhere.
"""

from __future__ import annotations

from typing import NamedTuple


class PatchedNames(NamedTuple):
    """Names of one owner, replaced for one reason.

    Attributes:
        owner: Dotted path of a module, class or function; ``*`` stands for any part of it.
        names: Attribute names.
        reason: Effect of the replacement.
    """

    owner: str
    names: tuple[str, ...]
    reason: str


_DISTRIBUTE = "tensorflow.python.distribute"
_ESTIMATOR = "tensorflow_estimator.python.estimator"
_OPS = "tensorflow.python.ops"
_TRAINING = "tensorflow.python.training"

_REASONS: dict[str, dict[str, str]] = {
    # The calls of an Estimator.
    f"{_ESTIMATOR}.estimator.Estimator": {
        "train evaluate predict export_saved_model export_savedmodel": "hands the calls to the engine of the chosen path; "
        "a launcher hears that an evaluation is no stall",
        "_call_input_fn": "mends and shares out what an input_fn returns",
        "_call_model_fn": "keeps the batch for an audit, and the loss of an evaluation for a comparison; "
        "finds the Saver of an export",
        "_train_with_estimator_spec": "adds hooks: of the launcher, of an audit, of synchronous replicas, of a recording",
        "_train_model_default": "refuses tasks that share no variables; knows the replicas",
        "_actual_train_model_distributed _evaluate_build_graph": "counts the CPUs of a strategy in the session's device_count",
        "_evaluate_run _export_all_saved_models": "a launcher hears that an evaluation or export is no stall; "
        "exports of a comparison go to its folder",
    },
    f"{_ESTIMATOR}.estimator": {
        "maybe_overwrite_model_dir_and_session_config": "each side of a comparison has model_dirs of its own"
    },
    f"{_ESTIMATOR}.util": {
        "parse_input_fn_result": "keeps the batch for a recording",
        "parse_iterator_result": "keeps the batches of replicas for a recording",
    },
    f"{_ESTIMATOR}.tpu.tpu_estimator.*Estimator*": {"_ctx": "a TPUEstimator builds its graphs as for CPU and GPU"},
    "tensorflow.python.training.saver.Saver": {"restore save": "an export copies the checkpoint's variables"},
    # The real tf.contrib.
    "tensorflow.python.framework.registry.Registry": {
        "register": "what tf.contrib's files register a second time stays as it is"
    },
    # Tasks of a cluster.
    f"{_ESTIMATOR}.training": {"_DELAY_SECS_PER_WORKER time": "no worker waits by the clock, no evaluator after the training"},
    f"{_ESTIMATOR}.training._ContinuousEvalListener": {"before_eval after_eval": "ends the evaluator after the training's end"},
    f"{_ESTIMATOR}.training._TrainingExecutor": {
        "_start_std_server": "starts a server once, waits for the others, leaves it out where no session needs it",
        "run_worker run_ps": "the first worker leads; idle parameter servers end",
    },
    f"{_DISTRIBUTE}.distribute_lib.StrategyBase": {"num_replicas_in_sync": "a model_fn is told how many replicas train"},
    f"{_DISTRIBUTE}.distribute_lib.ReplicaContextBase": {
        "num_replicas_in_sync": "a model_fn is told how many replicas train",
        "all_reduce": "a model_fn that combines values of the replicas is refused",
    },
    f"{_DISTRIBUTE}.distribute_lib.ReplicaContext": {
        "all_gather": "a model_fn that combines values of the replicas is refused"
    },
    f"{_DISTRIBUTE}.estimator_training": {"init_run_config": "a RunConfig with a strategy knows its task"},
    f"{_DISTRIBUTE}.distribute_coordinator": {"_run_std_server": "waits until the servers of all tasks answer"},
    f"{_TRAINING}.server_lib.Server": {"__init__": "keeps a server to the loopback interface"},
    f"{_TRAINING}.session_manager.SessionManager": {
        "prepare_session": "the values of initializers are saved before functions and hooks of the old script set others"
    },
    f"{_TRAINING}.session_manager.SessionManager.__init__": {
        "__defaults__": "looks each second whether the chief has initialized the variables"
    },
    f"{_DISTRIBUTE}.collective_all_reduce_strategy.CollectiveAllReduceExtended": {
        "_initialize_strategy _initialize_local_devices __deepcopy__": "a strategy made in an evaluator, a parameter server or a "
        "graph initialises nothing"
    },
    f"{_DISTRIBUTE}.cross_device_utils.CollectiveReplicaLauncher": {
        "_all_gather _prefer_unique_instance_key": "sparse gradients may have another number of rows in each step",
        "all_reduce": "gradients of small models are added up in one round of messages",
    },
    # SyncReplicasOptimizer.
    f"{_TRAINING}.sync_replicas_optimizer": {"data_flow_ops": "each replica in step has a token queue of its own"},
    f"{_TRAINING}.sync_replicas_optimizer.SyncReplicasOptimizer": {
        "make_session_run_hook get_chief_queue_runner": "the training loop of the modern path averages the gradients",
        "apply_gradients get_init_tokens_op": "knows the optimizer of a training, which starts with as few tokens as it can",
    },
    f"{_TRAINING}.sync_replicas_optimizer._SyncReplicasOptimizerHook": {
        "after_create_session": "the chief ends without waiting for its thread"
    },
    # Graphs, as model_fn and input_fn build them.
    "tensorflow.python.client.session.BaseSession": {
        "run": "hooks initialise the iterators of an input whose batches are replayed"
    },
    "tensorflow.python.framework.tensor_shape": {"_TENSORSHAPE_V2_OVERRIDE": "a script sees TF1's Dimensions"},
    "tensorflow*": {  # one function is found in several modules
        "disable_control_flow_v2 disable_eager_execution disable_tensor_equality disable_v2_behavior disable_v2_tensorshape": "the switches to TF1's behaviour do nothing on the modern path",
        "get_checkpoint_state": "a side of a comparison finds the checkpoints in its own folders",
    },
    "tensorflow*tf2": {"enabled": "Keras chooses its initializers by the shapes that a script sees"},
    "tensorflow.python.data.ops.dataset_ops.DatasetV1": {
        "_make_one_shot_iterator _make_initializable_iterator": "knows which dataset an iterator walks over; copies one that was "
        "built outside the input_fn"
    },
    f"{_OPS}.control_flow_util": {"ENABLE_CONTROL_FLOW_V2": "loops and conditions are functions"},
    f"{_OPS}.control_flow_v2_func_graphs.CondBranchFuncGraph": {"__init__": "names in a branch begin with those around it"},
    f"{_OPS}.resource_variable_ops.BaseResourceVariable": {
        "__bool__": "asks whether there is a variable, as of TF1's reference variables",
        "__iadd__ __imul__ __ipow__ __isub__ __itruediv__": "variable += value gives a tensor, as of TF1's reference variables",
    },
    f"{_OPS}*": {"_DEFAULT_USE_RESOURCE": "a script's variables are reference variables, as in TF1"},
    f"{_OPS}.variable_v1": {"default_variable_creator": "makes resource variables where TF1 made reference variables"},
    f"{_OPS}.resource_variable_ops._UnreadVariable": {
        "sparse_read gather_nd _lazy_read": "what an assignment returned is used after the assignment, as TF1's references"
    },
    "tensorflow.python.*training_ops": {
        "apply_ada_max apply_adadelta apply_adagrad apply_adagrad_da apply_adagrad_v2 apply_adam "
        "apply_add_sign apply_centered_rms_prop apply_ftrl apply_ftrl_v2 apply_gradient_descent "
        "apply_momentum apply_power_sign apply_proximal_adagrad apply_proximal_gradient_descent "
        "apply_rms_prop sparse_apply_adadelta sparse_apply_adagrad sparse_apply_adagrad_da "
        "sparse_apply_adagrad_v2 sparse_apply_centered_rms_prop sparse_apply_ftrl sparse_apply_ftrl_v2 "
        "sparse_apply_momentum sparse_apply_proximal_adagrad sparse_apply_proximal_gradient_descent "
        "sparse_apply_rms_prop": "kernels for reference variables take resource variables"
    },
    f"{_TRAINING}.optimizer._DenseResourceVariableProcessor": {
        "update_op": "calls the methods of an optimizer that TF1 called for reference variables"
    },
    f"{_TRAINING}.optimizer.Optimizer": {
        "apply_gradients compute_gradients _scale_loss": "records the updates that a model_fn asks for"
    },
    # Quiet output.
    "tensorflow.python.util.deprecation": {"_PRINT_DEPRECATION_WARNINGS": "TensorFlow 1's names are not called deprecated"},
    # Comparisons.
    "tensorflow.python.framework.random_seed": {"get_seed": "both sides draw the same random numbers"},
    f"{_OPS}.gen_random_ops": dict.fromkeys(
        ("random_standard_normal", "random_uniform", "truncated_normal"),
        "an old script and its rewrite draw the same noise in a step",
    ),
    f"{_OPS}.nn_ops": {"_dropout": "an old script and its rewrite draw the same dropout masks"},
    f"{_OPS}.while_loop": {"while_loop": "an old script and its rewrite draw the same dropout masks in the turns of loops"},
    "tensorflow.python.checkpoint.checkpoint_management.CheckpointManager": {
        "__init__": "no run of a rewrite goes on from the checkpoints of another one"
    },
    "tensorflow.python.saved_model.save": {"save_and_return_nodes": "keeps the exports of a rewrite"},
    "tf_keras.*.training.Model": {
        "compile fit evaluate predict train_on_batch test_on_batch predict_on_batch": "a rewrite gets the batches and values of the old script"
    },
    "tensorflow*.compat.v1": {"while_loop": "as the function of its file"},
    "tensorflow": {"function": "a rewrite's steps call Python, which XLA cannot"},
    "tf_keras.*.base_layer.Layer": {
        "__init__": "knows the models and layers of a rewrite's own loop",
        "__call__": "a model gets the old script's values when its first call makes its variables",
    },
    "tensorflow.python.module.module.Module": {"__init__": "knows the modules of a rewrite's own loop"},
    "keras.src.*.Model": {"evaluate": "records the final metrics of a rewrite that trains freely"},
    "tf_keras.*.optimizer*.*Optimizer*": {
        "__init__": "knows the optimizers of a rewrite's own loop",
        "_internal_apply_gradients _distributed_apply": "records what optimizers of either family apply, after clipping",
    },
    "*keras.*.legacy_cells.LayerRNNCell": {"__call__": "knows the forget_bias of an old script's LSTM cells"},
    f"{_OPS}.gradients_util": {"_GradientsHelper": "records the gradients of an old script before it clips them"},
    f"{_OPS}.embedding_ops": {"_embedding_lookup_and_transform": "finds the rows of a variable that a plan cuts"},
    "tensorflow.python.eager.backprop.GradientTape": {"gradient": "records the losses and gradients of a rewrite"},
    "tensorflow.python.data.ops.dataset_ops.DatasetV2": {
        "__iter__ as_numpy_iterator": "a rewrite's own loop gets the batches of the old script"
    },
    "tensorflow.python.distribute.distribute_lib.Strategy": {
        "experimental_distribute_dataset": "a loop under a strategy with one device gets the batches of the old script"
    },
    f"{_OPS}.control_flow_ops.WhileContext": {"__init__": "loops draw in the order of their iterations"},
    f"{_OPS}.while_v2": {"while_loop": "loops draw in the order of their iterations"},
    "tensorflow.python.lib.io._pywrap_file_io": {
        "BufferedInputStream FileExists GetChildren GetMatchingFiles IsDirectory ReadFileToString Stat": "tf.gfile finds a side's files",
        "CopyFile CreateDir DeleteFile DeleteRecursively RecursivelyCreateDir RenameFile WritableFile": (
            "a script deletes, copies and overwrites the files of its side"
        ),
    },
    f"{_TRAINING}.basic_session_run_hooks.CheckpointSaverHook": {
        "begin": "a recorded training without a step saves what other hooks have chosen"
    },
    f"{_TRAINING}.basic_session_run_hooks.*": {"__init__": "TensorFlow's hooks write to the folders of their side"},
}
"""Owner -> names, with a space between them -> reason."""

PATCHED = tuple(
    PatchedNames(owner, tuple(names.split()), reason) for owner, rows in _REASONS.items() for names, reason in rows.items()
)

PATTERNS = " ".join(f"{row.owner}.{name}" for row in PATCHED for name in row.names)
"""The value of ``patching.CHECKED``."""
