"""Memory stays bounded: a slot that is scaled is larger than all that a conversion may take on top of the interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.compat.checkpoint.format import crc32c
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.index import Index, encode_index, index_path, read_index, shard_path

ROOT = Path(__file__).parents[3]
BOUND = 200 * 2**20
SHAPE = (2**16, 2**10)  # 256 MiB of float32
SCRIPT = """
import json, sys
from pathlib import Path

def peak():  # of this program: getrusage would begin with the peak of the process that started it
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

before = peak()
from estimator_bridge.compat.checkpoint import convert
report = convert(sys.argv[1], sys.argv[2], like=sys.argv[3], copy=sys.argv[4] == "copy")
print(json.dumps([peak() - before, report.written, sorted({"tensorflow"} & sys.modules.keys())]))
"""


def write_momentum(prefix: Path) -> None:
    """A variable and its slot, which share one hole of zeros."""
    size = SHAPE[0] * SHAPE[1] * 4
    piece, crc = bytes(2**20), 0
    for _ in range(size // len(piece)):
        crc = crc32c.value(piece, crc)
    stored = Entry(1, SHAPE, 0, 0, size, crc32c.mask(crc))
    step = Entry(9, (), 0, 0, 8, crc32c.mask(crc32c.value(bytes(8))))
    index = Index(prefix, Header(1), {"dense_0/kernel": stored, "dense_0/kernel/Momentum": stored, "global_step": step})
    prefix.parent.mkdir()
    index_path(prefix).write_bytes(b"".join(encode_index(index)))
    with shard_path(prefix, 0, 1).open("wb") as hole:
        hole.truncate(size)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.parametrize("how", ["link", "copy"])
def test_a_conversion_takes_little_memory(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    inputs: Any = __import__("checkpoint_inputs")
    old, new, like = tmp_path / "old" / "m", tmp_path / "new" / "m", tmp_path / "keras" / "ckpt-1"
    write_momentum(old)
    inputs.write_keras_side(like, ["dense_0/kernel"], SHAPE, ["momentum"])
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", SCRIPT, *map(str, (old, new, like)), how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    taken, written, imported = json.loads(done.stdout)
    assert (written, imported) == (True, [])
    assert taken < BOUND
    assert read_index(new).num_bytes("model/layer-0/.OPTIMIZER_SLOT/optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE") > BOUND
