"""A program in a fork of the warm process has the same environment and end as under Python."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.usefixtures("warm_python")]

SEEN = (Path(__file__).parents[1] / "data" / "seen_of_the_process.py").read_text()


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env={"NEW": "1"}, input="given", capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("way", ["-c", "-m", "file"])
def test_what_it_sees(way: str, tmp_path: Path) -> None:
    file = tmp_path / "trainer" / "seen.py"
    file.parent.mkdir()
    (file.parent / "__init__.py").touch()
    file.write_text(SEEN)
    arguments, argv, start = {
        "-c": (["-c", SEEN], "-c", ""),
        "-m": (["-m", "trainer.seen"], str(file), str(tmp_path)),
        "file": ([str(file)], str(file), str(file.parent)),
    }[way]

    ended = run(*arguments, "--flag", cwd=tmp_path)

    assert ended.stderr == ""
    assert json.loads(ended.stdout) == [[argv, "--flag"], start, "__main__", str(tmp_path), "1", False, "given"]


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no')", 1, "no\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os; os.kill(os.getpid(), 15)", -15, ""),
        ("import os; os.kill(os.getpid(), 9)", -9, ""),
    ],
)
def test_how_it_ends(code: str, status: int, words: str, tmp_path: Path) -> None:
    ended = run("-c", code, cwd=tmp_path)

    assert ended.returncode == status
    assert ended.stderr.endswith(words)
    assert ended.stdout == ""


def test_it_gets_sigterm_from_its_client(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "data" / "ends_with_3_at_sigterm.py"
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        process.terminate()
        assert process.wait(timeout=20) == 3


def test_it_ends_with_its_client(tmp_path: Path) -> None:
    code = (
        "import os, time, tensorflow; open('pid.new', 'w').write(str(os.getpid())); os.rename('pid.new', 'pid'); time.sleep(50)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    try:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        copy = psutil.Process(int((tmp_path / "pid").read_text()))
    finally:
        process.kill()
        process.wait()
    copy.wait(timeout=20)
