"""A script without TensorFlow: it kills writers of SavedModels and Keras files at random moments, and reports the state they left.

A few short writes stand for Keras: a half-written file must not get the target's name.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from estimator_bridge.compat.checkpoint import ConversionRequest, read_index
from estimator_bridge.compat.checkpoint.conversion.outputs import write
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.cli.convert.test_checkpoint import OLD
from tests.compat.checkpoint.conversion.test_outputs import contents, make_saved_model, write_saved_model
from tests.compat.checkpoint.writing.faulty_disk import Faults, WatchedDisk
from tests.compat.checkpoint.writing.killing import count_operations, kill_somewhere

Write = Callable[[Path, WatchedDisk], None]


def write_keras_file(old: Path, target: Path, disk: WatchedDisk) -> None:
    def ask(path: str, **question: Any) -> None:
        with Path(path).open("wb", buffering=0) as file:
            for part in range(10):
                disk.before("write")
                file.write(bytes([part]) * 1000)

    sides: Any = SimpleNamespace(
        request=ConversionRequest(old, target, to="keras", overwrite=True),
        saved_model=None,
        model=SimpleNamespace(handle=0),
        keras=SimpleNamespace(ask=ask),
        source=read_index(old),
    )
    write(Draft(sides.source), sides, disk=disk)


def everything(path: Path) -> dict[str, bytes]:
    return contents(path.parent) if path.parent.exists() else {}


def kill(target: Path, writer: Write, before: bytes | None, runs: int) -> tuple[int, int]:
    """Counts the runs that left the old state, and those that left the new one."""
    operations = count_operations(lambda disk: writer(target, disk))
    new = everything(target)
    old = {} if before is None else {target.name: before}
    counts = [0, 0]
    for run in range(runs):
        shutil.rmtree(target.parent)
        if before is not None:
            target.parent.mkdir()
            target.write_bytes(before)
        kill_somewhere(lambda disk: writer(target, disk), operations)
        left = {name: data for name, data in everything(target).items() if ".partial" not in name}
        if left not in (old, new):
            sys.exit(f"{target.name}, run {run}: neither the old state nor the new one: {sorted(left)}")
        counts[left == new] += 1
        if left != new:
            writer(target, Faults().disk)
            if everything(target) != new:
                sys.exit(f"{target.name}, run {run}: the second run did not succeed")
    return counts[0], counts[1]


def main(folder: Path, runs: int) -> None:
    random.seed(7)
    old = write_tensors(folder / "old" / "model.ckpt-1000", OLD)
    saved_model = make_saved_model(folder / "saved_model")
    sources = contents(old.parent), contents(saved_model)
    cases: list[tuple[str, bytes | None, Write]] = [
        ("exported", None, lambda target, disk: write_saved_model(old, saved_model, target, disk)),
        ("model.keras", b"another", lambda target, disk: write_keras_file(old, target, disk)),
    ]
    for name, before, writer in cases:
        sys.stdout.write("{} {}\n".format(*kill(folder / name.partition(".")[0] / name, writer, before, runs)))
    if (contents(old.parent), contents(saved_model)) != sources:
        sys.exit("A source has changed.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
