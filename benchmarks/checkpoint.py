"""Converting a checkpoint of several GiB: ours by link and by copy, cp, and the ways that TensorFlow's own tools offer.

``python benchmarks/checkpoint.py --gib 4 --folder DIR`` makes a name-based checkpoint with Adam's slots, converts it in each way,
each in a process of its own, and prints a Markdown table: seconds, CPU seconds, peak memory.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.format.trackable import Attribute, Node, SlotReference
from estimator_bridge.compat.checkpoint.index import Index, encode_index, read_index
from estimator_bridge.compat.checkpoint.naming import ATTRIBUTE, OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.tensors import Tensor, int64, of_strings
from estimator_bridge.compat.checkpoint.writing import write_tensors

COLUMNS = 1024
SLOTS = {"Adam": {"Adam": "m", "Adam_1": "v"}, "Momentum": {"Momentum": "momentum"}}


def main() -> None:
    """Runs everything, or one way in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, required=True, help="on the disk to measure; needs three times as much room")
    parser.add_argument("--without-tensorflow", action="store_true", help="leave the slow ways out")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        WAYS[arguments.way](arguments.folder)
        return
    maker = multiprocessing.get_context("spawn").Process(target=make, args=(arguments.folder, int(arguments.gib * 2**30)))
    maker.start()  # not here: on Linux a child's peak memory starts with its parent's
    maker.join()
    print("| way | seconds | CPU seconds | peak memory |\n|---|---|---|---|", flush=True)
    for way in WAYS:
        if not (arguments.without_tensorflow and way in SLOW):
            print(measure(way, arguments), flush=True)


def make(folder: Path, size: int) -> None:
    """A checkpoint of four variables with Adam's slots, one of the same size with Momentum's, and Keras' side of both."""
    folder.mkdir(parents=True, exist_ok=True)
    for optimizer, slots in SLOTS.items():
        rows = size // (4 * COLUMNS * 4 * (1 + len(slots)))
        names = [f"dense_{number}/kernel" for number in range(4)]
        values: dict[str, Any] = {"global_step": 1000}
        for name in [*names, *(f"{name}/{suffix}" for name in names for suffix in slots)]:
            values[name] = noise((rows, COLUMNS))
        write_tensors(folder / optimizer / "old" / "model.ckpt-1000", values)
        write_keras_side(folder / optimizer / "keras" / "ckpt-1", names, (rows, COLUMNS), list(slots.values()))


def noise(shape: tuple[int, int]) -> Tensor:
    """Bytes that no file system can compress, as float32 between 0 and 2."""
    import numpy as np

    piece = np.random.default_rng(0).random(1 << 20, np.float32).tobytes()
    size = shape[0] * shape[1] * 4
    return Tensor(1, shape, size, lambda: (piece[: size - start] for start in range(0, size, len(piece))))


def write_keras_side(prefix: Path, names: list[str], shape: tuple[int, int], slots: list[str]) -> None:
    """An index with the object graph of a tf_keras model; its data file is a hole of the right size."""
    nodes = [Node({"model": 1, "optimizer": 2}), Node(), Node({"iter": 3, "learning_rate": 4})]
    values: dict[str, Any] = {"optimizer/iter": int64(0), "optimizer/learning_rate": 0.01}
    leaves = {key: key.rpartition("/")[2] for key in values}
    nodes += [Node(attributes=[Attribute(trackable.VALUE, leaf, key + ATTRIBUTE)]) for key, leaf in leaves.items()]
    size = shape[0] * shape[1] * 4
    for number, name in enumerate(names):
        variable = len(nodes)
        nodes[1].children[f"layer-{number}"] = variable
        for slot in [None, *slots]:
            key = f"model/layer-{number}" + (f"/.OPTIMIZER_SLOT/optimizer/{slot}" if slot else "")
            if slot:
                nodes[2].slots.append(SlotReference(variable, slot, len(nodes)))
            nodes.append(Node(attributes=[Attribute(trackable.VALUE, name + (f"/{slot}" if slot else ""), key + ATTRIBUTE)]))
            values[key] = Entry(1, shape, 1, 0, size)
    small = {key + ATTRIBUTE: value for key, value in values.items() if not isinstance(value, Entry)}
    write_tensors(prefix, {**small, OBJECT_GRAPH: of_strings([trackable.encode(nodes)], ())})
    index = read_index(prefix)
    whole = Index(prefix, Header(2), {**index.entries})
    whole.entries.update({key + ATTRIBUTE: value for key, value in values.items() if isinstance(value, Entry)})
    data = index.shard(0)
    data.rename(whole.shard(0))
    with whole.shard(1).open("wb") as hole:
        hole.truncate(size)
    prefix.with_name(f"{prefix.name}.index").write_bytes(b"".join(encode_index(whole)))


def measure(way: str, arguments: argparse.Namespace) -> str:
    """One row: the best of three of a process that runs one way, whatever it takes to start included."""
    best = None
    for _ in range(1 if way in SLOW else 3):
        for optimizer in SLOTS:
            shutil.rmtree(arguments.folder / optimizer / "new", ignore_errors=True)
        os.sync()
        command = [sys.executable, __file__, "--folder", str(arguments.folder), "--way", way]
        started = time.monotonic()
        answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        told = json.loads(answer.stdout.splitlines()[-1]) | {"whole": time.monotonic() - started}
        best = told if best is None or told["seconds"] < best["seconds"] else best
    assert best is not None
    return f"| {way} | {best['seconds']:.3f} ({best['whole']:.2f} with start) | {best['cpu']:.2f} | {best['peak']:.0f} MB |"


def timed(folder: Path, optimizer: str, convert: Callable[[Path, Path], Any]) -> None:
    """Runs a way and prints what it took as JSON."""
    source, target = folder / optimizer / "old" / "model.ckpt-1000", folder / optimizer / "new" / "model.ckpt-1000"
    target.parent.mkdir(parents=True, exist_ok=True)
    before = time.process_time()
    started = time.monotonic()
    convert(source, target)
    seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": time.process_time() - before, "peak": peak}))


def ours(optimizer: str, copy: bool) -> Callable[[Path], None]:
    """Bilingual, by link or by copy."""

    def run(folder: Path) -> None:
        from estimator_bridge.compat.checkpoint.conversion import convert

        like = folder / optimizer / "keras" / "ckpt-1"
        timed(folder, optimizer, lambda source, target: convert(source, target, like=like, copy=copy))

    return run


def command_line(folder: Path) -> None:
    """The whole command in a process of its own."""
    arguments = ["-m", "estimator_bridge", "convert", "checkpoint", "--format", "json", "--like"]
    like = folder / "Adam" / "keras" / "ckpt-1"

    def run(source: Path, target: Path) -> None:
        subprocess.run([sys.executable, *arguments, str(like), str(source), str(target)], check=True, stdout=subprocess.PIPE)

    timed(folder, "Adam", run)


def copy_files(folder: Path) -> None:
    """``cp``, and a sync, since ours does not return before either."""

    def run(source: Path, target: Path) -> None:
        files = [str(path) for path in source.parent.iterdir()]
        subprocess.run(["cp", "--reflink=auto", *files, str(target.parent)], check=True)
        for path in target.parent.iterdir():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    timed(folder, "Adam", run)


def reader_and_saver(folder: Path) -> None:
    """Each value through Python, saved by one SaveV2."""

    def run(source: Path, target: Path) -> None:
        import tensorflow as tf

        reader = tf.train.load_checkpoint(str(source))
        names = sorted(reader.get_variable_to_shape_map())
        values = [tf.constant(reader.get_tensor(name)) for name in names]
        tf.raw_ops.SaveV2(prefix=str(target), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)

    timed(folder, "Adam", run)


def migration_guide(folder: Path) -> None:
    """A tf.Variable for each value, saved by a tf.train.Checkpoint."""

    def run(source: Path, target: Path) -> None:
        import tensorflow as tf

        reader = tf.train.load_checkpoint(str(source))
        names = sorted(reader.get_variable_to_shape_map())
        variables = {name.replace("/", "."): tf.Variable(reader.get_tensor(name)) for name in names}
        tf.train.Checkpoint(vars=variables).write(str(target))

    timed(folder, "Adam", run)


WAYS: dict[str, Callable[[Path], None]] = {
    "ours, link (Adam)": ours("Adam", copy=False),
    "ours, whole command (Adam)": command_line,
    "ours, link (Momentum: half of it changes)": ours("Momentum", copy=False),
    "ours, copy (Adam)": ours("Adam", copy=True),
    "cp and fsync": copy_files,
    "load_checkpoint and SaveV2": reader_and_saver,
    "tf.Variable and tf.train.Checkpoint": migration_guide,
}
SLOW = ("load_checkpoint and SaveV2", "tf.Variable and tf.train.Checkpoint")

if __name__ == "__main__":
    main()
