"""Programs that need a TensorFlow of their own, each in a fork of one process that has imported it: importing takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

Run = Callable[..., Any]
Programs = Sequence[tuple[str, Sequence[str]]]
Together = Callable[..., list[Any]]
Test = TypeVar("Test", bound=Callable[..., None])

OBSERVERS: dict[str, str] = {}
"""Row of a table -> the test that applies it and reads it back, or sees its effect."""

SERVER = """
import gc, json, os, signal, sys, time, traceback
import tensorflow, tf_keras
gc.collect()
gc.freeze()
def start(program, arguments, out):
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        file = os.open(out, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv = ["-c", *arguments]
        exec(compile(program, "program", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
for line in sys.stdin:
    grace, programs = json.loads(line)
    deadline = time.monotonic() + 240
    running = {start(*program): index for index, program in enumerate(programs)}
    first = next(iter(running))
    codes = {}
    while running and time.monotonic() < deadline:
        for child in list(running):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
                if child == first:
                    deadline = min(deadline, time.monotonic() + grace)
        time.sleep(0.002)
    for child in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    sys.__stdout__.write(json.dumps([codes.get(index, "killed") for index in range(len(codes) + len(running))]) + "\\n")
    sys.__stdout__.flush()
"""


def observes(*rows: str) -> Callable[[Test], Test]:
    """Says which rows of the tables a test sees at work."""

    def register(test: Test) -> Test:
        OBSERVERS.update(dict.fromkeys(rows, test.__name__))
        return test

    return register


@pytest.fixture(scope="package")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """Runs programs side by side, each with TensorFlow to itself; gives the line of JSON that each printed last.

    The first is waited for, 240 seconds at most; after it the others get ``grace`` seconds, and are killed as parameter servers are.
    """
    folder = tmp_path_factory.mktemp("programs")
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        stdin, stdout = server.stdin, server.stdout
        count = iter(range(1000))

        def call(programs: Programs, grace: float = 0.0) -> list[Any]:
            outs = [Path(folder) / f"{next(count)}.txt" for _ in programs]
            asked = [[program, list(given), str(out)] for (program, given), out in zip(programs, outs, strict=True)]
            stdin.write(json.dumps([grace, asked]) + "\n")
            stdin.flush()
            codes = json.loads(stdout.readline())
            said = [out.read_text(encoding="utf-8", errors="replace") for out in outs]
            assert codes[0] == 0, said[0][-3000:]
            assert set(codes) <= {0, "killed"}, [text[-2000:] for text in said]
            return [_last(text) for text in said]

        yield call
        stdin.close()


@pytest.fixture(scope="package")
def run(together: Together) -> Run:
    """Runs one program; gives the line of JSON that it prints last."""

    def call(program: str, *arguments: str) -> Any:
        return together([(program, arguments)])[0]

    return call


def _last(said: str) -> Any:
    line = next((line for line in reversed(said.splitlines()) if line[:1] in tuple('[{"')), "null")
    return json.loads(line)
