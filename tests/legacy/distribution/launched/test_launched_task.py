"""Differences of a task that a launcher started, without a cluster."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.cli.main import main
from estimator_bridge.cluster.audit_records import AuditPlan, AuditRecord
from estimator_bridge.cluster.loopback import keep_to_loopback
from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.cluster.rendezvous import VARIABLE, Flag, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.legacy import install
from estimator_bridge.legacy.distribution.launched.launched_task import join_launcher
from estimator_bridge.script import run


def _own_address() -> str | None:
    """Returns the address of this machine in its network; no packet is sent for that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(one.getsockname()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot bind a socket to an interface this way")
def test_a_listening_socket_is_kept_to_the_loopback_interface() -> None:
    """TensorFlow's server listens on all interfaces; this is such a socket."""
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        own = _own_address()
        if own:
            socket.create_connection((own, port), timeout=60).close()

        before = sorted(Path("/proc/self/fd").iterdir())  # a copy of a pipe's end that stays open keeps its reader waiting
        assert keep_to_loopback(port)
        assert sorted(Path("/proc/self/fd").iterdir()) == before

        socket.create_connection(("127.0.0.1", port), timeout=60).close()
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0") == b"lo"
        if own:
            with pytest.raises(OSError, match=r"refused|timed out"):
                socket.create_connection((own, port), timeout=2)
    assert not keep_to_loopback(port)


@pytest.mark.parametrize(
    ("error", "step", "said"),
    [
        (BridgeError("A worker is lost."), (7, False), None),
        (NotSupportedError("No."), None, "the request is not supported, so a restart would fail the same way"),
        (SystemExit(3), (7, False), "its script gave this exit code after the training"),
        (SystemExit("not accurate"), (7, False), "its script gave this exit code after the training"),
        (SystemExit(3), (7, True), None),
        (SystemExit(3), None, None),
        (SystemExit(EXIT_CODE), (7, False), None),
        (SystemExit(0), (7, False), None),
    ],
)
def test_a_launcher_learns_of_ends_that_another_start_would_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: tuple[int, bool] | None, said: str | None
) -> None:
    """Others that end with the same exit code may be started again."""

    def end(script: object) -> None:
        raise error

    monkeypatch.setattr(run, "run_legacy", end)
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {}, "task": {"type": "worker", "index": 1}}')
    monkeypatch.delenv(VARIABLE, raising=False)
    code = main(["run", __file__])
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    if step is not None:
        Rendezvous(tmp_path).report_step(TaskId("worker", 1), *step)
    assert main(["run", __file__]) == code

    assert Rendezvous(tmp_path).final_reason(TaskId("worker", 1)) == said
    assert Rendezvous(tmp_path).final_reason(TaskId("worker", 0)) is None


def test_an_exit_code_that_an_exception_led_to_is_not_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(script: object) -> None:
        try:
            Path(tmp_path, "gone").read_bytes()
        except OSError:
            sys.exit(3)

    monkeypatch.setattr(run, "run_legacy", end)
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {}, "task": {"type": "worker", "index": 1}}')
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    Rendezvous(tmp_path).report_step(TaskId("worker", 1), 7, training=False)
    assert main(["run", __file__]) == 3
    assert Rendezvous(tmp_path).final_reason(TaskId("worker", 1)) is None


def test_the_waits_of_a_launched_task_and_of_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow's own values, 30 s and 5 s, are there before and after."""
    install()
    from tensorflow.python.training.session_manager import SessionManager
    from tensorflow_estimator.python.estimator import training

    def waits() -> tuple[float, float]:
        with tf.Graph().as_default():
            return SessionManager()._recovery_wait_secs, training._DELAY_SECS_PER_WORKER

    monkeypatch.delenv(VARIABLE, raising=False)
    with join_launcher():
        assert waits() == (30, 5)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with join_launcher():
        assert waits() == (1, 0)
        started = time.monotonic()
        training.time.sleep(0.2)
        assert time.monotonic() - started >= 0.2
        Rendezvous(tmp_path).set_flag(Flag.TRAINED)
        training.time.sleep(600)
    assert waits() == (30, 5)
    assert time.monotonic() - started < 300


def test_the_last_evaluation_is_one_that_began_after_training_had_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    from tensorflow_estimator.python.estimator import training

    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with join_launcher():
        listener = training._ContinuousEvalListener()
        assert listener.before_eval()
        Rendezvous(tmp_path).set_flag(Flag.TRAINED)
        assert listener.after_eval(None), "its checkpoint may not have been the last"
        assert listener.before_eval()
        assert not listener.after_eval(None)


def test_a_task_with_a_server_waits_for_the_servers_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    from tensorflow_estimator.python.estimator import training

    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(training._TrainingExecutor, "_start_std_server", lambda self, config: "server")
    with join_launcher():
        events: list[str] = []

        def report_ready() -> None:
            events.append("ready")
            Rendezvous(tmp_path).set_flag(Flag.READY)

        (ready := threading.Timer(0.3, report_ready)).start()
        assert training._TrainingExecutor._start_std_server(None, None) == "server"
        assert events == ["ready"]
        ready.join()


def test_an_audit_keeps_no_graph_of_what_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations between trainings would fill the memory of a long job."""
    install()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    v1, graphs = tf.compat.v1, []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        graphs.append(weakref.ref(v1.get_default_graph()))
        loss = tf.reduce_mean(v1.layers.dense(features, 1))
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
        return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    auditing = AuditPlan(500, tmp_path)
    auditing.publish()
    estimator = v1.estimator.Estimator(model_fn, str(tmp_path / "model"))
    with join_launcher():
        estimator.train(lambda: tf.data.Dataset.from_tensors([[1.0]]), steps=1)
        estimator.evaluate(lambda: tf.data.Dataset.from_tensors([[1.0]]), steps=1)
    gc.collect()

    reports = [AuditRecord.from_json(line) for line in auditing.file(TaskId("worker", 0)).read_text().splitlines()]
    assert [len(report.batches) for report in reports] == [0, 1]
    assert [graph() for graph in graphs] == [None, None]
