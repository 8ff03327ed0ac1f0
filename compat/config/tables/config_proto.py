"""ConfigProto's own fields: threads, devices, placement and sessions; its experimental ones; and RPCOptions."""

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import approximate, dropped, exact, flag, manual, mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable

_NO_SESSION = "sessions no longer exist: one runtime serves the whole process"


def _device_count(value: Mapping[str, int]) -> Conversion:
    settings = {name: value[kind] for kind, name in _COUNTED.items() if kind in value}
    others = sorted(set(value) - set(_COUNTED))
    if any(count < 0 for count in value.values()):
        return Conversion({}, Fidelity.MANUAL, "a number of devices cannot be negative: drop the entry")
    if value.get("CPU") == 0:
        return Conversion({}, Fidelity.MANUAL, "a process without a CPU device is not possible: drop the entry")
    if others:
        note = f"only CPU and GPU can be counted through tf.config, not {', '.join(others)}"
        return Conversion(settings, Fidelity.MANUAL, note)
    return Conversion(settings)


def _device_count_back(settings: Mapping[str, Any]) -> Any:
    return {kind: settings[name] for kind, name in _COUNTED.items() if name in settings} or None


def _cluster_def(value: tuple[Mapping[str, Any], ...]) -> Conversion:
    jobs = {}
    for job in value:
        tasks = job.get("tasks", {})
        if sorted(tasks) != list(range(len(tasks))):
            note = f"job {job.get('name')!r} leaves task numbers out, a list of addresses cannot"
            return Conversion({}, Fidelity.MANUAL, note)
        jobs[job.get("name", "")] = tuple(tasks[index] for index in sorted(tasks))
    return Conversion({"strategy.remote_cluster": jobs})


_COUNTED = {"CPU": "devices.logical_cpus", "GPU": "devices.gpu_count"}

CONFIG_PROTO = RuleTable(
    "config_proto",
    "ConfigProto",
    (
        mapped(
            "device_count",
            "tf.config.set_logical_device_configuration(cpu, [...] * n); tf.config.set_visible_devices(gpus[:n])",
            Fidelity.EXACT,
            _device_count,
            _device_count_back,
            {"CPU": 2},
            {"GPU": 0},
            note="A session ignores the logical devices of tf.config, and vice versa: set both. GPUs are tested as for GPUOptions.",
        ),
        exact(
            "intra_op_parallelism_threads", "threads.intra_op", "tf.config.threading.set_intra_op_parallelism_threads", 2,
            note="Only before TensorFlow has initialised its devices; later it raises RuntimeError.",
        ),
        exact(
            "inter_op_parallelism_threads", "threads.inter_op", "tf.config.threading.set_inter_op_parallelism_threads", 3,
            note="Only before TensorFlow has initialised its devices; a negative number (the caller's thread) included.",
        ),
        exact(
            "allow_soft_placement", "devices.soft_placement", "tf.config.set_soft_device_placement", True,
            note="By default off in a session and on in eager code; the report says so if it makes a difference.",
        ),
        exact("log_device_placement", "devices.log_placement", "tf.debugging.set_log_device_placement", True),
        approximate(
            "device_filters", "devices.filters", "tf.config.experimental.ClusterDeviceFilters", ("/job:ps", "/job:worker/task:0"),
            note="The filters of one process become those of its task in ClusterDeviceFilters, given to experimental_connect_to_cluster. "
            "MultiWorkerMirroredStrategy and ParameterServerStrategy connect by themselves with filters of their own (a worker sees itself, "
            "and the parameter servers); one process has nothing to filter.",
        ),
        mapped(
            "cluster_def.job", "tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(...))", Fidelity.APPROXIMATE, _cluster_def, None, ({"name": "worker", "tasks": {0: "localhost:2222"}},),
            note="The session's server propagated the cluster; here this process connects to it.",
        ),
        manual(
            "operation_timeout_in_ms", "a deadline around the step",
            "A session gave up an operation after that time; tf.config has no public name for it, so a step that may block needs its "
            "own deadline (a watchdog thread, or the launcher's).",
        ),
        dropped("use_per_session_threads", f"It gave each session its own threads; {_NO_SESSION}."),
        dropped("session_inter_op_thread_pool", f"It shared thread pools between sessions; {_NO_SESSION}, with one pool."),
        dropped("placement_period", "Number of runs after which a session places its nodes again; a function's nodes are placed once, when it is traced."),
        dropped("isolate_session_state", f"It separated the variables of sessions; {_NO_SESSION}, and variables are objects."),
        dropped("share_cluster_devices_in_session", f"It made a session see the devices of a cluster's other sessions; {_NO_SESSION}."),
        manual(
            "pluggable_device_options", "tf.config.experimental.set_memory_growth",
            "GPUOptions for devices of a plug-in; tf.config addresses them by their device type, which the plug-in's documentation "
            "names.",
        ),
    ),
    about="Nested messages have their own pages: GPUOptions, GraphOptions, OptimizerOptions, RewriterConfig, RPCOptions and "
    "the experimental fields.",
)  # fmt: skip

_SERVER = "tf.distribute.Server still takes a ConfigProto, so the option works for a server that is started by hand; strategies have no name for it"

RPC_OPTIONS = RuleTable(
    "rpc_options",
    "RPCOptions",
    (
        dropped("use_rpc_for_inprocess_master", "It sent a session's calls to itself through the network, for tests; there is no master."),
        dropped("compression_algorithm", f"How messages are compressed: {_SERVER}. Results are equal."),
        dropped("compression_level", f"How hard messages are compressed: {_SERVER}. Results are equal."),
        dropped("cache_rpc_response", f"Answers kept for calls that are sent twice: {_SERVER}."),
        dropped("disable_session_connection_sharing", "Connections of one session kept from another; there are no sessions."),
        dropped("num_channels_per_target", f"Connections to each task: {_SERVER}."),
    ),
)  # fmt: skip


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
