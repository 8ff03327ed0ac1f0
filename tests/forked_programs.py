"""Programs that need a separate TensorFlow, each in a fork of one process that has imported it: an import takes seconds.

A program is a function of a module beside the test. Its arguments and what it returns travel as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

Run = Callable[..., Any]
Program = Callable[..., Any]
Programs = Sequence[tuple[Program, Sequence[Any]]]
Together = Callable[..., list[Any]]
Test = TypeVar("Test", bound=Callable[..., None])

OBSERVERS: dict[str, str] = {}
"""Table row -> name of the test that applies it and reads it back, or checks its effect."""

SERVER = Path(__file__).with_name("fork_server.py")


def observes(*rows: str) -> Callable[[Test], Test]:
    """Registers a test for the table rows whose effect it checks."""

    def register(test: Test) -> Test:
        OBSERVERS.update(dict.fromkeys(rows, test.__name__))
        return test

    return register


@pytest.fixture(scope="package")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """A function that runs programs side by side, each with a separate TensorFlow, and returns what each returns.

    Of one that is killed or returns None, the last line of JSON that it has written.

    The first program has 240 seconds. After it, the others get ``grace`` seconds and are then killed, as parameter servers are.
    """
    folder = tmp_path_factory.mktemp("programs")
    with subprocess.Popen([sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        stdin, stdout = server.stdin, server.stdout
        count = iter(range(1000))

        def call(programs: Programs, grace: float = 0.0) -> list[Any]:
            outs = [Path(folder) / f"{next(count)}.txt" for _ in programs]
            request = [
                [program.__module__, program.__name__, list(given), str(out)]
                for (program, given), out in zip(programs, outs, strict=True)
            ]
            stdin.write(json.dumps([grace, request]) + "\n")
            stdin.flush()
            codes = json.loads(stdout.readline())
            texts = [out.read_text(encoding="utf-8", errors="replace") for out in outs]
            assert codes[0] == 0, texts[0][-3000:]
            assert set(codes) <= {0, "killed"}, [text[-2000:] for text in texts]
            return [_last_json(text) for text in texts]

        yield call
        stdin.close()


@pytest.fixture(scope="package")
def run(together: Together) -> Run:
    """A function that runs one program with arguments and returns what it returns."""

    def call(program: Program, *arguments: Any) -> Any:
        return together([(program, arguments)])[0]

    return call


def _last_json(text: str) -> Any:
    line = next((line for line in reversed(text.splitlines()) if line[:1] in tuple('[{"')), "null")
    return json.loads(line)
