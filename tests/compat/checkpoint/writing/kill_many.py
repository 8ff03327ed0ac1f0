"""A script without TensorFlow: it kills conversions at random moments and reports the state they left."""

from __future__ import annotations

import itertools
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from estimator_bridge.compat.checkpoint.writing.publish import Options, write_tensors
from tests.compat.checkpoint.writing.faulty_disk import WatchedDisk
from tests.compat.checkpoint.writing.killing import count_operations, kill_somewhere
from tests.compat.checkpoint.writing.test_publish import OLD, contents, convert, digest


def prepare(target: Path, replacing: bool, copy: bool) -> Options:
    """Makes the state before a conversion, and returns its options."""
    if target.parent.exists():
        shutil.rmtree(target.parent)
    if replacing:
        write_tensors(target, OLD)
    return Options(copy=copy, overwrite=replacing)


def main(folder: Path, runs: int) -> None:
    random.seed(7)
    source = write_tensors(folder / "source" / "model.ckpt-7", {"w": [1.5, 2.5], "b": 3.0, "global_step": 7})
    before = digest(source.parent)
    target = folder / "target" / "m"

    def writer(options: Options) -> Callable[[WatchedDisk], object]:
        return lambda disk: convert(source, target, disk, options)

    kinds = itertools.product((False, True), repeat=2)
    operations = {kind: count_operations(writer(prepare(target, *kind))) for kind in kinds}
    new = contents(target)
    counts = {"old": 0, "new": 0}
    for run in range(runs):
        kind = run % 2 == 1, run % 3 == 0
        options = prepare(target, *kind)
        old = contents(target)
        kill_somewhere(writer(options), operations[kind])
        left = contents(target)
        if left not in (old, new):
            sys.exit(f"run {run}: neither the old state nor the new one")
        counts["old" if left == old else "new"] += 1
        convert(source, target, None, options)
        if contents(target) != new or digest(source.parent) != before:
            sys.exit(f"run {run}: the second run did not succeed, or the source has changed")
    sys.stdout.write(f"{counts['old']} {counts['new']}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
