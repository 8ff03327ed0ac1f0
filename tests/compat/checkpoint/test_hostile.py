"""Damaged and hostile checkpoints: a typed error that says what is wrong, soon, and without taking the machine's memory."""

from __future__ import annotations

import contextlib
import math
import struct
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.errors import CheckpointError, CorruptError, NotFoundError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c, ordered_code, snappy, table
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.models.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.reading.index import Index, encode_index, index_path
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.runtime.protobuf import varint, wire

HEADER = (b"", Header(1).encode())
QUICK = settings(max_examples=300, suppress_health_check=list(HealthCheck))


def write_index(folder: Path, records: Iterable[tuple[bytes, bytes]]) -> Path:
    prefix = folder / "m"
    index_path(prefix).write_bytes(b"".join(table.encode(records)))
    return prefix


def write_entries(folder: Path, **entries: Entry) -> Path:
    return write_index(folder, [HEADER, *((name.encode(), entry.encode()) for name, entry in sorted(entries.items()))])


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = {"dense/kernel": [[1.0, 2.0]], "dense/bias": [3.0], "note": "text", "global_step": 7}
    return write_tensors(tmp_path_factory.mktemp("good") / "m", given)


def everything(prefix: Path) -> tuple[Index, list[bool]]:
    index = read_index(prefix)
    values.check_shards(index)
    return index, [values.verify(index, entry, name) for name, entry in index.stored()]


@QUICK
@given(st.data())
def test_no_bit_of_an_index_flips_unseen(good: Path, tmp_path: Path, data: st.DataObject) -> None:
    contents = bytearray(index_path(good).read_bytes())
    bit = data.draw(st.integers(0, 8 * len(contents) - 1))
    contents[bit // 8] ^= 1 << bit % 8
    index_path(tmp_path / "m").write_bytes(contents)
    with contextlib.suppress(CheckpointError, CorruptError):
        index = read_index(tmp_path / "m")
        assert index.entries == read_index(good).entries  # the padding of the footer, and the meta block, say nothing


@pytest.mark.parametrize("kept", [0, 1, 47, 48, 100, -1])
def test_truncated_index(good: Path, tmp_path: Path, kept: int) -> None:
    index_path(tmp_path / "m").write_bytes(index_path(good).read_bytes()[:kept])
    with pytest.raises(CorruptError):
        read_index(tmp_path / "m")


@QUICK
@given(st.integers(0))
def test_no_bit_of_a_tensor_flips_unseen(good: Path, tmp_path: Path, bit: int) -> None:
    source = read_index(good)
    index_path(tmp_path / "m").write_bytes(index_path(good).read_bytes())
    contents = bytearray(source.shard(0).read_bytes())
    bit %= 8 * len(contents)
    contents[bit // 8] ^= 1 << bit % 8
    (tmp_path / source.shard(0).name).write_bytes(contents)
    with pytest.raises(CorruptError):
        everything(tmp_path / "m")


def test_missing_and_truncated_data(good: Path, tmp_path: Path) -> None:
    source = read_index(good)
    index_path(tmp_path / "m").write_bytes(index_path(good).read_bytes())
    with pytest.raises(NotFoundError, match="data file is missing"):
        everything(tmp_path / "m")
    (tmp_path / source.shard(0).name).write_bytes(source.shard(0).read_bytes()[:-1])
    with pytest.raises(CorruptError, match="is too short"):
        everything(tmp_path / "m")


@pytest.mark.parametrize(
    "entry",
    [
        Entry(1, (2,), 0, 0, 2**60),
        Entry(1, (2**58,), 0, 0, 2**60),
        Entry(1, (2,), 0, 2**63 - 1, 8),
        Entry(1, (2,), 1, 0, 8),
        Entry(1, (2,), 2**31, 0, 8),
        Entry(1, (2**62, 2**62, 0), 0, 0, 8),
        Entry(1, (3,), 0, 0, 8),
        Entry(7, (2**60,), 0, 0, 10),
        Entry(1, (4,), slices=(((0, 2),), ((2, 2),))),
    ],
)
def test_impossible_entries(tmp_path: Path, entry: Entry) -> None:
    prefix = write_entries(tmp_path, w=entry)
    (tmp_path / "m.data-00000-of-00001").write_bytes(bytes(100))
    with pytest.raises(CorruptError):
        everything(prefix)


@pytest.mark.parametrize("extents", [((0, 3),), ((3, 2),), ((-1, 2),), ((2**62, 2**62),), ((0, -5),), ((0, 2), (0, 2))])
def test_impossible_slices(tmp_path: Path, extents: tuple[tuple[int, int], ...]) -> None:
    whole = Entry(1, (4,), slices=(extents, ((2, 2),)))
    keys = {ordered_code.encode(b"w", cut): Entry(1, (2,), 0, 0, 8) for cut in whole.slices}
    records = sorted([HEADER, (b"w", whole.encode()), *((key, piece.encode()) for key, piece in keys.items())])
    with pytest.raises((CorruptError, ValueError)) as raised:
        read_index(write_index(tmp_path, records))
    assert raised.type is CorruptError


def test_slices_that_overlap_and_leave_a_gap(tmp_path: Path) -> None:
    """They have as many elements as the whole."""
    lines, squares = [((0, 2),), ((1, 2),)], [((0, 2), (0, 2)), ((0, 2), (1, 2)), ((2, 1), (1, 1))]
    for shape, cuts in (((4,), lines), ((3, 3), squares)):
        records = [HEADER, (b"w", Entry(1, shape, slices=tuple(cuts)).encode())]
        for cut in cuts:
            size = tuple(length for _, length in cut)
            records.append((ordered_code.encode(b"w", cut), Entry(1, size, 0, 0, 4 * math.prod(size)).encode()))
        with pytest.raises(CorruptError, match="contradicts itself"):
            read_index(write_index(tmp_path, sorted(records)))


def forged(tmp_path: Path, blocks: list[bytes], handles: list[tuple[int, int]]) -> Path:
    """A table of blocks with handles that may lie."""
    offset = sum(map(len, blocks))
    records = [(b"%05d" % number, varint.encode(at) + varint.encode(size)) for number, (at, size) in enumerate(handles)]
    index = table.seal(table.build_block(records, interval=1))
    footer = varint.encode(0) * 2 + varint.encode(offset) + varint.encode(len(index) - table.TRAILER)
    index_path(tmp_path / "m").write_bytes(b"".join([*blocks, index, footer.ljust(40, b"\0"), table.MAGIC]))
    return tmp_path / "m"


def test_block_offsets_outside_the_file_or_in_a_circle(tmp_path: Path) -> None:
    records = table.seal(table.build_block([HEADER, (b"w", Entry(1, (2,), 0, 0, 8).encode())]))
    size = len(records) - table.TRAILER
    for handles in ([(2**60, size)], [(0, 2**60)], [(0, 2**64 - 1)], [(0, size)] * 2, [(0, size), (1, size)]):
        with pytest.raises(CorruptError):
            read_index(forged(tmp_path, [records], handles))
    assert list(read_index(forged(tmp_path, [records], [(0, size)])).entries) == ["w"]


def test_footer_that_points_at_itself(tmp_path: Path) -> None:
    index_path(tmp_path / "m").write_bytes(varint.encode(0) * 4 + bytes(36) + table.MAGIC)
    with pytest.raises(CorruptError):
        read_index(tmp_path / "m")


def test_prefix_bomb_takes_little_memory(tmp_path: Path) -> None:
    """Keys that share 60,000 bytes with the one before and add one byte: 4 bytes on disk, 60,000 in memory."""
    start = b"k" * 60_000
    entry = Entry(1, (0,)).encode()
    out = [b"\0" + varint.encode(0) + varint.encode(len(HEADER[1])) + HEADER[1]]
    out.append(b"\0" + varint.encode(len(start)) + varint.encode(len(entry)) + start + entry)
    for number in range(200_000):
        tail = number.to_bytes(4, "big")
        out.append(varint.encode(len(start)) + b"\4" + varint.encode(len(entry)) + tail + entry)
    sealed = table.seal(b"".join(out) + struct.pack("<II", 0, 1))
    prefix = forged(tmp_path, [sealed], [(0, len(sealed) - table.TRAILER)])
    assert index_path(prefix).stat().st_size < 5_000_000
    tracemalloc.start()
    with pytest.raises(CorruptError, match="too many"):
        read_index(prefix)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 1024 * 1024


def test_key_that_shares_more_than_there_is(tmp_path: Path) -> None:
    for record in (b"\x05\x01\x00w", b"\x00\x7fx", b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00w", b"\x80" * 11):
        sealed = table.seal(record + struct.pack("<II", 0, 1))
        with pytest.raises(CorruptError):
            read_index(forged(tmp_path, [sealed], [(0, len(sealed) - table.TRAILER)]))


def compressed(contents: bytes) -> bytes:
    """Snappy without any compression: literals only."""
    pieces = [contents[at : at + 60] for at in range(0, len(contents), 60)]
    data = varint.encode(len(contents)) + b"".join(bytes([len(piece) - 1 << 2]) + piece for piece in pieces)
    stored = data + b"\1"
    return stored + struct.pack("<I", crc32c.mask(crc32c.value(stored)))


def test_snappy_blocks_are_read(tmp_path: Path) -> None:
    sealed = compressed(table.build_block([HEADER, (b"w", Entry(1, (2,), 0, 0, 8).encode())]))
    assert list(read_index(forged(tmp_path, [sealed], [(0, len(sealed) - table.TRAILER)])).entries) == ["w"]


@pytest.mark.parametrize(
    "data",
    [
        varint.encode(2**40) + b"\0a",
        varint.encode(5) + b"\0a",
        varint.encode(1) + b"\xf0\xff",
        varint.encode(4) + b"\x01\x05",
        varint.encode(4) + b"\0a\x01\x00",
        varint.encode(30) + b"\0a\x12",
        b"",
    ],
)
def test_hostile_snappy(data: bytes) -> None:
    with pytest.raises(CorruptError):
        snappy.decompress(data)


@QUICK
@given(st.binary(max_size=200))
def test_snappy_of_anything_is_an_error_or_a_result(data: bytes) -> None:
    with contextlib.suppress(CorruptError):
        assert len(snappy.decompress(data)) <= snappy.MOST_GAIN * len(data)


@QUICK
@given(st.binary(max_size=60))
def test_messages_of_anything_are_an_error_or_a_result(data: bytes) -> None:
    for decode in (Header.decode, Entry.decode, ordered_code.decode, lambda data: list(wire.fields(data))):
        with contextlib.suppress(CheckpointError, CorruptError):
            decode(data)


@pytest.mark.parametrize("records", [[], [(b"w", Entry(1, (0,)).encode())], [(b"", b"")], [(b"", b"\x08\x00")]])
def test_indexes_without_a_header(tmp_path: Path, records: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(CorruptError):
        read_index(write_index(tmp_path, records))


def test_nothing_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "m", tmp_path / "m.index", tmp_path / ("m" * 5000), "nul\0byte"):
        with pytest.raises(NotFoundError):
            read_index(path)


def test_state_file_with_anything_in_it(good: Path, tmp_path: Path) -> None:
    for text in ("", "\0\0", 'model_checkpoint_path: "\\x"', 'model_checkpoint_path: "../../../etc"', "a" * 10_000):
        (tmp_path / "checkpoint").write_text(text)
        with pytest.raises(NotFoundError):
            read_index(tmp_path)
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{good}"\n')
    assert read_index(tmp_path).prefix == good


def test_new_tensors_beside_big_endian_ones(good: Path, tmp_path: Path) -> None:
    from estimator_bridge.compat.checkpoint.writing.draft import Draft
    from estimator_bridge.compat.checkpoint.writing.publish import publish

    source = read_index(good)
    source.header = source.header._replace(big_endian=True)
    index_path(good.with_name("big")).write_bytes(b"".join(encode_index(source)))
    (good.with_name("big.data-00000-of-00001")).write_bytes(source.shard(0).read_bytes())
    draft = Draft(read_index(good.with_name("big")))
    publish(draft, tmp_path / "renamed")
    assert read_index(tmp_path / "renamed").header.big_endian
    draft.put("added", tensors.number(1))
    with pytest.raises(UnsupportedError, match="big-endian"):
        publish(draft, tmp_path / "target")
    assert not (tmp_path / "target.index").exists()


def test_an_object_graph_without_nodes(tmp_path: Path) -> None:
    prefix = write_tensors(tmp_path / "m", {OBJECT_GRAPH: tensors.of_strings([b""], ())})
    with pytest.raises(CorruptError, match="no nodes"):
        read_object_model(read_index(prefix))
