"""Watches the tasks of a cluster on this machine: starts them, starts those again that fail, and ends them together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous
from estimator_bridge.cluster.tasks import TRAINERS
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.display import Show
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.monitors.heartbeats import Heartbeats
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.monitors.remote_failures import RemoteFailures
from estimator_bridge.launcher.monitors.remote_trainers import RemoteTrainers
from estimator_bridge.launcher.monitors.restarts import Restarter, belonging, why_not
from estimator_bridge.launcher.monitors.stall import Watchdog
from estimator_bridge.launcher.outcome import Judge, Outcome, Timeouts
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.processes.task import Sink, State, Task, kill_all
from estimator_bridge.launcher.signals import noted

# For workers, once the chief has saved and ended, and for all where nobody can save: who waits for that waits in vain.
_LEAD_SECONDS = 3.0
_ANOTHERS_SECONDS = 3.0  # for the word of another launcher, whose task failed first and took ours with it
_POLL_SECONDS = 0.1
_LINES_SHOWN = 15  # of the output of a task that failed
_PORT_TAKEN = ("Could not start gRPC server", "Address already in use")  # TensorFlow's words, and the system's


class Supervisor:
    """Starts tasks, says how they are, and ends them.

    Args:
        layout: of the cluster.
        tasks: not started yet.
        starter: starts them.
        meeting: where the tasks report and are told.
        limits: of time, and of restarts.
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
        limits: Timeouts,
        say: Sink,
        show: Show,
        judges: Sequence[Judge] = (),
    ) -> None:
        self._others_may_speak = meeting.has_flag(Flag.SHARED) and not layout.is_whole
        self._addresses = layout.addresses
        self._tasks = tasks
        self._starter = starter
        self._trainers = sorted((task for task in tasks if task.name.job in TRAINERS), key=lambda task: task.name)
        self._meeting = meeting
        self._limits = limits
        self._say = say
        self._show = show
        self._judges = judges
        self._preflight = Preflight(layout, tasks, meeting, limits.ready, say)
        self._watchdog = Watchdog(tasks, layout, meeting, limits.stall)
        self._restarter = Restarter(tasks, starter, meeting, self._preflight, say, limits.grace)
        self._elsewhere = RemoteTrainers(layout, meeting, limits, say)
        self._losses = RemoteFailures(layout, meeting, say)
        self._signs = Heartbeats(layout, meeting, limits, self._preflight, say)
        self._signals: list[int] = []
        self._over = False

    def run(self) -> Outcome:
        """Runs the cluster to its end; when this returns, no process of it is left."""
        with noted() as self._signals:
            try:
                outcome = self._watch()
            finally:
                self._end()
            self._losses.tell(outcome)
        return outcome

    def _watch(self) -> Outcome:
        self._restarter.begin()
        for task in self._tasks:
            if not self._signals:  # hundreds take minutes to start
                task.start(self._starter)
        judges: tuple[Callable[[], Outcome | None], ...] = (
            self._interrupted,
            self._lost,
            self._failed,
            self._unready,
            self._stalled,
            self._overdue,
            self._judged,
            self._finished,
        )
        while True:
            self._look()
            for judge in judges:
                if (outcome := judge()) is not None:
                    return outcome
            self._restarter.follow()
            self._restarter.resume()
            time.sleep(_POLL_SECONDS)

    def _look(self) -> None:
        for task in self._tasks:
            if (step := self._meeting.step(task.name.job, task.name.index)) is not None:
                task.reached(step)
            if task.poll():
                if task.state is State.DONE and task in self._trainers:
                    self._meeting.report_end(task.name.job, task.name.index)
                self._say("launch", f"{task.name}: {task.state.value}, exit code {task.exit_code}")
        if self._others_may_speak:
            self._signs.look()
        self._show(self._tasks)

    def _interrupted(self) -> Outcome | None:
        return Outcome(128 + self._signals[0]) if self._signals else None

    def _lost(self) -> Outcome | None:
        return self._losses.look(any(task.was_told for task in self._trainers))

    def _unready(self) -> Outcome | None:
        """Another machine is lost for good, or servers are late: in this order, for who is lost is late, too."""
        return self._signs.judge() or self._preflight.look(self._signs.lost)

    def _failed(self) -> Outcome | None:
        """The first task that ended with an error, or that served no longer while others trained: it is started again, or the end."""
        ended = [
            task
            for task in self._tasks
            if task.state is State.FAILED or (task.state is State.DONE and task.name.job == "ps" and self._somebody_trains())
        ]
        if not ended:
            return None
        task = min(ended, key=lambda task: (task.ended_at, task.name))
        task.state = State.FAILED
        taken = self._port_taken(task)
        group = belonging(task, self._tasks, self._meeting.recovery())
        final = self._meeting.final(task.name.job, task.name.index)
        reason = taken or final or why_not(task, group, self._limits.restarts)
        if reason is None:
            self._restarter.start_again(group, f"{task.name} ended with exit code {task.exit_code}")
            return None
        if self._others_may_speak and time.monotonic() - task.ended_at < _ANOTHERS_SECONDS:
            return None
        if final and self._others_still_export(task):
            return None
        lines = [line for line in task.tail if line.strip()][-_LINES_SHOWN:]
        problem = BridgeError(
            f"{task.name} ended with exit code {task.exit_code}, so the others were ended.",
            expected="that it serves until the training ends" if not task.exit_code else "exit code 0",
            received="\n    ".join(["it printed", *lines]) if lines else "no word on why",
            fix=f"Read {task.log}. It was not started again: {reason}.",
        )
        return Outcome(task.exit_code or 1, problem, port_taken=taken is not None)

    def _others_still_export(self, task: Task) -> bool:
        """Where its training had ended well, that of the others does, too, in a moment: they save and export what was trained."""
        name = task.name.job, task.name.index
        trained = self._meeting.step(*name) is not None and not self._meeting.is_training(*name)
        return trained and not all(each.state.ended for each in self._trainers)

    def _port_taken(self, task: Task) -> str | None:
        """That it was, as a reason; None where the task failed for another."""
        starts = task.name in self._addresses and not self._meeting.has_flag(Flag.READY)
        taken = starts and any(word in line for line in task.tail for word in _PORT_TAKEN)
        return f"the port of {self._addresses[task.name]} was taken" if taken else None

    def _somebody_trains(self) -> bool:
        return not all(task.state.ended for task in self._trainers) if self._trainers else self._elsewhere.trains()

    def _judged(self) -> Outcome | None:
        over = bool(self._trainers) and self._has_trained
        problems = (judge(over) for judge in self._judges)
        return next((Outcome(1, problem) for problem in problems if problem is not None), None)

    def _stalled(self) -> Outcome | None:
        """Nobody's step advances: says how everybody is, and starts again who holds the others up, or all."""
        if (seconds := self._watchdog.stalled()) is None:
            return None
        suspects, lines = self._watchdog.examine()
        for line in lines:
            self._say("launch", line)
        if all(task.step is None for task in self._tasks):  # a training of its own kind, which tells us nothing of its steps
            return None
        recovery = self._meeting.recovery()
        alone = suspects and all(recovery.alone(task.name.job) for task in suspects)
        group = suspects if alone else belonging(self._trainers[0], self._tasks, Recovery.GANG)
        if all(task.restarts < self._limits.restarts for task in group):
            self._restarter.start_again(group, f"no step for {seconds:.0f} s")
            return None
        problem = BridgeError(
            f"Training stands still: no step for {seconds:.0f} s.",
            expected="a step of some task within --stall-timeout",
            received="\n    ".join(lines),
            fix="Look at the tasks that are stopped or do not answer; give slow steps time with --stall-timeout SECONDS.",
        )
        return Outcome(1, problem)

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
        if not self._has_trained:
            return None
        # Another launcher may have said so.
        if not self._over and (self._meeting.has_flag(Flag.TRAINED) or self._elsewhere.over(self._signs.given_up)):
            self._over = True
            self._meeting.set_flag(Flag.TRAINED)
            for task in self._tasks:
                if task.name.job == "ps":
                    task.terminate()
        waiting_for = [task for task in self._tasks if task.name.job != "ps" or not self._trainers]
        left = [task for task in waiting_for if not task.state.ended]
        return None if left else Outcome(0)

    @property
    def _has_trained(self) -> bool:
        """Whether those of our tasks that train have ended, and none has failed of which it is not known yet whether it comes back."""
        failed = any(task.state is State.FAILED for task in self._tasks)
        return not failed and all(task.state.ended for task in self._trainers)

    def _end(self) -> None:
        """SIGTERM, then SIGKILL after the grace period or at a second signal; nothing is left afterwards.

        The chief is asked first, since to save takes the others: variables on parameter servers, workers that are its servers.
        """
        grace = self._limits.grace
        deadline = time.monotonic() + (min(grace, _LEAD_SECONDS) if self._signs.strands else grace)
        self._ask_to_end(self._trainers[:1], deadline)
        self._ask_to_end(self._trainers, deadline)
        self._let_others_save(deadline)
        self._ask_to_end(self._tasks, deadline)
        kill_all(self._tasks, self._say)
        self._look()

    def _let_others_save(self, deadline: float) -> None:
        """Where a scheduler tells all machines to end, those that train still need their parameter servers."""
        serving = any(task.name.job == "ps" and not task.state.ended for task in self._tasks)
        needed = serving and self._others_may_speak and bool(self._signals)
        while needed and len(self._signals) < 2 and time.monotonic() < deadline and not self._losses.nobody_trains():
            self._look()
            time.sleep(_POLL_SECONDS)

    def _ask_to_end(self, tasks: Sequence[Task], deadline: float) -> None:
        """SIGTERM, and time until the deadline, or for a moment after the first of them has ended."""
        asked_at = time.monotonic()
        for task in tasks:
            task.terminate()
        while len(self._signals) < 2 and not all(task.state.ended for task in tasks):
            first = tasks[0]
            if time.monotonic() >= (max(asked_at, first.ended_at) + _LEAD_SECONDS if first.state.ended else deadline):
                return
            self._look()
            time.sleep(_POLL_SECONDS / 5)
