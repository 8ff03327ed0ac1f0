"""Conversion of a checkpoint of several GiB: by link, by copy, with cp, and with TensorFlow's own tools.

``python benchmarks/checkpoint.py --gib 4 --folder DIR`` makes the checkpoints, runs each method in a separate process, and prints two
Markdown tables: seconds, CPU seconds and peak memory of each method, and the goals. Fast methods take turns for some rounds. Their
figures are medians, and their ratios are medians of the ratios within a round, because the load on the machine changes with time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from checkpoint_inputs import ENTRIES, make

MIB = 2**20


class Cost(NamedTuple):
    """Cost of a run: seconds; CPU seconds and bytes, including those of the processes that it started; seconds with start-up."""

    seconds: float
    cpu: float
    peak: float
    whole: float


def main() -> None:
    """Runs all methods, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument(
        "--converter-gib", type=float, default=0.5, help="size for TensorFlow's converter, which takes 12 times as much memory"
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder on the disk to measure; needs four times the size")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds of the fast methods")
    parser.add_argument("--without-tensorflow", action="store_true", help="leave the slow methods out")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        timed(arguments.folder, arguments.way)
        return
    sizes = int(arguments.gib * 2**30), int(arguments.converter_gib * 2**30)
    maker = multiprocessing.get_context("spawn").Process(target=make, args=(arguments.folder, *sizes))
    maker.start()  # not here: on Linux a child's peak memory starts with its parent's
    maker.join()
    fast = [way for way in WAYS if way not in SLOW]
    runs: dict[str, list[Cost]] = {way: [] for way in WAYS}
    for number in range(arguments.rounds):
        for way in fast if number % 2 == 0 else reversed(fast):  # so that no method always finds the files in memory
            runs[way].append(measure(way, arguments.folder, sizes[0]))
    for way in () if arguments.without_tensorflow else SLOW:
        runs[way].append(measure(way, arguments.folder, sizes[0]))
    sys.stdout.writelines(f"{line}\n" for line in report(runs))


def measure(way: str, folder: Path, size: int) -> Cost:
    """Runs a method in a separate process, after making sure that as much memory is free as the method will write.

    A virtual machine gives free memory back to its host, and to get it again takes four times as long as to copy into it. Without this
    step, the speed of a method would depend on the files that were removed before it.
    """
    for target in folder.glob("*/new"):
        shutil.rmtree(target)
    os.sync()
    subprocess.run([sys.executable, "-c", f"bytearray(b'1') * {size}"], check=True)
    command = [sys.executable, __file__, "--folder", str(folder), "--way", way]
    started = time.monotonic()
    answer = subprocess.run(command, capture_output=True, check=False, text=True)
    if answer.returncode:
        sys.exit(f"{way}: {answer.stderr}")
    return Cost(*json.loads(answer.stdout.splitlines()[-1]), time.monotonic() - started)


def timed(folder: Path, way: str) -> None:
    """Runs a method and prints its cost as JSON."""
    convert = WAYS[way]()  # imports count only in the column "with start"
    before, started = os.times(), time.monotonic()
    convert(folder)
    seconds, after = time.monotonic() - started, os.times()
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    sys.stdout.write(json.dumps([seconds, sum(after[:4]) - sum(before[:4]), peak * 1024]) + "\n")


def report(runs: dict[str, list[Cost]]) -> list[str]:
    """Returns the lines of both tables."""
    lines = ["| method | seconds | with start | CPU seconds | peak memory |", "|---|---|---|---|---|"]
    for way, costs in runs.items():
        if costs:
            seconds, cpu, peak, whole = map(statistics.median, zip(*costs, strict=True))
            lines.append(f"| {way} | {seconds:.3f} | {whole:.2f} | {cpu:.2f} | {peak / MIB:.0f} MiB |")
    lines += ["", "| goal | at most | measured | |", "|---|---|---|---|"]
    for name, limit, measured in goals(runs):
        lines.append(f"| {name} | {limit:g} | {measured:.3g} | {'met' if measured <= limit else 'missed'} |")
    return lines


def goals(runs: dict[str, list[Cost]]) -> list[tuple[str, float, float]]:
    """Returns name, limit and figure of each goal."""

    def ratio(way: str, other: str) -> float:
        return statistics.median(one.seconds / two.seconds for one, two in zip(runs[way], runs[other], strict=True))

    def seconds(way: str) -> float:
        return statistics.median(cost.seconds for cost in runs[way])

    peak = max(cost.peak for way in (LINK, SCALED, COPY, SLICED) for cost in runs[way])
    return [
        ("link, with fsync: seconds", 0.1, seconds(LINK)),
        ("link: part of cp", 0.02, ratio(LINK, CP)),
        ("the whole command: seconds", 0.6, seconds(COMMAND)),
        ("Momentum: times cp of its slot", 1.3, ratio(SCALED, CP_SLOT)),
        ("copy: times cp", 1.15, ratio(COPY, CP)),
        (f"an index of {ENTRIES:,} entries read: seconds", 2.0, seconds(READ)),
        ("the same written: seconds", 2.0, seconds(WRITE)),
        ("memory on top of the interpreter: MiB", 200.0, (peak - runs[NOTHING][0].peak) / MIB),
    ]


def nothing() -> Callable[[Path], None]:
    """Prepares a method that only starts the interpreter."""
    return lambda folder: None


def sliced() -> Callable[[Path], None]:
    """Prepares a conversion that cuts all variables and slots into slices."""
    from estimator_bridge.compat.checkpoint.conversion.convert import convert

    def run(folder: Path) -> None:
        assert convert(*_paths(folder / "Adam"), to="name-based", partition=[(".*/kernel", 3)]).written

    return run


def ours(optimizer: str, copy: bool = False) -> Callable[[], Callable[[Path], None]]:
    """Prepares a conversion to a bilingual checkpoint, by link or by copy."""

    def prepare() -> Callable[[Path], None]:
        from estimator_bridge.compat.checkpoint.conversion.convert import convert

        def run(folder: Path) -> None:
            source, target = _paths(folder / optimizer)
            report = convert(source, target, like=folder / optimizer / "keras" / "ckpt-1", copy=copy)
            assert report.written, report

        return run

    return prepare


def command_line() -> Callable[[Path], None]:
    """Prepares a run of the whole command in a separate process."""

    def run(folder: Path) -> None:
        paths = map(str, (folder / "Adam" / "keras" / "ckpt-1", *_paths(folder / "Adam")))
        arguments = ["-m", "estimator_bridge", "convert", "checkpoint", "--format", "json", "--like", *paths]
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.PIPE)

    return run


def copy_files(folder: str, pattern: str) -> Callable[[], Callable[[Path], None]]:
    """Prepares ``cp`` with a sync, because a conversion does not return before its files are synced either."""

    def run(root: Path) -> None:
        target = root / folder / "new"
        target.mkdir(parents=True)
        subprocess.run(["cp", "--reflink=auto", *map(str, root.glob(pattern)), str(target)], check=True)
        for path in target.iterdir():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    return lambda: run


def read_many() -> Callable[[Path], None]:
    """Prepares a read of an index."""
    from estimator_bridge.compat.checkpoint.reading.index import read_index

    def run(folder: Path) -> None:
        assert len(read_index(folder / "many" / "model.ckpt").entries) == ENTRIES

    return run


def write_many() -> Callable[[Path], None]:
    """Prepares the encoding and writing of an index."""
    from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
    from estimator_bridge.compat.checkpoint.reading.index import Index, encode_index

    entries = {f"tower/layer_{number:06d}/kernel/Adam": Entry(1, (2,), 0, 0, 8) for number in range(ENTRIES)}

    def run(folder: Path) -> None:
        with (folder / "many" / "written").open("wb") as file:
            file.writelines(encode_index(Index(folder / "many" / "m", Header(1), entries)))
            os.fsync(file.fileno())

    return run


def reader_and_saver() -> Callable[[Path], None]:
    """Prepares a conversion that reads each value into Python and saves all by one SaveV2."""
    import tensorflow as tf

    def run(folder: Path) -> None:
        source, target = _paths(folder / "Adam")
        target.parent.mkdir()
        reader = tf.train.load_checkpoint(str(source))
        names = sorted(reader.get_variable_to_shape_map())
        values = [tf.constant(reader.get_tensor(name)) for name in names]
        tf.raw_ops.SaveV2(prefix=str(target), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)

    return run


def migration_guide() -> Callable[[Path], None]:
    """Prepares a conversion with a tf.Variable for each value, saved by a tf.train.Checkpoint."""
    import tensorflow as tf

    def run(folder: Path) -> None:
        source, target = _paths(folder / "Adam")
        reader = tf.train.load_checkpoint(str(source))
        names = sorted(reader.get_variable_to_shape_map())
        variables = {name.replace("/", "."): tf.Variable(reader.get_tensor(name)) for name in names}
        tf.train.Checkpoint(vars=variables).write(str(target))

    return run


def estimator_converter() -> Callable[[Path], None]:
    """Prepares tensorflow_estimator's converter for canned Estimators, which puts every value into a graph as a constant."""
    from estimator_bridge.legacy import install

    install()  # the tool needs modules that later TensorFlows removed
    from tensorflow_estimator.python.estimator.tools import checkpoint_converter

    def run(folder: Path) -> None:
        source, target = _paths(folder / "canned", "")
        target.parent.mkdir()
        checkpoint_converter.convert_checkpoint("dnn", str(source), str(source.with_name("graph.pbtxt")), str(target))

    return run


def _paths(folder: Path, old: str = "old") -> tuple[Path, Path]:
    return folder / old / "model.ckpt-1000", folder / "new" / "model.ckpt-1000"


NOTHING, LINK, COMMAND, SCALED, COPY = "nothing", "ours, link", "ours, link, the whole command", "ours, Momentum", "ours, copy"
SLICED = "ours, into slices"
CP, CP_SLOT, READ, WRITE = "cp and fsync", "cp and fsync of Momentum's slot", "ours, index read", "ours, index written"
SLOW: Sequence[str] = ("load_checkpoint and SaveV2", "tf.Variable and tf.train.Checkpoint", "TensorFlow's estimator converter")
WAYS: dict[str, Callable[[], Callable[[Path], None]]] = {
    NOTHING: nothing,
    LINK: ours("Adam"),
    COMMAND: command_line,
    SCALED: ours("Momentum"),
    CP_SLOT: copy_files("slot-copied", "slot"),
    COPY: ours("Adam", copy=True),
    SLICED: sliced,
    CP: copy_files("Adam", "Adam/old/*"),
    READ: read_many,
    WRITE: write_many,
    **dict(zip(SLOW, (reader_and_saver, migration_guide, estimator_converter), strict=True)),
}

if __name__ == "__main__":
    main()
