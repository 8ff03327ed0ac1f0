"""A task waits for the servers of all others, and for nothing else.

Estimator knows nothing of a launcher, so it waits on the clock: worker i for 5 (i + 1) seconds, a worker that finds the variables not
initialized yet for 30, an evaluator for ``EvalSpec.throttle_secs`` though training has ended, and a server for ever.
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
_RECOVERY_WAIT_SECONDS = 1  # between two looks whether the chief has initialized the variables; TensorFlow's is 30


def patches(meeting: Rendezvous) -> list[Any]:
    """What a launcher changes in the waits of tensorflow-estimator and of the distribute coordinator."""
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
        replaced(executor, _start_std_server=_together(executor._start_std_server, meeting)),
        replaced(distribute_coordinator, _run_std_server=_together(distribute_coordinator._run_std_server, meeting)),
        replaced(manager.__init__, __defaults__=_defaults(manager.__init__, recovery_wait_secs=_RECOVERY_WAIT_SECONDS)),
    ]
    if meeting.has_flag(Flag.LOOPBACK):
        changed.append(replaced(server_lib.Server, __init__=_on_loopback(server_lib.Server.__init__)))
    return changed


def _defaults(function: Any, **changed: Any) -> tuple[Any, ...]:
    """A function's defaults with some of them changed."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(changed.get(one.name, one.default) for one in parameters if one.default is not one.empty)


def _until_trained(meeting: Rendezvous) -> Any:
    """``time.sleep`` of an evaluator, which has nothing to wait for once training has ended."""

    def sleep(seconds: float) -> None:
        end = time.monotonic() + seconds
        while not meeting.has_flag(Flag.TRAINED) and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))

    return sleep


def _last_evaluation(meeting: Rendezvous) -> dict[str, Any]:
    """An evaluation that began after training had ended is the last, whatever the global step; Estimator waits for max_steps."""

    def before_eval(self: Any) -> bool:
        self.is_last = meeting.has_flag(Flag.TRAINED)
        return True

    def after_eval(self: Any, eval_result: Any) -> bool:
        return not self.is_last

    return {"before_eval": before_eval, "after_eval": after_eval}


def _together(start: Any, meeting: Rendezvous) -> Any:
    """Starts the server, then waits until those of the others answer too; the launcher sets the deadline, and ends us after it."""

    @functools.wraps(start)
    def start_server(*args: Any, **kwargs: Any) -> Any:
        server = start(*args, **kwargs)
        while not meeting.has_flag(Flag.READY):
            time.sleep(_POLL_SECONDS)
        return server

    return start_server


def _on_loopback(init: Any) -> Any:
    """TensorFlow's server listens on every network interface, whatever address it is given: this one gets the loopback interface."""

    @functools.wraps(init)
    def on_loopback(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        keep_to_loopback_or_warn(int(self.target.rpartition(":")[2]))

    return on_loopback
