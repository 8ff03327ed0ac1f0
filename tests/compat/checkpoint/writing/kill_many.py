"""A script without TensorFlow: it kills conversions at random moments and reports the state they left."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from estimator_bridge.compat.checkpoint.writing.publish import Options
from estimator_bridge.compat.checkpoint.writing.small_checkpoints import write_tensors
from tests.compat.checkpoint.writing.faulty_disk import slow_disk
from tests.compat.checkpoint.writing.test_publish import OLD, contents, convert, digest

SLOWNESS = 0.001


def main(folder: Path, runs: int) -> None:
    random.seed(7)
    source = write_tensors(folder / "source" / "model.ckpt-7", {"w": [1.5, 2.5], "b": 3.0, "global_step": 7})
    before = digest(source.parent)
    started = time.monotonic()
    convert(source, folder / "whole" / "m", slow_disk(SLOWNESS))
    duration = time.monotonic() - started
    new = contents(folder / "whole" / "m")
    counts = {"old": 0, "new": 0}
    for run in range(runs):
        target = folder / "target" / "m"
        replacing = run % 2 == 1
        if replacing:
            write_tensors(target, OLD)
        old = contents(target)
        options = Options(copy=run % 3 == 0, overwrite=replacing)
        child = os.fork()
        if not child:
            convert(source, target, slow_disk(SLOWNESS), options)
            os._exit(0)
        time.sleep(random.uniform(0, duration * 1.3))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = contents(target)
        if left not in (old, new):
            sys.exit(f"run {run}: neither the old state nor the new one")
        counts["old" if left == old else "new"] += 1
        convert(source, target, None, options)
        if contents(target) != new or digest(source.parent) != before:
            sys.exit(f"run {run}: the second run did not succeed, or the source has changed")
        shutil.rmtree(target.parent)
    sys.stdout.write(f"{counts['old']} {counts['new']}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
