"""Replaces Estimator's waits by the clock: a task waits only for the servers of all others.

Estimator knows no launcher. So worker i waits 5 (i + 1) seconds, a worker that finds variables not initialized 30 seconds, an evaluator
``EvalSpec.throttle_secs`` even after training has ended, and a server for ever.
"""

import functools
import inspect
import time
import types
from typing import Any

from tensorflow.python.distribute import distribute_coordinator
from tensorflow.python.training import server_lib, session_manager

from estimator_bridge.cluster.loopback import keep_to_loopback_or_warn
from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.runtime.patching import replaced, wrapped

_POLL_SECONDS = 0.05
_RECOVERY_WAIT_SECONDS = 1  # between two checks that the chief has initialized the variables; TensorFlow waits 30


def patches(rendezvous: Rendezvous) -> list[Any]:
    """Returns patches of the waits in tensorflow-estimator and in the distribute coordinator."""
    from tensorflow_estimator.python.estimator import training

    clock = types.SimpleNamespace(time=time.time, sleep=functools.partial(_sleep_until_trained, rendezvous))
    start = functools.partial(_start_server, rendezvous)
    make_manager = session_manager.SessionManager.__init__
    changed = [
        replaced(training, _DELAY_SECS_PER_WORKER=0, time=clock),
        replaced(training._ContinuousEvalListener, **_last_evaluation(rendezvous)),
        wrapped(training._TrainingExecutor, _start_std_server=start),
        wrapped(distribute_coordinator, _run_std_server=start),
        replaced(make_manager, __defaults__=_defaults(make_manager, recovery_wait_secs=_RECOVERY_WAIT_SECONDS)),
    ]
    if rendezvous.has_flag(Flag.LOOPBACK):
        changed.append(wrapped(server_lib.Server, __init__=_make_on_loopback))
    return changed


def _defaults(function: Any, **changed: Any) -> tuple[Any, ...]:
    """Returns a function's defaults, some of them changed."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(changed.get(one.name, one.default) for one in parameters if one.default is not one.empty)


def _sleep_until_trained(rendezvous: Rendezvous, seconds: float) -> None:
    """Sleeps in an evaluator until training has ended, at most for some seconds."""
    end = time.monotonic() + seconds
    while not rendezvous.has_flag(Flag.TRAINED) and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _POLL_SECONDS))


def _last_evaluation(rendezvous: Rendezvous) -> dict[str, Any]:
    """Returns the listener methods by which an evaluation that began after the training's end is the last; Estimator waits for max_steps."""

    def before_eval(self: Any) -> bool:
        self.is_last = rendezvous.has_flag(Flag.TRAINED)
        return True

    def after_eval(self: Any, eval_result: Any) -> bool:
        return not self.is_last

    return {"before_eval": before_eval, "after_eval": after_eval}


def _start_server(rendezvous: Rendezvous, start: Any, *args: Any, **kwargs: Any) -> Any:
    """Starts the server, then waits until all others answer. The launcher sets the deadline, and ends this task after it."""
    server = start(*args, **kwargs)
    while not rendezvous.has_flag(Flag.READY):
        time.sleep(_POLL_SECONDS)
    return server


def _make_on_loopback(init: Any, server: Any, *args: Any, **kwargs: Any) -> None:
    """Keeps a server to the loopback interface: TensorFlow's listens on every interface, whatever its address."""
    init(server, *args, **kwargs)
    keep_to_loopback_or_warn(int(server.target.rpartition(":")[2]))
