"""Watches the tasks of a cluster on this machine: from their start over the pre-flight to the end of the last one."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from estimator_bridge.cluster.asking import Health, ask
from estimator_bridge.cluster.display import Show, told
from estimator_bridge.cluster.layout import TRAINERS, Layout
from estimator_bridge.cluster.starting import Spawner
from estimator_bridge.cluster.task import Sink, State, Task
from estimator_bridge.compat.rendezvous import Mark, Rendezvous
from estimator_bridge.errors import BridgeError

_KILL_SECONDS = 10.0  # for the guards to end what is left
_POLL_SECONDS = 0.1
_ASK_SECONDS = 0.5  # between two rounds of asking, and the deadline of one
_LINES_SHOWN = 15  # of the output of a task that failed
_PORT_TAKEN = ("Could not start gRPC server", "Address already in use")  # TensorFlow's words, and the system's


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a cluster ended.

    Attributes:
        code: exit code.
        problem: what went wrong; None where nothing did, or where the user ended it.
        port_taken: it never came up, since a port was in use.
    """

    code: int
    problem: BridgeError | None = None
    port_taken: bool = False


@dataclasses.dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds.

    Attributes:
        ready: from the start until every server answers; 0 means that none is asked.
        finish: from the end of the chief, and of each task after it, until the next one has ended.
        grace: from SIGTERM to SIGKILL.
    """

    ready: float = 120.0
    finish: float = 600.0
    grace: float = 5.0


Judge = Callable[[bool], BridgeError | None]
"""Gets whether training is over, so that nothing more will be reported; returns what is wrong, which ends everything, or None."""


class Supervisor:
    """Starts tasks, says how they are, and ends them.

    Args:
        layout: of the cluster.
        tasks: not started yet.
        starter: starts them.
        meeting: where the tasks report and are told.
        limits: of time.
        say: takes lines for the reader.
        show: takes the tasks, at every look.
        judges: of what the tasks report, asked at every look.
    """

    def __init__(
        self,
        layout: Layout,
        tasks: Sequence[Task],
        starter: Spawner,
        meeting: Rendezvous,
        limits: Limits,
        say: Sink,
        show: Show,
        judges: Sequence[Judge] = (),
    ) -> None:
        self._layout = layout
        self._tasks = tasks
        self._starter = starter
        self._trainers = sorted((task for task in tasks if task.name.job in TRAINERS), key=lambda task: task.name)
        self._meeting = meeting
        self._limits = limits
        self._say = say
        self._show = show
        self._judges = judges
        self._signals: list[int] = []
        self._asked_at = self._started_at = 0.0

    def run(self) -> Outcome:
        """Runs the cluster to its end; when this returns, no process of it is left."""
        with self._signals_noted():
            try:
                return self._watch()
            finally:
                self._end()

    def _watch(self) -> Outcome:
        self._started_at = time.monotonic()
        serving = [task for task in self._tasks if task.name in self._layout.addresses]
        if self._limits.ready == 0 or len(self._layout.addresses) == 1 or not serving:  # a chief alone starts no server
            self._meeting.say(Mark.READY)
        for task in self._tasks:
            task.start(self._starter)
        while True:
            self._look()
            for judge in (self._interrupted, self._failed, self._unready, self._overdue, self._judged, self._finished):
                if (outcome := judge()) is not None:
                    return outcome
            time.sleep(_POLL_SECONDS)

    def _look(self) -> None:
        for task in self._tasks:
            if (step := self._meeting.step(task.name.job, task.name.index)) is not None:
                task.reached(step)
            if task.poll():
                self._say("launch", f"{task.name}: {task.state.value}, exit code {task.exit_code}")
        self._show(self._tasks)

    def _interrupted(self) -> Outcome | None:
        return Outcome(128 + self._signals[0]) if self._signals else None

    def _failed(self) -> Outcome | None:
        """The first task that ended with an error, or that served no longer while others trained."""
        trained = all(task.state.ended for task in self._trainers)
        ended = [
            task for task in self._tasks if task.state.ended and (task.exit_code or (task.name.job == "ps" and not trained))
        ]
        ended = [task for task in ended if task.state is not State.STOPPED]
        if not ended:
            return None
        task = min(ended, key=lambda task: (task.ended_at, task.name))
        task.state = State.FAILED
        lines = [line for line in task.tail if line.strip()][-_LINES_SHOWN:]
        problem = BridgeError(
            f"{task.name} ended with exit code {task.exit_code}, so the others were ended.",
            expected="that it serves until the training ends" if not task.exit_code else "exit code 0",
            received="\n    ".join(["it printed", *lines]) if lines else "no word on why",
            fix=f"Read {task.log}.",
        )
        taken = not self._meeting.said(Mark.READY) and any(word in line for line in task.tail for word in _PORT_TAKEN)
        return Outcome(task.exit_code or 1, problem, port_taken=taken)

    def _judged(self) -> Outcome | None:
        over = bool(self._trainers) and all(task.state.ended for task in self._trainers)
        problems = (judge(over) for judge in self._judges)
        return next((Outcome(1, problem) for problem in problems if problem is not None), None)

    def _unready(self) -> Outcome | None:
        """The pre-flight: asks the servers now and then until all of them are there."""
        past = self._meeting.said(Mark.READY) or self._meeting.said(Mark.TRAINED)
        if past or time.monotonic() - self._asked_at < _ASK_SECONDS:
            return None
        answers = ask(self._layout.addresses, _ASK_SECONDS)
        self._asked_at = time.monotonic()
        mistaken = [told(answer) for answer in answers if answer.health is Health.MISTAKEN]
        missing = [told(answer) for answer in answers if answer.health is Health.MISSING]
        if not missing and not mistaken:
            self._be_ready([told(answer) for answer in answers])
        elif mistaken or self._asked_at - self._started_at > self._limits.ready:
            return Outcome(
                1,
                BridgeError(
                    f"The cluster is not ready after {self._asked_at - self._started_at:.0f} s.",
                    expected="an answer from the TensorFlow server of each task, which train_and_evaluate starts",
                    received="\n    ".join(mistaken + missing),
                    fix="Read the logs of these tasks, or give them time with --ready-timeout SECONDS.",
                ),
            )
        return None

    def _be_ready(self, lines: Sequence[str]) -> None:
        self._meeting.say(Mark.READY)
        for line in lines:
            self._say("launch", line)
        for task in self._tasks:
            if task.state is State.STARTING and task.name in self._layout.addresses:
                task.state = State.READY

    def _overdue(self) -> Outcome | None:
        """Who still runs, long after the chief."""
        late = [task for task in self._tasks if not task.state.ended and task.name.job != "ps"]
        last = max(task.ended_at for task in self._tasks)
        leader = next(iter(self._trainers), None)  # the chief, or the first worker where there is none
        if leader is None or not leader.state.ended or not late or time.monotonic() - last < self._limits.finish:
            return None
        problem = BridgeError(
            f"{', '.join(str(task.name) for task in late)}: no end {self._limits.finish:g} s after the training's.",
            expected=f"an end soon after {leader.name}'s",
            fix="Read the logs of these tasks, or give them time with --finish-timeout SECONDS.",
        )
        return Outcome(1, problem)

    def _finished(self) -> Outcome | None:
        """Parameter servers never end by themselves; an evaluator does after the last checkpoint, once it knows that it is the last."""
        if not self._trainers:  # a scheduler runs them elsewhere, and ends what is here
            return Outcome(0) if all(task.state.ended for task in self._tasks) else None
        if not all(task.state.ended for task in self._trainers):
            return None
        if not self._meeting.said(Mark.TRAINED):
            self._meeting.say(Mark.TRAINED)
            self._terminate("ps")
        if all(task.state.ended for task in self._tasks if task.name.job != "ps"):
            return Outcome(0)
        return None

    def _terminate(self, *jobs: str) -> None:
        for task in self._tasks:
            if not jobs or task.name.job in jobs:
                task.terminate()

    def _end(self) -> None:
        """SIGTERM, then SIGKILL after a grace period or at a second signal; nothing is left afterwards."""
        self._terminate()
        deadline = time.monotonic() + self._limits.grace
        while time.monotonic() < deadline and len(self._signals) < 2 and not all(task.state.ended for task in self._tasks):
            self._look()
            time.sleep(_POLL_SECONDS / 5)
        for task in self._tasks:
            task.kill()
        for task in self._tasks:
            if not task.wait(_KILL_SECONDS):
                self._say("launch", f"{task.name} does not end even by SIGKILL; look at process {task.pid} and those below it")
        self._look()

    @contextlib.contextmanager
    def _signals_noted(self) -> Iterator[None]:
        def note(number: int, frame: FrameType | None) -> None:
            self._signals.append(number)

        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
