"""Replaces Estimator's waits by the clock: a task waits only for the servers of all others.

Estimator knows no launcher. So worker i waits 5 (i + 1) seconds, a worker that finds variables not initialized 30 seconds, an evaluator
``EvalSpec.throttle_secs`` even after training has ended, and a server for ever.
"""

from __future__ import annotations

import functools
import inspect
import time
import types
from typing import Any

from estimator_bridge.cluster.loopback import keep_to_loopback_or_warn
from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.runtime.patching import replaced

_POLL_SECONDS = 0.05
_RECOVERY_WAIT_SECONDS = 1  # between two checks that the chief has initialized the variables; TensorFlow waits 30


def patches(meeting: Rendezvous) -> list[Any]:
    """Returns patches of the waits in tensorflow-estimator and in the distribute coordinator."""
    from tensorflow.python.distribute import distribute_coordinator
    from tensorflow.python.training import server_lib, session_manager
    from tensorflow_estimator.python.estimator import training

    executor, manager = training._TrainingExecutor, session_manager.SessionManager
    changed = [
        replaced(
            training,
            _DELAY_SECS_PER_WORKER=0,
            time=types.SimpleNamespace(time=time.time, sleep=_until_trained(meeting)),
        ),
        replaced(training._ContinuousEvalListener, **_last_evaluation(meeting)),
        replaced(executor, _start_std_server=_await_others(executor._start_std_server, meeting)),
        replaced(distribute_coordinator, _run_std_server=_await_others(distribute_coordinator._run_std_server, meeting)),
        replaced(manager.__init__, __defaults__=_defaults(manager.__init__, recovery_wait_secs=_RECOVERY_WAIT_SECONDS)),
    ]
    if meeting.has_flag(Flag.LOOPBACK):
        changed.append(replaced(server_lib.Server, __init__=_on_loopback(server_lib.Server.__init__)))
    return changed


def _defaults(function: Any, **changed: Any) -> tuple[Any, ...]:
    """Returns a function's defaults, some of them changed."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(changed.get(one.name, one.default) for one in parameters if one.default is not one.empty)


def _until_trained(meeting: Rendezvous) -> Any:
    """Returns the ``time.sleep`` of an evaluator, which ends when training has ended."""

    def sleep(seconds: float) -> None:
        end = time.monotonic() + seconds
        while not meeting.has_flag(Flag.TRAINED) and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))

    return sleep


def _last_evaluation(meeting: Rendezvous) -> dict[str, Any]:
    """Returns the listener methods by which an evaluation that began after the training's end is the last; Estimator waits for max_steps."""

    def before_eval(self: Any) -> bool:
        self.is_last = meeting.has_flag(Flag.TRAINED)
        return True

    def after_eval(self: Any, eval_result: Any) -> bool:
        return not self.is_last

    return {"before_eval": before_eval, "after_eval": after_eval}


def _await_others(start: Any, meeting: Rendezvous) -> Any:
    """Starts the server, then waits until all others answer. The launcher sets the deadline, and ends this task after it."""

    @functools.wraps(start)
    def start_server(*args: Any, **kwargs: Any) -> Any:
        server = start(*args, **kwargs)
        while not meeting.has_flag(Flag.READY):
            time.sleep(_POLL_SECONDS)
        return server

    return start_server


def _on_loopback(init: Any) -> Any:
    """Keeps a server to the loopback interface: TensorFlow's listens on every interface, whatever its address."""

    @functools.wraps(init)
    def on_loopback(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        keep_to_loopback_or_warn(int(self.target.rpartition(":")[2]))

    return on_loopback
