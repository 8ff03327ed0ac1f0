"""Programs that need a TensorFlow of their own, each in a fork of one process that has imported it: importing takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SERVER = """
import json, os, sys, traceback
import tensorflow, tf_keras
for line in sys.stdin:
    program, arguments, out = json.loads(line)
    child = os.fork()
    if child == 0:
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
    sys.__stdout__.write(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) + "\\n")
    sys.__stdout__.flush()
"""


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a program that has TensorFlow to itself; gives the line of JSON that it prints last."""
    folder = tmp_path_factory.mktemp("programs")
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        stdin, stdout = server.stdin, server.stdout
        count = iter(range(1000))

        def call(program: str, *arguments: str) -> Any:
            out = Path(folder) / f"{next(count)}.txt"
            stdin.write(json.dumps([program, arguments, str(out)]) + "\n")
            stdin.flush()
            code = json.loads(stdout.readline())
            said = out.read_text(encoding="utf-8", errors="replace")
            assert code == 0, said[-3000:]
            return json.loads(next(line for line in reversed(said.splitlines()) if line[:1] in '[{"'))

        yield call
        stdin.close()
