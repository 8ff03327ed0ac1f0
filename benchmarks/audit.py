"""Cost of ``launch --audit``: steps per second of CPU time with the audit, in percent of those without, at the default interval.

``python benchmarks/audit.py`` prints a Markdown table. On the legacy path, a worker and a parameter server of TensorFlow's train over gRPC in
this process. Blocks of steps with and without the hook take turns in one session, so that other load on the machine slows both. On the modern
path, one training audits in every other block: in one process, or in three with a chief, a worker and a server. CPU time differs by a tenth
from block to block, which would hide the price of one audit. So 10 times as many audits as by default are measured, and the cost is divided by
10. Figures are medians of the ratios of neighbouring blocks, with the interval that holds the true median with 95 % probability.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
from turns import interval

from estimator_bridge.cluster.audit_records import EVERY, AuditPlan
from estimator_bridge.cluster.rendezvous import VARIABLE
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.legacy import install

install()

import tensorflow as tf  # noqa: E402

from estimator_bridge.legacy.distribution.launched.audit_hook import AuditHook  # noqa: E402
from estimator_bridge.modern.callbacks.base import Callback, Progress  # noqa: E402
from estimator_bridge.modern.callbacks.launcher_reports import AuditReport  # noqa: E402
from estimator_bridge.modern.distribution import parameter_servers as cluster  # noqa: E402
from estimator_bridge.modern.distribution.parameter_server_audit import BatchReport  # noqa: E402
from estimator_bridge.modern.engine import ModernEngine  # noqa: E402
from estimator_bridge.modern.training import train as modern_training  # noqa: E402
from estimator_bridge.modern.training.parameter_servers import train  # noqa: E402
from estimator_bridge.modern.training.parameter_servers.step_pool import StepPool  # noqa: E402
from estimator_bridge.modern.training.step_loop import Ran  # noqa: E402
from estimator_bridge.runtime.estimator_calls import TrainCall  # noqa: E402

v1 = tf.compat.v1
_PAIRS = 40
_OFTEN = 10  # times as many audits as by default: one in each call of a compiled function, which has at most so many steps
_SERVED = "modern, parameter servers"
_BLOCK = {"legacy": 500, "modern": 2000, _SERVED: 400}  # steps; the system counts CPU time in hundredths of a second
_FIRST_BLOCKS = 4  # of steps that are all audited, and others that are slow
_ROWS, _WORDS = 32, 200_000
MODELS = ("dense", "embedding")


def batch(features: int = 64) -> Any:
    """Returns a dataset of numbers and words."""
    draws = np.random.RandomState(0)
    x = draws.rand(_ROWS * 8, features).astype(np.float32)
    words = draws.randint(0, _WORDS, [_ROWS * 8, 8])
    return tf.data.Dataset.from_tensor_slices(({"x": x, "words": words}, x[:, :1])).repeat().batch(_ROWS)


def loss_of(model: str, features: Any, labels: Any) -> Any:
    """Returns the loss of a network of 21,000 weights; the embedding beside it has 3.2 million."""
    x = features["x"]
    if model == "embedding":
        table = v1.get_variable("table", [_WORDS, 16])
        x = tf.concat([x, tf.reduce_mean(tf.nn.embedding_lookup(table, features["words"]), 1)], 1)
    for units in (128, 96):
        x = v1.layers.dense(x, units, tf.nn.relu)
    return v1.losses.mean_squared_error(labels, v1.layers.dense(x, 1))


def _addresses(*jobs: str) -> tf.train.ClusterSpec:
    return tf.train.ClusterSpec({job: [f"127.0.0.1:{port}"] for job, port in zip(jobs, free_ports(len(jobs)), strict=True)})


def legacy(model: str, folder: Path) -> Iterator[float]:
    """Yields the ratios of the seconds of a block without the audit to those of its neighbour with it."""
    addresses = _addresses("ps", "worker")
    servers = [tf.distribute.Server(addresses, job, 0) for job in ("ps", "worker")]
    config = SimpleNamespace(task_type="worker", task_id=0, num_ps_replicas=1)
    with tf.Graph().as_default(), v1.device(v1.train.replica_device_setter(cluster=addresses)):
        step = v1.train.get_or_create_global_step()
        features, labels = v1.data.make_one_shot_iterator(batch()).get_next()
        loss = loss_of(model, features, labels)
        train_op = v1.train.AdagradOptimizer(0.01).minimize(loss, step)
        hook = AuditHook(AuditPlan(EVERY // _OFTEN, folder), config, [[*features.values(), labels]], step, [])
        hook.begin()
        with v1.Session(servers[1].target) as session:
            session.run(v1.global_variables_initializer())
            hook.after_create_session(session, None)
            context = SimpleNamespace(session=session)
            for _ in range(3):
                _block(context, [train_op, loss], hook)
            for _ in range(_PAIRS):
                yield _ratio(_block(context, [train_op, loss], None), _block(context, [train_op, loss], hook))


def _block(context: Any, fetches: list[Any], hook: AuditHook | None) -> float:
    start = time.process_time()
    for _ in range(_BLOCK["legacy"]):
        asked = hook.before_run(context) if hook else None
        _, audited = context.session.run((fetches, asked.fetches if asked else []))
        if hook:
            hook.after_run(context, SimpleNamespace(results=audited if asked else None))
    return time.process_time() - start


def _ratio(plain: float, audited: float) -> float:
    """Returns the ratio of seconds for as many audits as by default."""
    return 1 / (1 + (audited / plain - 1) / _OFTEN)


class Blocks(Callback):
    """CPU seconds of processes for each block.

    Args:
        processes: Processes that train.
        steps: Number of steps in a block.
    """

    def __init__(self, processes: Sequence[psutil.Process], steps: int) -> None:
        self.seconds: list[float] = []
        self._processes = processes
        self._steps = steps
        self._last = 0.0

    def next_stop(self, step: int) -> int:
        """Returns the step at which the block ends."""
        return (step // self._steps + 1) * self._steps

    def after(self, progress: Progress) -> bool:
        """Records the CPU seconds of a block that has ended."""
        if progress.step % self._steps == 0:
            now = sum(sum(process.cpu_times()[:2]) for process in self._processes)
            self.seconds.append(now - self._last)
            self._last = now
        return False

    def ratios(self) -> Iterator[float]:
        """Yields the ratio of each block without an audit to the next one."""
        plain, audited = (self.seconds[_FIRST_BLOCKS + first :: 2] for first in (0, 1))
        yield from map(_ratio, plain, audited)


def _is_audited(path: str, step: int) -> bool:
    """Returns True if the step after ``step`` steps is in a block with audits."""
    return step // _BLOCK[path] % 2 == 1


def _steps(path: str) -> int:
    return _BLOCK[path] * (2 * _PAIRS + _FIRST_BLOCKS)


class InBlocks(AuditReport):
    """Audits in every other block."""

    def next_stop(self, step: int) -> int | None:
        """Returns the next audited step, in blocks with audits."""
        return super().next_stop(step) if _is_audited("modern", step) else None

    def after(self, progress: Progress) -> bool:
        """Audits the step, in blocks with audits."""
        return super().after(progress) if _is_audited("modern", progress.step - 1) else False


def modern(model: str, folder: Path) -> Iterator[float]:
    """Does what ``legacy`` does, in one training of the modern path."""
    AuditPlan(EVERY // _OFTEN, folder).publish()
    os.environ[VARIABLE] = str(folder)
    modern_training.AuditReport = InBlocks
    blocks = Blocks([psutil.Process()], _BLOCK["modern"])
    _train(model, folder / "model", blocks, _steps("modern"))
    yield from blocks.ratios()


def _train(model: str, folder: Path, callback: Callback, steps: int) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = loss_of(model, features, labels)
        train_op = v1.train.AdagradOptimizer(0.01).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, None, loss, train_op)

    config = tf.estimator.RunConfig(
        str(folder), save_checkpoints_secs=3600, save_summary_steps=10**6, log_step_count_steps=None
    )
    call = TrainCall(batch, steps=steps)
    ModernEngine(callbacks=lambda: [callback]).train(tf.estimator.Estimator(model_fn, config=config), call)


class Switched(StepPool):
    """Audits in every other block."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._own_audit = self._audit

    def run(self, steps: int, *limits: int) -> Ran:
        """Runs steps as ``StepPool`` does, audited or not in turn."""
        self._audit = self._own_audit if _is_audited(_SERVED, self._global_step()) else None
        return super().run(steps, *limits)


def _take_part(model: str, folder: Path, job: str, addresses: dict[str, list[str]]) -> None:
    """Runs a worker or a parameter server of the cluster."""
    os.environ |= {"TF_CONFIG": json.dumps({"cluster": addresses, "task": {"type": job, "index": 0}}), VARIABLE: str(folder)}
    server = tf.distribute.Server(tf.train.ClusterSpec(addresses), job, 0)
    if job == "worker":
        _audit_in_blocks()
        _train(model, folder / "model", Callback(), _steps(_SERVED))
    server.join()


def _audit_in_blocks() -> None:
    feed = cluster.feed(tf.estimator.RunConfig())
    [report] = [report for report in feed._reports if isinstance(report, BatchReport)]
    feed._reports = [lambda step, batch: report(step, batch) if _is_audited(_SERVED, step) else None]


def parameter_servers(model: str, folder: Path) -> Iterator[float]:
    """Yields the same ratios as ``legacy``, from the summed CPU seconds of a chief, a worker and a parameter server in one training."""
    addresses = _addresses("chief", "worker", "ps").as_dict()
    AuditPlan(EVERY // _OFTEN, folder).publish()
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=_take_part, args=(model, folder, job, addresses), daemon=True) for job in ("worker", "ps")]
    for process in others:
        process.start()
    os.environ |= {
        "TF_CONFIG": json.dumps({"cluster": addresses, "task": {"type": "chief", "index": 0}}),
        VARIABLE: str(folder),
    }
    _audit_in_blocks()
    train.StepPool = Switched
    blocks = Blocks([psutil.Process(), *(psutil.Process(process.pid) for process in others)], _BLOCK[_SERVED])
    try:
        _train(model, folder / "model", blocks, _steps(_SERVED))
    finally:
        for process in others:
            process.kill()
    yield from blocks.ratios()


WAYS = {"legacy": legacy, "modern": modern, _SERVED: parameter_servers}


def _measured(path: str, model: str) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        return list(WAYS[path](model, Path(folder)))


def main() -> None:
    """Prints the table."""
    print(f"| path | model | steps a CPU second, of those without, one step in {EVERY} | 95 % interval |\n|---|---|---|---|")
    for path, model in itertools.product(WAYS, MODELS):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:  # one trains on parameter servers once
            ratios = process.submit(_measured, path, model).result()
            low, high = interval(ratios)
            print(f"| {path} | {model} | {statistics.median(ratios):.1%} | {low:.1%} to {high:.1%} |", flush=True)


if __name__ == "__main__":
    main()
