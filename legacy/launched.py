"""What is different in a task that ``estimator-bridge launch`` started: nobody trains before all are there, and nobody waits in vain.

Estimator knows nothing of a launcher, so it waits on the clock: worker i for 5 (i + 1) seconds, a worker that finds the variables not
initialized yet for 30, an evaluator for ``EvalSpec.throttle_secs`` though training has ended, and a server for ever.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import time
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

from estimator_bridge.compat.loopback import keep_to_loopback
from estimator_bridge.compat.rendezvous import Mark, Rendezvous
from estimator_bridge.legacy import auditing

_POLL_SECONDS = 0.05
_RECOVERY_WAIT_SECONDS = 1  # between two looks whether the chief has initialized the variables; TensorFlow's is 30
_REPORT_SECONDS = 1.0  # between two reports of the global step


@contextlib.contextmanager
def launched() -> Iterator[None]:
    """While active, tasks of Estimator meet the launcher that started this process; without one nothing is changed."""
    meeting = Rendezvous.of_this_process()
    if meeting is None:
        yield
        return
    from tensorflow.python.training import server_lib, session_manager
    from tensorflow_estimator.python.estimator import estimator, training

    manager = session_manager.SessionManager
    patches = [
        mock.patch.object(training, "_DELAY_SECS_PER_WORKER", 0),
        mock.patch.object(training, "time", types.SimpleNamespace(time=time.time, sleep=_until_trained(meeting))),
        mock.patch.multiple(training._ContinuousEvalListener, **_last_evaluation(meeting)),
        mock.patch.object(training._TrainingExecutor, "_start_std_server", _start_together(training, meeting)),
        mock.patch.object(estimator.Estimator, "_train_with_estimator_spec", _reporting(estimator, meeting)),
        mock.patch.object(
            manager.__init__, "__defaults__", _defaults(manager.__init__, recovery_wait_secs=_RECOVERY_WAIT_SECONDS)
        ),
    ]
    if meeting.said(Mark.LOOPBACK):
        patches.append(mock.patch.object(server_lib.Server, "__init__", _on_loopback(server_lib.Server.__init__)))
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        for patch in auditing.patches(meeting):  # of what is patched by now
            stack.enter_context(patch)
        yield


def _defaults(function: Any, **changed: Any) -> tuple[Any, ...]:
    """A function's defaults with some of them changed."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(changed.get(one.name, one.default) for one in parameters if one.default is not one.empty)


def _until_trained(meeting: Rendezvous) -> Any:
    """``time.sleep`` of an evaluator, which has nothing to wait for once training has ended."""

    def sleep(seconds: float) -> None:
        end = time.monotonic() + seconds
        while not meeting.said(Mark.TRAINED) and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))

    return sleep


def _last_evaluation(meeting: Rendezvous) -> dict[str, Any]:
    """An evaluation that began after training had ended is the last, whatever the global step; Estimator waits for max_steps."""

    def before_eval(self: Any) -> bool:
        self.is_last = meeting.said(Mark.TRAINED)
        return True

    def after_eval(self: Any, eval_result: Any) -> bool:
        return not self.is_last

    return {"before_eval": before_eval, "after_eval": after_eval}


def _start_together(training: Any, meeting: Rendezvous) -> Any:
    """Starts the server, then waits until those of the others answer too; the launcher sets the deadline, and ends us after it."""
    start = training._TrainingExecutor._start_std_server

    @functools.wraps(start)
    def start_std_server(self: Any, config: Any) -> Any:
        server = start(self, config)
        while not meeting.said(Mark.READY):
            time.sleep(_POLL_SECONDS)
        return server

    return start_std_server


def _reporting(estimator: Any, meeting: Rendezvous) -> Any:
    train = estimator.Estimator._train_with_estimator_spec

    @functools.wraps(train)
    def train_with_estimator_spec(self: Any, spec: Any, worker_hooks: Any, hooks: Any, step: Any, listeners: Any) -> Any:
        hook = _step_reporter(meeting, self.config.task_type, self.config.task_id, step)
        return train(self, spec, [*worker_hooks, hook], hooks, step, listeners)

    return train_with_estimator_spec


def _step_reporter(meeting: Rendezvous, job: str, index: int, step: Any) -> Any:
    import tensorflow as tf

    class StepReporter(tf.compat.v1.train.SessionRunHook):
        """Reports the global step once a second, and at the end."""

        def __init__(self) -> None:  # the base class has nothing to set, and tells of its deprecation
            self.reported_at = -_REPORT_SECONDS

        def before_run(self, run_context: Any) -> Any:
            due = time.monotonic() - self.reported_at >= _REPORT_SECONDS
            return tf.compat.v1.train.SessionRunArgs(step) if due else None

        def after_run(self, run_context: Any, run_values: Any) -> None:
            if run_values.results is not None:
                meeting.report_step(job, index, int(run_values.results))
                self.reported_at = time.monotonic()

        def end(self, session: Any) -> None:
            meeting.report_step(job, index, int(session.run(step)))

    return StepReporter()


def _on_loopback(init: Any) -> Any:
    """TensorFlow's server listens on every network interface, whatever address it is given: this one gets the loopback interface."""

    @functools.wraps(init)
    def on_loopback(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        port = int(self.target.rpartition(":")[2])
        if not keep_to_loopback(port):
            sys.stderr.write(
                f"estimator-bridge: other machines can reach the server at port {port}: {sys.platform} cannot prevent it\n"
            )

    return on_loopback
