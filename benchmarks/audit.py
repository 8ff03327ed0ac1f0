"""What ``launch --audit`` costs: steps in a second of CPU time with it in percent of those without, at the default distance of audits.

``python benchmarks/audit.py`` prints a Markdown table. Legacy path: a worker and a parameter server of TensorFlow's, over gRPC, in this
process; blocks of as many steps as lie between two audited ones, with and without the hook in turn, in one session, so that whatever else the
machine does slows both. Modern path: trainings of one process in turn. Figures are medians of the ratios of neighbours.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from estimator_bridge.cluster.ports import free_ports
from estimator_bridge.compat.audit_reports import EVERY, Auditing
from estimator_bridge.compat.rendezvous import VARIABLE, Rendezvous
from estimator_bridge.legacy import install

install()

import tensorflow as tf  # noqa: E402

from estimator_bridge.legacy.launched.audit_hook import AuditHook  # noqa: E402
from estimator_bridge.modern.callbacks.base import Callback, Progress  # noqa: E402
from estimator_bridge.modern.engine import ModernEngine  # noqa: E402

v1 = tf.compat.v1
_PAIRS = {"legacy": 30, "modern": 5}
_WARM_UP, _STEPS = 500, 4000  # of a training on the modern path
_ROWS, _WORDS = 32, 200_000
MODELS = ("dense", "embedding")


def batch(features: int = 64) -> Any:
    """Rows of numbers, and of words."""
    draws = np.random.RandomState(0)
    x = draws.rand(_ROWS * 8, features).astype(np.float32)
    words = draws.randint(0, _WORDS, [_ROWS * 8, 8])
    return tf.data.Dataset.from_tensor_slices(({"x": x, "words": words}, x[:, :1])).repeat().batch(_ROWS)


def loss_of(model: str, features: Any, labels: Any) -> Any:
    """A network of 21,000 weights; the embedding beside it has 3.2 million."""
    x = features["x"]
    if model == "embedding":
        table = v1.get_variable("table", [_WORDS, 16])
        x = tf.concat([x, tf.reduce_mean(tf.nn.embedding_lookup(table, features["words"]), 1)], 1)
    for units in (128, 96):
        x = v1.layers.dense(x, units, tf.nn.relu)
    return v1.losses.mean_squared_error(labels, v1.layers.dense(x, 1))


def legacy(model: str, folder: Path) -> Iterator[float]:
    """Ratios of the seconds of a block without the audit to those of its neighbour with it."""
    ports = zip(("ps", "worker"), free_ports(2), strict=True)
    cluster = tf.train.ClusterSpec({job: [f"127.0.0.1:{port}"] for job, port in ports})
    servers = [tf.distribute.Server(cluster, job, 0) for job in ("ps", "worker")]
    config = SimpleNamespace(task_type="worker", task_id=0, num_ps_replicas=1)
    with tf.Graph().as_default(), v1.device(v1.train.replica_device_setter(cluster=cluster)):
        step = v1.train.get_or_create_global_step()
        features, labels = v1.data.make_one_shot_iterator(batch()).get_next()
        loss = loss_of(model, features, labels)
        train_op = v1.train.AdagradOptimizer(0.01).minimize(loss, step)
        hook = AuditHook(Auditing(EVERY, folder), config, [[*features.values(), labels]], step, [])
        hook.begin()
        with v1.Session(servers[1].target) as session:
            session.run(v1.global_variables_initializer())
            hook.after_create_session(session, None)
            context = SimpleNamespace(session=session)
            for _ in range(3):
                _block(context, [train_op, loss], hook)
            for _ in range(_PAIRS["legacy"]):
                yield _block(context, [train_op, loss], None) / _block(context, [train_op, loss], hook)


def _block(context: Any, fetches: list[Any], hook: AuditHook | None) -> float:
    start = time.process_time()
    for _ in range(EVERY):
        asked = hook.before_run(context) if hook else None
        _, audited = context.session.run((fetches, asked.fetches if asked else []))
        if hook:
            hook.after_run(context, SimpleNamespace(results=audited if asked else None))
    return time.process_time() - start


class Clock(Callback):
    """Seconds from the warm-up's end to the last step."""

    seconds = 0.0

    def next_stop(self, step: int) -> int | None:
        """The end of the warm-up."""
        return _WARM_UP if step < _WARM_UP else None

    def after(self, progress: Progress) -> bool:
        """Notes the time."""
        if progress.step <= _WARM_UP:
            self._start = time.process_time()
        self.seconds = time.process_time() - self._start
        return False


def modern(model: str, folder: Path) -> Iterator[float]:
    """As ``legacy``, of whole trainings."""
    meeting = Rendezvous(folder)
    Auditing(EVERY, folder).ask()
    for number in range(_PAIRS["modern"]):
        yield _training(model, folder / f"plain{number}", None) / _training(model, folder / f"audited{number}", meeting)


def _training(model: str, folder: Path, meeting: Rendezvous | None) -> float:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = loss_of(model, features, labels)
        train_op = v1.train.AdagradOptimizer(0.01).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, None, loss, train_op)

    os.environ[VARIABLE] = str(meeting.folder) if meeting else ""
    clock = Clock()
    config = tf.estimator.RunConfig(
        str(folder), save_checkpoints_secs=3600, save_summary_steps=10**6, log_step_count_steps=None
    )
    ModernEngine(callbacks=lambda: [clock]).train(tf.estimator.Estimator(model_fn, config=config), batch, steps=_STEPS)
    return clock.seconds


def main() -> None:
    """Prints the table."""
    print(f"| path | model | steps a CPU second, of those without, one step in {EVERY} | quartiles |\n|---|---|---|---|")
    for path, measure in (("legacy", legacy), ("modern", modern)):
        for model in MODELS:
            with tempfile.TemporaryDirectory() as folder:
                ratios = list(measure(model, Path(folder)))
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"| {path} | {model} | {middle:.1%} | {low:.1%} to {high:.1%} |", flush=True)


if __name__ == "__main__":
    main()
