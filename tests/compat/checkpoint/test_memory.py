"""Memory stays bounded, whatever the size of a variable that is scaled and for 200,000 names."""

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
from estimator_bridge.compat.checkpoint.reading.index import Index, encode_index, index_path, read_index, shard_path

ROOT = Path(__file__).parents[3]
BOUND = 200 * 2**20
MANY = 200_000
SHAPE = (2**16, 2**10)  # 256 MiB of float32
PROGRAM = Path(__file__).with_name("peak_memory.py")

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")


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


def taken(*arguments: object) -> int:
    """Bytes that a conversion takes on top of the interpreter."""
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    peak, written, imported = json.loads(done.stdout)
    assert (written, imported) == (True, [])
    assert isinstance(peak, int)
    return peak


@pytest.mark.parametrize("how", ["link", "copy"])
def test_a_conversion_takes_little_memory(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    inputs: Any = __import__("checkpoint_inputs")
    old, new, like = tmp_path / "old" / "m", tmp_path / "new" / "m", tmp_path / "keras" / "ckpt-1"
    write_momentum(old)
    inputs.write_keras_side(like, ["dense_0/kernel"], SHAPE, ["momentum"])
    assert taken(old, new, like, how) < BOUND
    assert read_index(new).num_bytes("model/layer-0/.OPTIMIZER_SLOT/optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE") > BOUND


def test_many_names_take_little_memory(tmp_path: Path) -> None:
    old, new = tmp_path / "old" / "model.ckpt", tmp_path / "new" / "model.ckpt"
    stored = Entry(9, (), 0, 0, 8, crc32c.mask(crc32c.value(bytes(8))))
    names = ["global_step", *(f"tower/layer_{number:06d}/kernel" for number in range(MANY))]
    old.parent.mkdir()
    index_path(old).write_bytes(b"".join(encode_index(Index(old, Header(1), dict.fromkeys(names, stored)))))
    shard_path(old, 0, 1).write_bytes(bytes(8))
    assert taken(old, new, "", "link") < BOUND
    assert len(read_index(new).entries) == 2 * len(names) + 2  # a key for each name, the graph and its counter
