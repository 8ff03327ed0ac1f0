"""ConfigProto.Experimental: collectives, MLIR and options of TensorFlow's own runtime."""

from __future__ import annotations

from estimator_bridge.compat.config.tables.build import dropped, exact, flag, manual, mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable

_TFRT = "It belongs to the runtime for serving, which tf.function does not use."
_COORDINATION = "the strategy starts and configures the coordination service itself"
_OWN = "TensorFlow sets it for itself; no pipeline does"


EXPERIMENTAL = RuleTable(
    "config_proto_experimental",
    "ConfigProto.Experimental",
    (
        flag("collective_nccl", "strategy.communication", "NCCL", "tf.distribute.experimental.CommunicationOptions(implementation=NCCL)",
             "The option belongs to the strategy now: MultiWorkerMirroredStrategy reads it, others do not."),
        flag("collective_deterministic_sequential_execution", "graph.deterministic", True, "tf.config.experimental.enable_op_determinism",
             "The nearest option: it makes every operation deterministic, not only the order of collectives, and needs a seed."),
        exact("enable_mlir_bridge", "graph.mlir_bridge", "tf.config.experimental.enable_mlir_bridge", True),
        mapped("mlir_bridge_rollout", "tf.config.experimental.enable_mlir_bridge", Fidelity.APPROXIMATE,
               lambda value: Conversion({"graph.mlir_bridge": value.endswith("_ENABLED")}), None, "MLIR_BRIDGE_ROLLOUT_ENABLED",
               note="The same switch under an older name; converted back it is enable_mlir_bridge."),
        dropped("enable_mlir_graph_optimization", "An unfinished replacement of Grappler; the default is what is tested."),
        dropped("collective_group_leader", f"The task that numbers collectives: {_OWN}, MultiWorkerMirroredStrategy does."),
        dropped("executor_type", "The session's executor by name, the single-threaded one for small graphs: no public name. Results are equal."),
        dropped("recv_buf_max_chunk", "Bytes a message of a collective: no public name. Results are equal."),
        dropped("use_numa_affinity", "Memory next to the CPU that uses it: numactl does it for a process. Results are equal."),
        dropped("share_session_state_in_clusterspec_propagation", "State shared by sessions of one cluster; there are no sessions."),
        dropped("disable_thread_spinning", "Whether idle threads spin: no public name. Results are equal."),
        dropped("share_cluster_devices_in_session", "Devices shared by sessions of one cluster; there are no sessions."),
        dropped("session_metadata.name", "A name for a session in metrics; there are no sessions."),
        dropped("session_metadata.version", "A version for a session in metrics; there are no sessions."),
        dropped("optimize_for_static_graph", "A promise not to extend the session's graph; a traced function never is."),
        dropped("disable_optimize_for_static_graph", "The opposite promise; a traced function is never extended."),
        dropped("disable_output_partition_graphs", "It saved the memory of RunMetadata.partition_graphs, which functions do not give."),
        dropped("xla_fusion_autotuner_thresh", "How long XLA searches for fusions: no public name. Results are equal."),
        *(dropped(name, _TFRT) for name in (
            "use_tfrt", "tfrt_use_ifrt", "enable_multi_host", "backend_server_port", "target_tpu", "target_gpu", "stream_merge_threshold",
            "online_cost_analysis",
        )),
        manual("disable_functional_ops_lowering", "tf.compat.v1.disable_control_flow_v2",
               "Control flow kept as functions rather than lowered: only a graph that is exported for another runtime needs it."),
        dropped("xla_prefer_single_graph_cluster", "One XLA cluster rather than several: tf.function(jit_compile=True) makes one."),
        dropped("disable_eager_executor_streaming_enqueue", f"Whether calls to workers are streamed: {_OWN}, ParameterServerStrategy does."),
        *(dropped(name, _TFRT) for name in ("finalize_function_library_runtime", "finalize_resource_manager")),
        manual("tf2xla_dump_dir", "the environment variable TF_XLA_FLAGS or XLA_FLAGS=--xla_dump_to=DIR",
               "Folder for XLA's compiled programs: set the variable before TensorFlow starts."),
        *(dropped(f"coordination_config.{field}", f"How tasks register and watch each other: {_COORDINATION}.")
          for field in (
              "service_type", "service_leader", "enable_health_check", "cluster_register_timeout_in_ms", "cluster_register_with_barrier",
              "heartbeat_timeout_in_ms", "coordinated_job_list", "shutdown_barrier_timeout_in_ms", "agent_destruction_without_shutdown",
              "recoverable_jobs", "allow_new_incarnation_to_reconnect", "force_disable", "poll_for_error_from_service_at_startup",
          )),
    ),
)  # fmt: skip
