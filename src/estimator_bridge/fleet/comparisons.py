"""Runs the comparisons of a fleet, several at once; none of their processes outlives this one, and each result is kept as soon as it is there."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import datetime
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge.fleet.plan import Pipeline
from estimator_bridge.fleet.results import Result, folder_of, key_of, write_result

GUARD = "estimator_bridge.launcher.processes.guard"
_MESSAGE_LENGTH = 2000
_POLL_SECONDS = 0.2
Report = Callable[[Pipeline, Result], object]


class Comparisons:
    """Compares pipelines, each in a process of its own below a guard, which ends it with this process.

    Args:
        out: Folder of the results.
        command: Arguments of Python that start a comparison, before its options.
    """

    def __init__(self, out: Path, command: Sequence[str] = ("-m", "estimator_bridge", "compare")) -> None:
        self._out = out.absolute()
        self._command = command
        self._is_ending = threading.Event()

    def run(self, pipelines: Sequence[Pipeline], jobs: int, report: Report) -> None:
        """Compares pipelines and writes their results. Ctrl-C ends the running comparisons, which have no result then.

        Args:
            pipelines: Pipelines to compare.
            jobs: Number of comparisons at once.
            report: Function that gets each result, from several threads.

        Raises:
            BridgeError: A result cannot be written.
        """
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self._compare, pipeline, report) for pipeline in pipelines]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            finally:
                self._is_ending.set()
                pool.shutdown(wait=True, cancel_futures=True)

    def _compare(self, pipeline: Pipeline, report: Report) -> None:
        key, start = key_of(pipeline), time.monotonic()
        tries = 0
        while True:
            tries += 1
            result = self._try(pipeline, key)
            if self._is_ending.is_set():
                return
            if result.code != 2 or tries > pipeline.retries:
                break
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        result = dataclasses.replace(result, seconds=round(time.monotonic() - start, 1), tries=tries, date=now)
        write_result(self._out, pipeline, result)
        report(pipeline, result)

    def _try(self, pipeline: Pipeline, key: str) -> Result:
        folder = folder_of(self._out, pipeline)
        folder.mkdir(parents=True, exist_ok=True)
        arguments = [*self._command, "--format", "json", "--out", str(folder / "report"), *pipeline.comparison()]
        ours, theirs = socket.socketpair()
        with ours, (folder / "log").open("wb") as log:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", GUARD, *arguments],
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=pipeline.folder,
                )
            except OSError as error:  # no such folder
                return Result(key, 2, "not comparable", f"{pipeline.folder}: {error.strerror}")
            finally:
                theirs.close()
            with process:
                return self._wait(process, ours, pipeline, key)

    def _wait(self, process: subprocess.Popen[bytes], control: socket.socket, pipeline: Pipeline, key: str) -> Result:
        assert process.stdout is not None
        chunks: list[bytes] = []
        reader = threading.Thread(target=lambda: chunks.append(process.stdout.read()), daemon=True)  # type: ignore[union-attr]
        reader.start()
        deadline = time.monotonic() + pipeline.timeout
        while process.poll() is None:
            if self._is_ending.wait(_POLL_SECONDS) or time.monotonic() > deadline:
                control.shutdown(socket.SHUT_RDWR)  # the guard kills the comparison and all below it
                process.wait()
                return Result(key, 2, "not comparable", f"It was ended after its limit of {pipeline.timeout:g} seconds.")
        reader.join()
        return _result_of(b"".join(chunks), key)


def _result_of(output: bytes, key: str) -> Result:
    values: dict[str, Any] = {}
    with contextlib.suppress(ValueError, RecursionError):
        values = json.loads(output)
    try:
        findings = values["findings"]
        message = str(findings[0]["message"])[:_MESSAGE_LENGTH] if findings else ""
        levels = tuple(dict.fromkeys(str(finding["level"]) for finding in findings))
        recorded = int(values.get("recorded", 0))
        return Result(key, int(values["exit_code"]), str(values["verdict"]), message, levels, recorded=recorded)
    except (KeyError, TypeError, ValueError, IndexError):
        return Result(key, 2, "not comparable", "It ended without a report: see its file log.")
