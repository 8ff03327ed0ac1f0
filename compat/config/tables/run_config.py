"""RunConfig: saving, logging, seeds and processes of a job; and the DistributeConfig in it."""

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import approximate, dropped, exact, manual, mapped, zero_is_all
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable

DEFAULTS: Mapping[str, Any] = {
    "save_summary_steps": 100,
    "save_checkpoints_secs": 600,
    "keep_checkpoint_max": 5,
    "keep_checkpoint_every_n_hours": 10000,
    "log_step_count_steps": 100,
}
"""Defaults of a RunConfig; ``save_checkpoints_secs`` applies only without ``save_checkpoints_steps``."""

_NONE_IS_0 = ("save_summary_steps", "keep_checkpoint_max", "log_step_count_steps")
_SAVES = ("save_checkpoints_steps", "save_checkpoints_secs")


def normalize(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a RunConfig's values with 0 for None if None means none at all rather than the default.

    Args:
        values: Arguments of the RunConfig's constructor.

    Returns:
        Values by name; None remains for an argument that is not set.

    Example:
        >>> normalize({"keep_checkpoint_max": None, "save_checkpoints_steps": 5, "save_checkpoints_secs": None})
        {'keep_checkpoint_max': 0, 'save_checkpoints_steps': 5, 'save_checkpoints_secs': None}
    """
    none = {name: 0 for name in _NONE_IS_0 if name in values and values[name] is None}
    said = [values[name] for name in _SAVES if name in values]
    return {**values, **none, **({"save_checkpoints_secs": 0} if said and all(one is None for one in said) else {})}


_DECIDED = "the table of strategies"


def _protocol(value: str) -> Conversion:
    if value == "grpc":
        return Conversion({"cluster.rpc_layer": value})
    return Conversion({}, Fidelity.MANUAL, f"{value!r} needs a TensorFlow built with it; releases only have grpc")


RUN_CONFIG = RuleTable(
    "run_config",
    "RunConfig",
    (
        exact("model_dir", "training.model_dir", "the folder of tf.train.CheckpointManager and of events", "model"),
        approximate("tf_random_seed", "training.random_seed", "tf.random.set_seed", 7,
                    note="Random numbers differ: a graph seeds an operation by its position in the graph, eager code by the order of calls."),
        approximate("save_summary_steps", "summaries.update_freq", "tf.summary.write in a callback", 100,
                    note="The callback writes the loss and the metrics; a model_fn's own tf.summary calls move into the model. 0 and None "
                    "write none."),
        exact("save_checkpoints_steps", "checkpoint.interval_steps", "tf.train.CheckpointManager(checkpoint_interval=n)", 50,
              note="As with an Estimator, there is also one at the start and one at the end."),
        approximate("save_checkpoints_secs", "checkpoint.interval_secs", "a callback that calls tf.train.CheckpointManager.save", 600,
                    note="Keras counts steps and epochs, so our callback checks the clock after each batch. 0 saves none, as does None "
                    "for both seconds and steps."),
        zero_is_all("keep_checkpoint_max", "checkpoint.max_to_keep", "tf.train.CheckpointManager(max_to_keep=n)", 5, 0,
                    note="0 and None keep all here; CheckpointManager refuses 0 and takes None."),
        exact("keep_checkpoint_every_n_hours", "checkpoint.keep_every_n_hours",
              "tf.train.CheckpointManager(keep_checkpoint_every_n_hours=n)", 2.0),
        approximate("log_step_count_steps", "summaries.speed_freq", "tf.summary.write in a callback", 100,
                    note="Steps per second, measured by our callback; Keras' TensorBoard measures epochs and batches instead. None (0 in a file) "
                    "measures none."),
        manual("session_config", "tf.config", "Field by field: see ConfigProto."),
        manual("train_distribute", _DECIDED, "See the table of strategies."),
        manual("eval_distribute", _DECIDED, "See the table of strategies; SidecarEvaluator evaluates under its own strategy."),
        manual("experimental_distribute", _DECIDED, "Field by field: see DistributeConfig."),
        mapped("protocol", "tf.distribute.cluster_resolver.TFConfigClusterResolver(rpc_layer=...)", Fidelity.EXACT, _protocol,
               lambda settings: settings.get("cluster.rpc_layer"), "grpc"),
        manual("device_fn", "tf.device", "A strategy places variables; use tf.device for an operation that needs a device of its own."),
        dropped("experimental_max_worker_delay_secs", "Workers of asynchronous training started one after another; strategies start together."),
        dropped("session_creation_timeout_secs", "How long a worker waits for the chief's session; there are no sessions."),
        dropped("checkpoint_save_graph_def", "A file that shows the graph beside each checkpoint; object-based checkpoints need no graph, "
                "TensorBoard(write_graph=True) shows it."),
        manual("tpu_config", "tf.distribute.TPUStrategy", "Field by field: see TPUConfig."),
        exact("cluster_spec", "cluster.jobs", "tf.distribute.cluster_resolver.SimpleClusterResolver", {"chief": ("localhost:2222",)}),
        exact("task_type", "cluster.task_type", "tf.distribute.cluster_resolver.SimpleClusterResolver(task_type=...)", "chief"),
        exact("task_id", "cluster.task_id", "tf.distribute.cluster_resolver.SimpleClusterResolver(task_id=...)", 0),
        exact("master", "cluster.session_master", "tf.distribute.cluster_resolver.SimpleClusterResolver(master=...)", "grpc://localhost:2222",
              note="A strategy does not read it; TPUClusterResolver(tpu=...) is what tpu.RunConfig(master=...) becomes."),
        dropped("evaluation_master", "The session of the evaluation; a SidecarEvaluator evaluates in its own process."),
        manual("cluster", "tf.distribute.cluster_resolver", "tpu.RunConfig's ClusterResolver: give it to the strategy."),
        dropped("service", "What the platform's own TF_CONFIG said; only Estimator's TPU code read it."),
        *(dropped(name, "It is derived from TF_CONFIG, whose cluster and task are carried over.")
          for name in ("is_chief", "num_ps_replicas", "num_worker_replicas", "global_id_in_cluster")),
    ),
    about="Every property of tf.estimator.RunConfig and of tf.compat.v1.estimator.tpu.RunConfig.",
)  # fmt: skip

DISTRIBUTE_CONFIG = RuleTable(
    "distribute_config",
    "DistributeConfig",
    (
        manual("train_distribute", "the table of strategies", "See the table of strategies, with RunConfig(train_distribute=...)."),
        manual("eval_distribute", "the table of strategies", "See the table of strategies, with RunConfig(eval_distribute=...)."),
        approximate(
            "remote_cluster", "strategy.remote_cluster", "tf.config.experimental_connect_to_cluster", {"worker": ("localhost:2222",)},
            note="Estimator ran the coordinator's loop on the cluster's servers; here this process connects to them and drives them, "
            "and the strategy names their devices.",
        ),
    ),
)  # fmt: skip
