"""Messages of damaged checkpoints name the file that is damaged, whichever layer finds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.errors import CorruptError, TargetError
from estimator_bridge.compat.checkpoint.format import table
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.models.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors


@pytest.mark.parametrize(
    "records",
    [
        [(b"w", b"")],
        [(b"", Header(1).encode()), (b"w", b"\x0a")],
        [(b"", Header(1).encode()), (b"w", Entry(1, (2,), size=4).encode())],
    ],
    ids=["no header", "a protobuf message", "a contradiction"],
)
def test_an_index(tmp_path: Path, records: list[tuple[bytes, bytes]]) -> None:
    (tmp_path / "m.index").write_bytes(b"".join(table.encode(records)))
    with pytest.raises(CorruptError, match=re.escape(str(tmp_path / "m.index"))):
        read_index(tmp_path / "m")


def test_a_data_file(tmp_path: Path) -> None:
    prefix = write_tensors(tmp_path / "m", {"w": [1.0, 2.0], "text": b"abc"})
    data = tmp_path / "m.data-00000-of-00001"
    data.write_bytes(bytes(255 - byte for byte in data.read_bytes()))
    index = read_index(prefix)
    for name, entry in index.stored():
        with pytest.raises(CorruptError, match=re.escape(str(data))):
            values.verify(index, entry, name)


def test_an_object_graph(tmp_path: Path) -> None:
    prefix = write_tensors(tmp_path / "m", {OBJECT_GRAPH: tensors.of_strings([b"\x0a\xff"], ())})
    with pytest.raises(CorruptError, match=re.escape(str(prefix))):
        read_object_model(read_index(prefix))


def test_a_damaged_target_is_not_replaced_without_being_asked(tmp_path: Path) -> None:
    old = write_tensors(tmp_path / "old", {"w": [1.0]})
    (tmp_path / "new.index").write_bytes(b"no index")
    with pytest.raises(TargetError, match="something else"):
        convert(old, tmp_path / "new", to="name-based")
