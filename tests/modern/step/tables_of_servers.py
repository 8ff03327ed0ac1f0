"""Fills a table on a parameter server and on a worker as the chief does, and prints what a lookup there gives before and after."""

import json
import sys
from types import SimpleNamespace

import tensorflow as tf

from estimator_bridge.launcher.ports import free_ports
from tests.modern.jobs import v1

from estimator_bridge.modern.graph.fragments import Fragment, is_source, upstream  # isort: skip
from estimator_bridge.modern.step.transplant import table_filler  # isort: skip

JOBS = ("chief", "ps", "worker")


def main() -> None:
    cluster = tf.train.ClusterSpec({job: [f"127.0.0.1:{port}"] for job, port in zip(JOBS, free_ports(len(JOBS)), strict=True)})
    servers = [tf.distribute.Server(cluster, job, 0) for job in JOBS[1:]]
    tf.config.experimental_connect_to_cluster(cluster, job_name=JOBS[0], task_index=0)
    with tf.Graph().as_default() as graph:
        initializer = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([5, 6], tf.int64))
        words = v1.placeholder(tf.string, [3])
        found = tf.lookup.StaticHashTable(initializer, -1).lookup(words)
        fill = table_filler(SimpleNamespace(collection=graph.get_collection))  # type: ignore[arg-type]
    lookup = Fragment.cut(upstream([found.op], is_source), [found]).function([])

    def looked_up() -> list[int] | str:
        try:
            return [int(number) for number in lookup([], [tf.constant(["b", "c", "a"])])[0].numpy()]
        except tf.errors.FailedPreconditionError:
            tf.experimental.async_clear_error()  # else it may be raised once more, by the operation that fills the table
            return "not filled"

    answers = {}
    for server, job in zip(servers, JOBS[1:], strict=True):
        with tf.device(f"/job:{job}/task:0"):
            answers[server.server_def.job_name] = [looked_up(), bool(fill().numpy()), looked_up()]
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()


main()
