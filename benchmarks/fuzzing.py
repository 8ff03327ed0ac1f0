"""Whether readers survive damaged input: ``python benchmarks/fuzzing.py --runs 1000000``.

Valid files are damaged at random: bits flipped, parts lost, doubled or moved, numbers and words replaced by hostile ones. Each is read in this
process, which may take 5 seconds of a processor and 4 GB for it. A reader may accept a file or refuse it by a message of its own; any other exception, a
message that is a traceback, and a file that takes longer are failures. Scripts that ``convert source`` reads (``converted``) are those of the tests,
with changed statements and expressions; they may take 60 seconds, the new script must parse, and a statement that is lost must be reported.
The number of a run is its seed: ``--kind index --only 4711`` repeats one.

Printed are a row for each kind of file, and each failure; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import functools
import io
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from source_mutations import KEPT, mutated

from estimator_bridge.cli import main as command_line
from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.format import table
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.reading.index import index_path
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.compat.config.cluster import tf_config
from estimator_bridge.compat.source.checking import Judge
from estimator_bridge.compat.source.surface import installed_version, load_surface
from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.upstream_contrib import offered
from estimator_bridge.runtime.json_positions import read_object

MEMORY = 4 << 30
TIMERS = ((signal.SIGPROF, signal.ITIMER_PROF, 1.0), (signal.SIGALRM, signal.ITIMER_REAL, 12.0))
"""Signals, timers and how often a kind's seconds may pass: those of a processor, and those of a clock where others take it."""
ROOT = Path(__file__).parents[1]
command_line.build_parser = functools.cache(command_line.build_parser)  # it takes ten times as long as a damaged file
HOSTILE = (
    b"",
    b"\0",
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 400,
    b"[" * 3000,
    b'"' * 3,
    b"\xff\xfe",
    b"\n" * 200,
    b"(" * 400,
    b"import ",
    b"..",
    b"%s",
)
CLUSTER = {
    "cluster": {"chief": ["a:1"], "worker": ["b:1", "c:2"], "ps": ["d:1"]},
    "task": {"type": "worker", "index": 1},
    "rpc_layer": "grpc",
}
RUN = {
    "model_dir": "m",
    "session_config": {"device_count": {"CPU": 2}, "gpu_options": {"allow_growth": True}},
    "train_spec": {"max_steps": 10, "hooks": [{"class": "NanTensorHook"}]},
}
STATE = b'model_checkpoint_path: "model.ckpt-3"\nall_model_checkpoint_paths: "model.ckpt-1"\nall_model_checkpoint_paths: "model.ckpt-3"\n'
SCRIPT = b'''"""Trains a line."""

import tensorflow as tf


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features["x"], 1, name="line")  # a layer
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": net})
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.AdamOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.estimator.RunConfig(save_checkpoints_steps=100)
estimator = tf.estimator.Estimator(model_fn, "model", config, {"rate": 1e-3})
estimator.train(lambda: (tf.contrib.data.Dataset.range(9)), steps=10)
'''
Read = Callable[[bytes, Path], None]


class LateError(Exception):
    """A file that took longer than it may."""


def read_checkpoint(data: bytes, folder: Path) -> None:
    """Reads the index of a checkpoint."""
    index_path(folder / "m").write_bytes(data)
    read_index(folder / "m")


def read_entries(data: bytes, folder: Path) -> None:
    """Reads an index whose blocks have right checksums, and damaged names, header and entries."""
    pieces = data.split(b"\n--\n")
    records = sorted({piece[:12].strip(b"\n"): piece[12:] for piece in pieces[1:]}.items())
    read_checkpoint(b"".join(table.encode([(b"", pieces[0]), *((name or b"n", value) for name, value in records)])), folder)


def read_state(data: bytes, folder: Path) -> None:
    """Finds and reads the latest checkpoint of a model_dir."""
    index_path(folder / "model.ckpt-3").write_bytes(kinds()["index"].files[0])
    (folder / "checkpoint").write_bytes(data)
    read_index(folder)


def read_tf_config(data: bytes, folder: Path) -> None:
    """Reads and checks a TF_CONFIG."""
    del folder
    tf_config.check(read_object(data.decode("utf-8", "surrogateescape"), "TF_CONFIG", tf_config.EXPECTED))


def convert_config(name: str, data: bytes, folder: Path) -> None:
    """Converts a configuration, as the command line does.

    Raises:
        BridgeError: The command refused it, with a message.
    """
    (folder / name).write_bytes(data)
    command("convert", "config", str(folder / name))


def command(*words: str) -> str:
    """Executes a command and returns its output.

    Raises:
        BridgeError: The command refused it, with a message.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command_line.main(words)
    if code == 2 and err.getvalue().startswith("estimator-bridge: ") and "Traceback" not in err.getvalue():
        raise BridgeError(err.getvalue())
    if code not in {0, 1}:
        raise RuntimeError(f"exit code {code}: {err.getvalue()}")
    return out.getvalue()


def convert_source(data: bytes, folder: Path) -> None:
    """Converts a script to Keras; the new one must parse, and have the statement that must not get lost, or report its loss.

    Raises:
        BridgeError: The command refused it, with a message.
    """
    (folder / "train.py").write_bytes(data)
    found = json.loads(command("convert", "source", "--format", "json", str(folder / "train.py")))
    ast.parse(found["source"])
    text = data.decode("utf-8", "replace")
    kept = KEPT.search(text)
    if kept and kept[0] not in found["source"] and not is_reported(text, kept[0], found["changes"]):
        raise RuntimeError(f"lost: {kept[0]}")


def is_reported(text: str, statement: str, changes: list[dict[str, Any]]) -> bool:
    """Returns True if a change names a statement's line, or the first line of a statement around it."""
    line = text[: text.index(statement)].count("\n") + 1
    around = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
        for number in (node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ())))
    }
    return any(change["line"] in around and change["outcome"] != "converted" for change in changes)


@functools.cache
def scripts() -> tuple[bytes, ...]:
    """Returns the scripts and test files that ``convert source`` takes, the shorter ones: a long one takes seconds."""
    folders = (ROOT / "tests" / "data", ROOT / "tests" / "compat" / "source")
    files = [path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.py"))]
    return tuple(data for data in files if b"EstimatorSpec(" in data and len(data) < 6_000 and is_python(data))


def is_python(data: bytes) -> bool:
    """Returns True for the source of Python 3."""
    try:
        ast.parse(data)
    except SyntaxError:
        return False
    return True


def change_script(data: bytes, generator: random.Random) -> bytes:
    """Returns a script with changed statements, or with damaged bytes."""
    return damage(data, generator) if generator.random() < 0.05 else mutated(data, generator, generator.choice(scripts()))


@functools.cache
def judge() -> Judge:
    """Returns the judge of ``check``."""
    return Judge(load_surface(installed_version()), offered)


def check_source(name: str, data: bytes, folder: Path) -> None:
    """Judges a script or a notebook."""
    del folder
    if judge().content(data, name).unreadable:
        raise BridgeError("This is neither Python nor a notebook.")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        files: Valid files.
        read: Function that reads one.
        damage: Function that damages one.
        seconds: Seconds of a processor that a file may take.
        turn: Number of files in its turn among the kinds.
    """

    files: tuple[bytes, ...]
    read: Read
    damage: Callable[[bytes, random.Random], bytes]
    seconds: float = 5.0
    turn: int = 500

    def damaged(self, name: str, number: int) -> bytes:
        """Returns the file of a run."""
        return self.damage(self.files[number % len(self.files)], random.Random(f"{name} {number}"))


@functools.cache
def kinds() -> dict[str, Kind]:
    """Returns each kind of file."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = write_tensors(
            Path(folder) / "m", {"dense/kernel": [[1.0, 2.0]], "dense/bias": [3.0], "note": "text", "global_step": 7}
        )
        index = index_path(prefix).read_bytes()
    places = {
        b"a": Entry(1, (4, 6), 0, 0, 96),
        b"b/c": Entry(1, (2,), 0, 96, 8),
        b"d": Entry(9, (), 0, 104, 8),
    }
    entries = b"\n--\n".join([Header(1).encode(), *(name.ljust(12, b"\n") + place.encode() for name, place in places.items())])
    notebook = {
        "cells": [{"cell_type": "code", "source": SCRIPT.decode(), "metadata": {}, "outputs": []}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    readers: dict[str, tuple[bytes, Read]] = {
        "index": (index, read_checkpoint),
        "entries": (entries, read_entries),
        "state": (STATE, read_state),
        "TF_CONFIG": (json.dumps(CLUSTER).encode(), read_tf_config),
        "RunConfig": (json.dumps(RUN).encode(), functools.partial(convert_config, "run.json")),
        "ConfigProto": (
            b"allow_soft_placement: true\ngpu_options { visible_device_list: '0,1' }\n",
            functools.partial(convert_config, "s.pbtxt"),
        ),
        "script": (SCRIPT, functools.partial(check_source, "train.py")),
        "notebook": (json.dumps(notebook).encode(), functools.partial(check_source, "train.ipynb")),
    }
    return {
        **{name: Kind((data,), read, damage) for name, (data, read) in readers.items()},
        "converted": Kind(scripts(), convert_source, change_script, seconds=60.0, turn=5),
    }


def damage(data: bytes, generator: random.Random) -> bytes:
    """Returns a file with one to five damages."""
    found = bytearray(data)
    for _ in range(generator.randint(1, 5)):
        start = generator.randrange(len(found) + 1)
        end = min(len(found), start + generator.choice((1, 1, 4, 16, 200)))
        way = generator.randrange(5)
        if way == 0 and found:
            found[start % len(found)] ^= 1 << generator.randrange(8)
        elif way == 1:
            del found[start:end]
        elif way == 2:
            found[start:start] = found[start:end] * generator.choice((1, 2, 50))
        elif way == 3:
            found[start:end] = generator.choice(HOSTILE)
        else:
            other = generator.randrange(len(found) + 1)
            found[start:end] = found[other : other + end - start]
    return bytes(found)


def outcome(kind: Kind, data: bytes, folder: Path) -> str:
    """Returns "accepted", "refused", or what failed."""

    def late(*_: object) -> None:
        raise LateError

    for number, timer, factor in TIMERS:
        signal.signal(number, late)
        signal.setitimer(timer, factor * kind.seconds)
    try:
        kind.read(data, folder)
    except BridgeError as error:
        return "refused" if "Traceback" not in str(error) else f"a traceback as a message: {error}"
    except LateError:
        return "no answer in time"
    except BaseException as error:  # noqa: BLE001 -- whatever it is, a user would see it
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        for _, timer, _ in TIMERS:
            signal.setitimer(timer, 0.0)
    return "accepted"


def run(task: tuple[str, range]) -> tuple[str, Counter[str], float, list[tuple[int, str]]]:
    """Reads damaged files of one kind; returns counts of outcomes, the longest time, and the failures."""
    kind, numbers = task
    counts: Counter[str] = Counter()
    longest, failures = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            damaged = kinds()[kind].damaged(kind, number)
            begun = time.perf_counter()
            found = outcome(kinds()[kind], damaged, Path(folder))
            longest = max(longest, time.perf_counter() - begun)
            counts[found if found in {"accepted", "refused"} else "failed"] += 1
            if found not in {"accepted", "refused"}:
                failures.append((number, found))
    return kind, counts, longest, failures


def limit_memory() -> None:
    """Makes a process fail that takes too much memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def tasks(names: list[str], runs: int) -> Iterator[tuple[str, range]]:
    """Yields parts of the work, kind by kind in turns, so that an end by Ctrl-C has seen all kinds."""
    turns = {name: kinds()[name].turn for name in names}
    ends = {name: max(1, runs * turn // sum(turns.values())) for name, turn in turns.items()}
    for number in range(max(-(-ends[name] // turn) for name, turn in turns.items())):
        parts = ((name, range(number * turn, min((number + 1) * turn, ends[name]))) for name, turn in turns.items())
        yield from filter(lambda part: part[1], parts)


def main() -> int:
    """Reads all files and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="files of all kinds together (default: %(default)s)")
    parser.add_argument("--kind", choices=list(kinds()), help="one kind alone")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="with --kind: one file, which is printed")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    arguments = parser.parse_args()
    names = [arguments.kind] if arguments.kind else list(kinds())
    for name in names:
        kind = kinds()[name]
        with tempfile.TemporaryDirectory() as folder:
            kind.read(kind.files[0], Path(folder))  # else the damages are not those of a valid file
    if arguments.only is not None:
        sys.stdout.write(f"{kinds()[names[0]].damaged(names[0], arguments.only)!r}\n")
        print(run((names[0], range(arguments.only, arguments.only + 1))))
        return 0
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    longest, failures = Counter[str](), list[str]()
    begun = shown = time.monotonic()
    with (
        contextlib.suppress(KeyboardInterrupt),
        multiprocessing.get_context("spawn").Pool(arguments.jobs, limit_memory) as pool,
    ):
        for kind, found, seconds, failed in pool.imap_unordered(run, tasks(names, arguments.runs)):
            counts[kind] += found
            longest[kind] = max(longest[kind], seconds)  # type: ignore[assignment]  # a Counter of seconds
            failures += [f"{kind} {number}: {what}" for number, what in failed]
            if sys.stderr.isatty() or time.monotonic() - shown >= 60:
                start, end = ("\r", "") if sys.stderr.isatty() else ("", "\n")
                print(f"{start}{sum(map(Counter.total, counts.values()))} of {arguments.runs} files", end=end, file=sys.stderr)
                shown = time.monotonic()
    print(f"\n{'file':12}{'read':>9}{'accepted':>10}{'refused':>9}{'failed':>8}{'longest':>10}")
    for kind, found in counts.items():
        row = f"{kind:12}{found.total():>9}{found['accepted']:>10}{found['refused']:>9}{found['failed']:>8}{1000 * longest[kind]:>7.0f} ms"
        print(row)
    print(f"{sum(map(Counter.total, counts.values()))} files in {time.monotonic() - begun:.0f} s, {len(failures)} failures")
    print(*failures[:50], sep="\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
