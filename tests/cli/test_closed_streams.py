"""A command goes on once its reader is gone, and its exit code stays."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TextIO, cast

import pytest

from estimator_bridge.cli.closed_streams import DroppingStream
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.launcher.display import open_display

HERE = Path(__file__).parent
MARKED = HERE.parent / "data" / "to_keras" / "for_humans.py"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help", 0),
        ("--version", 0),
        ("--print-completion bash", 0),
        ("check clean.py", 0),
        ("check --format json broken.py", 2),
        ("compare equal.py", 0),
        ("compare different.py", 1),
        ("compare --format json different.py", 1),
        ("compare nowhere.py", 2),
        ("compare --format json --map pairs.txt equal.py", 2),
        ("plan nowhere.py", 2),
        ("fleet init .", 2),
        ("fleet check", 2),
        ("contrib status", 0),
        ("convert source --diff clean.py", 2),
        ("convert config session.json", 0),
        ("convert checkpoint --dry-run model.ckpt-7 new/model.ckpt-7", 0),
        ("inspect model.ckpt-7", 0),
        ("inspect --format json model.ckpt-7", 0),
        ("inspect model.ckpt-7 --diff model.ckpt-8", 1),
        ("launch --engine slurm --worker 1 --trusted-network clean.py", 0),
        ("launch --nothing", 2),
        ("run nowhere.py", 2),
        ("run clean.py", 0),
        ("run failing.py", 1),
        ("cluster status nowhere", 2),
        ("convert source --check marked.py", 1),
    ],
)
def test_the_exit_code_stays_once_the_reader_is_gone(command: str, code: int, tmp_path: Path) -> None:
    for name in ("clean", "equal", "different"):
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / "failing.py").write_text("raise SystemExit(1)")
    (tmp_path / "marked.py").write_bytes(MARKED.read_bytes())
    (tmp_path / "session.json").write_text('{"session_config": {"allow_soft_placement": true}}')
    for step in (7, 8):
        write_tensors(tmp_path / f"model.ckpt-{step}", {"weights": [1.0 * step], "global_step": step})
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    program = [HERE / "given_verdict.py"] if command.startswith("compare") else ["-m", "estimator_bridge"]
    environment["VERDICT"] = "different" if "different" in command else "equal"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as left:
        ended = subprocess.run(
            [sys.executable, *program, *command.split()],
            cwd=tmp_path, env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=left, stderr=left, timeout=120, check=False,
        )  # fmt: skip

    assert ended.returncode == code


def test_an_endless_script_ends_as_under_python(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("while True:\n    print('predicted')\n")
    command = shlex.join([sys.executable, "-m", "estimator_bridge", "run", "train.py"])
    ended = subprocess.run(
        ["sh", "-c", f"{command} | head -1"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert ended.stdout == "predicted\n"
    assert "BrokenPipeError" in ended.stderr


def test_a_terminal_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal, ours = pty.openpty()
    with os.fdopen(ours, "w") as stream, open_display(cast(TextIO, DroppingStream(stream))) as (say, show):
        say("chief 0", "read")
        os.close(terminal)
        say("chief 0", "not read")
        show([])


class Failing(io.FileIO):
    """A stream to which no write succeeds."""

    def __init__(self, file: Path, number: int) -> None:
        super().__init__(file, "w")
        self._number = number

    def write(self, text: object) -> int:
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.ENXIO])
def test_output_without_a_reader_is_dropped_and_so_is_later_output(tmp_path: Path, number: int) -> None:
    """Each system has its own error for a closed terminal."""
    with Failing(tmp_path / "terminal", number) as stream:
        assert DroppingStream(cast(TextIO, stream)).write("line") == 4
        assert os.fstat(stream.fileno()).st_rdev == Path(os.devnull).stat().st_rdev
        os.write(stream.fileno(), b"buffered")
    assert (tmp_path / "terminal").read_bytes() == b""


def test_lines_without_a_reader_are_dropped() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        DroppingStream(cast(TextIO, stream)).writelines(f"{number}\n" for number in range(3))


def test_another_error_is_raised(tmp_path: Path) -> None:
    with Failing(tmp_path / "full", errno.ENOSPC) as stream, pytest.raises(OSError, match="No space"):
        DroppingStream(cast(TextIO, stream)).write("line")


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
def test_standard_streams_that_are_closed_lead_to_nowhere(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """None of them becomes a file that is opened next."""
    redirected = " ".join(f"{number}>&-" for number in closed)
    (tmp_path / "train.py").touch()
    subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, HERE / "launch_and_answer.py", "answer"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    nowhere = [number in closed for number in (0, 1, 2)]
    assert json.loads((tmp_path / "answer").read_text()) == [0, nowhere, [True] * 3]
