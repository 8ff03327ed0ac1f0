"""Lines of the printed script that make the strategy, its resolver, connections and input options."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.compat.config.decisions import READ_BY
from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.output.calls import source_lines
from estimator_bridge.compat.config.output.strategy_calls import resolver_call, strategy_call
from estimator_bridge.compat.config.process import is_server, process_config
from estimator_bridge.compat.config.tables.tpu_config import shape_of


def strategy_lines(config: ModernConfig) -> Iterator[str]:
    """Prints the lines.

    Args:
        config: Modern configuration to print.

    Yields:
        Lines of Python.
    """
    own = process_config(config)
    name = own.strategy.name
    if own.cluster.jobs and name in READ_BY["cluster.jobs"]:
        yield from source_lines(resolver_call(own.cluster), "cluster_resolver = ")
    if own.strategy.remote_cluster:
        yield from _remote(own)
    if is_server(config):
        yield from _server()
    elif name is None:
        yield "strategy = tf.distribute.get_strategy()"
    elif name == "TPUStrategy":
        yield from _tpu(own)
    else:
        yield from source_lines(strategy_call(own.strategy, bool(own.cluster.jobs)), "strategy = ")
    if own.strategy.input_per_replica is not None:
        mode = "PER_REPLICA" if own.strategy.input_per_replica else "PER_WORKER"
        yield "# strategy.distribute_datasets_from_function(dataset_fn, input_options)"
        yield f"mode = tf.distribute.InputReplicationMode.{mode}"
        yield "input_options = tf.distribute.InputOptions(experimental_replication_mode=mode)"


def _remote(config: ModernConfig) -> Iterator[str]:
    jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
    filters = config.devices.filters
    if filters and config.cluster.task_type:
        yield "filters = tf.config.experimental.ClusterDeviceFilters()"
        yield f"filters.set_device_filters({config.cluster.task_type!r}, {config.cluster.task_id or 0}, {list(filters)!r})"
    extra = ", cluster_device_filters=filters" if filters and config.cluster.task_type else ""
    yield f"tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({jobs!r}){extra})"


def _server() -> Iterator[str]:
    yield "# This process only serves; the chief coordinates."
    yield "server = tf.distribute.Server("
    yield "    cluster_resolver.cluster_spec(),"
    yield "    job_name=cluster_resolver.task_type,"
    yield "    task_index=cluster_resolver.task_id,"
    yield "    protocol=cluster_resolver.rpc_layer,"
    yield ")"
    yield "server.join()"


def _tpu(config: ModernConfig) -> Iterator[str]:
    own = config.strategy
    job = f", job_name={own.tpu_job_name!r}" if own.tpu_job_name else ""
    yield f"resolver = tf.distribute.cluster_resolver.TPUClusterResolver({own.tpu!r}{job})"
    yield "tf.config.experimental_connect_to_cluster(resolver)"
    yield "topology = tf.tpu.experimental.initialize_tpu_system(resolver)"
    if own.cores_per_replica is None:
        yield "strategy = tf.distribute.TPUStrategy(resolver)"
        return
    yield "device_assignment = tf.tpu.experimental.DeviceAssignment.build("
    yield "    topology,"
    yield f"    computation_shape={shape_of(own.cores_per_replica)},"
    yield f"    num_replicas=topology.num_tasks * topology.num_tpus_per_task // {own.cores_per_replica},"
    yield ")"
    yield "strategy = tf.distribute.TPUStrategy(resolver, device_assignment)"
