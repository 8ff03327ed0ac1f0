"""Cases of tf.contrib.cluster_resolver."""

import json
import os

import tensorflow as tf

resolvers = tf.contrib.cluster_resolver


def simple():
    spec = tf.train.ClusterSpec({"ps": ["p:1"], "worker": ["w:1", "w:2"]})
    one = resolvers.SimpleClusterResolver(spec, "w:2", "worker", 1, "env", {"GPU": 2}, "grpc")
    two = resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["v:1"]}))
    union = resolvers.UnionClusterResolver(one, two)
    return [_told(one), _told(two), _told(union), one.num_accelerators(), isinstance(one, resolvers.ClusterResolver)]


def _told(resolver):
    return [resolver.cluster_spec().as_dict(), resolver.master(), resolver.task_type, resolver.task_id, resolver.rpc_layer]


def from_tf_config():
    cluster = {"cluster": {"ps": ["p:1"], "worker": ["w:1", "w:2"]}, "task": {"type": "worker", "index": 1}}
    os.environ["TF_CONFIG"] = json.dumps(cluster)
    try:
        resolver = resolvers.TFConfigClusterResolver()
        other = resolvers.TFConfigClusterResolver(task_type="ps", task_id=0, rpc_layer="grpc", environment="google")
        return [_told(resolver), _told(other), resolver.master("worker", 0), other.environment]
    finally:
        del os.environ["TF_CONFIG"]


def others():
    tpu = resolvers.TPUClusterResolver("grpc://192.0.2.1:8470", coordinator_name="here", coordinator_address="192.0.2.2:1")
    kubernetes = resolvers.KubernetesClusterResolver({"worker": ["job-name=w"]}, 1, override_client=object())
    gce = resolvers.GCEClusterResolver("project", "zone", "group", 1, credentials=None, service=object())
    return [
        tpu.master(),
        tpu.cluster_spec().as_dict(),
        tpu.get_master(),
        [kubernetes.task_type, kubernetes.task_id, kubernetes.rpc_layer],
        [gce.task_type, gce.task_id, gce.rpc_layer],
    ]


def slurm():
    class Slurm(resolvers.SlurmClusterResolver):
        def _resolve_hostnames(self):
            return ["n1"]

    names = {"PROCID": "1", "NTASKS": "2", "STEP_NUM_TASKS": "2", "STEP_NODELIST": "n1", "STEP_TASKS_PER_NODE": "2"}
    os.environ.update({"SLURM_" + name: value for name, value in names.items()})
    try:
        made = Slurm({"ps": 1, "worker": 1}, 9000, 2, 1, 2, auto_set_gpu=False)
        told = [made.cluster_spec().as_dict(), list(made.get_task_info())]
        try:
            Slurm({"ps": 1, "worker": 1}, tasks_per_node=2)  # with one GPU a node and a task unless given
        except RuntimeError as error:
            told.append(type(error).__name__)
        return told
    finally:
        for name in names:
            del os.environ["SLURM_" + name]
