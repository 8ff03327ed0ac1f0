"""``tf.contrib.cluster_resolver``: who is in a cluster; all of it lives on in ``tf.distribute.cluster_resolver``."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

__all__ = [
    "ClusterResolver",
    "GCEClusterResolver",
    "KubernetesClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionClusterResolver",
]

ClusterResolver = tf.distribute.cluster_resolver.ClusterResolver
GCEClusterResolver = tf.distribute.cluster_resolver.GCEClusterResolver
KubernetesClusterResolver = tf.distribute.cluster_resolver.KubernetesClusterResolver
SimpleClusterResolver = tf.distribute.cluster_resolver.SimpleClusterResolver
TFConfigClusterResolver = tf.distribute.cluster_resolver.TFConfigClusterResolver
TPUClusterResolver = tf.distribute.cluster_resolver.TPUClusterResolver
UnionClusterResolver = tf.distribute.cluster_resolver.UnionResolver


class SlurmClusterResolver(tf.distribute.cluster_resolver.SlurmClusterResolver):
    """The cluster of a Slurm job; one GPU a node and a task unless given, where later TensorFlows count them."""

    def __init__(
        self,
        jobs: Any,
        port_base: int = 8888,
        gpus_per_node: int = 1,
        gpus_per_task: int = 1,
        tasks_per_node: Any = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        super().__init__(jobs, port_base, gpus_per_node, gpus_per_task, tasks_per_node, auto_set_gpu, rpc_layer)
