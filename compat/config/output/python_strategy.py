"""The lines that make the strategy, and what goes with it."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_bridge.compat.config.decisions import READ_BY
from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.process import of_this_process, serves
from estimator_bridge.compat.config.tables.tpu_config import shape_of


def strategy_lines(config: ModernConfig) -> Iterator[str]:
    """Source that makes the strategy of a configuration.

    Args:
        config: its strategy and cluster sections.

    Yields:
        Lines.
    """
    own = of_this_process(config)
    name = own.strategy.name
    if own.cluster.jobs and name in READ_BY["cluster.jobs"]:
        yield from _resolver(own)
    if own.strategy.remote_cluster:
        yield from _remote(own)
    if serves(config):
        yield from _server()
    elif name is None:
        yield "strategy = tf.distribute.get_strategy()"
    else:
        yield from _STRATEGIES[name](own)
    if own.strategy.input_per_replica is not None:
        mode = "PER_REPLICA" if own.strategy.input_per_replica else "PER_WORKER"
        yield "# strategy.distribute_datasets_from_function(dataset_fn, input_options)"
        yield f"mode = tf.distribute.InputReplicationMode.{mode}"
        yield "input_options = tf.distribute.InputOptions(experimental_replication_mode=mode)"


def _resolver(config: ModernConfig) -> Iterator[str]:
    cluster = config.cluster
    jobs = {job: list(tasks) for job, tasks in cluster.jobs.items()}
    layer = cluster.rpc_layer or "grpc"
    yield "cluster_resolver = tf.distribute.cluster_resolver.SimpleClusterResolver("
    yield f"    tf.train.ClusterSpec({jobs!r}),"
    if cluster.session_master is not None:
        yield f"    master={cluster.session_master.removeprefix(f'{layer}://')!r},"
    yield f"    task_type={cluster.task_type!r},"
    yield f"    task_id={cluster.task_id!r},"
    if cluster.environment is not None:
        yield f"    environment={cluster.environment!r},"
    yield f"    rpc_layer={layer!r},"
    yield ")"


def _remote(config: ModernConfig) -> Iterator[str]:
    jobs = {job: list(tasks) for job, tasks in config.strategy.remote_cluster.items()}
    filters = config.devices.filters
    if filters and config.cluster.task_type:
        yield "filters = tf.config.experimental.ClusterDeviceFilters()"
        yield f"filters.set_device_filters({config.cluster.task_type!r}, {config.cluster.task_id or 0}, {list(filters)!r})"
    extra = ", cluster_device_filters=filters" if filters and config.cluster.task_type else ""
    yield f"tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({jobs!r}){extra})"


def _server() -> Iterator[str]:
    yield "# This process only serves; the chief's coordinates."
    yield "server = tf.distribute.Server("
    yield "    cluster_resolver.cluster_spec(),"
    yield "    job_name=cluster_resolver.task_type,"
    yield "    task_index=cluster_resolver.task_id,"
    yield "    protocol=cluster_resolver.rpc_layer,"
    yield ")"
    yield "server.join()"


def _mirrored(config: ModernConfig) -> Iterator[str]:
    own = config.strategy
    arguments = [repr(list(own.devices))] if own.devices else []
    packs = "" if own.num_packs is None else f"num_packs={own.num_packs!r}"
    arguments += [f"cross_device_ops=tf.distribute.{own.cross_device_ops}({packs})"] if own.cross_device_ops else []
    yield f"strategy = tf.distribute.MirroredStrategy({', '.join(arguments)})"


def _multi_worker(config: ModernConfig) -> Iterator[str]:
    own = config.strategy
    options = f"implementation=tf.distribute.experimental.CommunicationImplementation.{own.communication or 'AUTO'}"
    options += f", bytes_per_pack={own.bytes_per_pack!r}" if own.bytes_per_pack is not None else ""
    options += f", timeout_seconds={own.timeout_seconds!r}" if own.timeout_seconds is not None else ""
    yield "strategy = tf.distribute.MultiWorkerMirroredStrategy("
    yield f"    {'cluster_resolver' if config.cluster.jobs else 'None'},"
    yield f"    tf.distribute.experimental.CommunicationOptions({options}),"
    yield ")"


def _parameter_server(config: ModernConfig) -> Iterator[str]:
    given = dict(config.strategy.partitioner)
    if given:
        arguments = ", ".join(f"{key}={value!r}" for key, value in given.items() if key != "kind")
        yield f"partitioner = tf.distribute.experimental.partitioners.{given['kind']}({arguments})"
    yield f"strategy = tf.distribute.ParameterServerStrategy(cluster_resolver{', variable_partitioner=partitioner' if given else ''})"


def _central_storage(config: ModernConfig) -> Iterator[str]:
    devices = list(config.strategy.devices) if config.strategy.devices else None
    yield f"strategy = tf.distribute.experimental.CentralStorageStrategy({devices!r}, {config.strategy.parameter_device!r})"


def _one_device(config: ModernConfig) -> Iterator[str]:
    yield f"strategy = tf.distribute.OneDeviceStrategy({(config.strategy.devices or ('/cpu:0',))[0]!r})"


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


_STRATEGIES = {
    "MirroredStrategy": _mirrored,
    "MultiWorkerMirroredStrategy": _multi_worker,
    "ParameterServerStrategy": _parameter_server,
    "CentralStorageStrategy": _central_storage,
    "OneDeviceStrategy": _one_device,
    "TPUStrategy": _tpu,
}
