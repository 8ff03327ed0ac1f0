"""A launcher that is lost without a word, as those on other machines notice it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from estimator_bridge.cluster import signs
from estimator_bridge.cluster.layout import hosted_layout
from estimator_bridge.cluster.signs import Signs
from estimator_bridge.compat.rendezvous import Loss, Mark, Rendezvous
from tests.cluster.conftest import Play

HOSTS, COUNTS = ["a:1", "b:1", "c:1"], {"chief": 1, "worker": 1, "ps": 1}
ENDS = {
    "ended": lambda meeting: meeting.report_end("worker", 0),
    "lost": lambda meeting: meeting.report_loss("worker", 0, Loss(1, 143, None)),
    "trained": lambda meeting: meeting.say(Mark.TRAINED),
}


@pytest.mark.parametrize("end", [None, *ENDS])
def test_silence_is_told_once_and_so_is_a_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str | None) -> None:
    """Of a worker's launcher; that of the parameter server has not started yet. Who has ended may be silent."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    meeting, told = Rendezvous(tmp_path), list[str]()
    chief = Signs(hosted_layout(HOSTS, COUNTS, "chief:0"), meeting, lambda name, line: told.append(f"at {now:g}: {line}"))
    worker = Signs(hosted_layout(HOSTS, COUNTS, "worker:0"), meeting, lambda name, line: None)
    for now in range(110, 300, 2):
        if now < 150 or now >= 250:
            worker.look()
        if now == 160 and end:
            ENDS[end](meeting)
        chief.look()

    silent = "the launcher of worker 0 has given no sign of life for 48 s: it was killed, or its machine or that machine's way to the"
    expected = [f"at 194: {silent} rendezvous is lost", "at 254: the launcher of worker 0 is there again"]
    assert told == ([] if end else expected)


def test_a_launcher_looks_for_those_of_the_others(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs, "_GIVE_SECONDS", 0.1)
    monkeypatch.setattr(signs, "_SILENT_SECONDS", 0.3)
    meeting = Rendezvous(tmp_path / "shared")
    meeting.folder.mkdir()
    meeting.give_sign("worker", 0)
    layout = hosted_layout([f"127.0.0.1:{port}" for port in (1, 2, 3)], COUNTS, "chief:0")

    ended = play({"chief 0": "sleep:2"}, layouts=[layout], rendezvous=meeting.folder)

    assert [line for line in ended.output if "the launcher of worker 0 has given no sign of life" in line]
    assert meeting.sign("chief", 0) is not None
