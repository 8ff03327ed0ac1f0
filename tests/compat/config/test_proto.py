"""Our own descriptors are TensorFlow's, in either import order, and broken protos give their position."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.compat.config import LegacyConfig, to_legacy, to_modern
from estimator_bridge.compat.config.proto.fields import (
    config_proto,
    first_fault,
    is_repeated,
    is_text,
    message_of,
    pool,
    read_binary,
    read_json,
    read_text,
    set_fields,
)
from estimator_bridge.compat.config.report import Row, value_text
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.compat.config.tables import SESSION, session_rule
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError


def paths(descriptor: Any, prefix: str = "", *, inside: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields every path that ``set_fields`` can return, for a ConfigProto descriptor of ours or TensorFlow's.

    Args:
        descriptor: Descriptor of the message.
        prefix: Prefix of the paths.
        inside: Message types around this one, so that a recursive type ends.

    Yields:
        Dotted paths of scalar, repeated and map fields.
    """
    for field in descriptor.fields:
        nested = field.message_type
        if nested is None or is_repeated(field) or nested.full_name in inside:
            yield prefix + field.name
        else:
            yield from paths(nested, f"{prefix}{field.name}.", inside=(*inside, nested.full_name))


def _same(ours: Any, theirs: Any, seen: set[str]) -> None:
    if theirs.full_name in seen:
        return
    seen.add(theirs.full_name)
    for field in theirs.fields:
        own = ours.fields_by_name[field.name]
        assert (own.number, own.type, own.has_presence) == (field.number, field.type, field.has_presence), field.full_name
        if field.enum_type is not None:
            mine = {value.name: value.number for value in own.enum_type.values}
            assert {value.name: value.number for value in field.enum_type.values}.items() <= mine.items()
        if field.message_type is not None:
            _same(own.message_type, field.message_type, seen)


def test_every_message_of_tensorflow_is_ours_field_by_field() -> None:
    import tensorflow as tf

    _same(config_proto().DESCRIPTOR, tf.compat.v1.ConfigProto.DESCRIPTOR, set())


@pytest.mark.tf221
def test_every_field_of_ours_is_tensorflows() -> None:
    import tensorflow as tf

    assert set(paths(config_proto().DESCRIPTOR)) == set(paths(tf.compat.v1.ConfigProto.DESCRIPTOR))


def test_our_descriptors_first() -> None:
    program = Path(__file__).parent / "programs" / "our_descriptors_first.py"
    subprocess.run([sys.executable, program], check=True, timeout=90, capture_output=True)


def test_tensorflows_descriptors_first() -> None:
    import tensorflow as tf

    fresh = pool.__wrapped__()  # made now, when TensorFlow's have long been there
    theirs = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    own = message_factory.GetMessageClass(fresh.FindMessageTypeByName("tensorflow.ConfigProto"))()
    own.ParseFromString(theirs.SerializeToString())
    assert str(own) == str(theirs)


def test_reading_a_proto_does_not_import_tensorflow() -> None:
    program = (
        "import sys; from estimator_bridge.compat.config.proto.fields import read_text; read_text('placement_period: 1');"
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("gpu_options {\n  allow_grwth: true\n}", "line 2, column 3"),
        ("intra_op_parallelism_threads: two", "line 1, column 31"),
        ("gpu_options {", "line 1"),
        ('{"a": 1}', "line 1"),
    ],
)
def test_broken_text_gives_its_position(text: str, where: str) -> None:
    with pytest.raises(BridgeError) as caught:
        read_text(text, "session.pbtxt")
    assert f"session.pbtxt, {where}" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"\x38\x01\xff", "byte 2"),
        (b"2\x05 \x01", "byte 0"),
        (b"\xf8\x07\x01", "byte 0"),
        (b"2\x02\xf8\x07", "byte 2"),
        (b"\x3f", "byte 0"),
    ],
)
def test_broken_bytes_give_their_offset(data: bytes, where: str) -> None:
    with pytest.raises(BridgeError, match=f"session.pb, {where}"):
        read_binary(data, "session.pb")


def test_broken_json_names_the_field() -> None:
    with pytest.raises(BridgeError, match="allow_grwth"):
        read_json({"gpu_options": {"allow_grwth": True}})


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "intra_op_parallelism_threads": st.integers(1, 64),
    "inter_op_parallelism_threads": st.integers(-1, 64).filter(bool),
    "min_graph_nodes": st.integers(1, 99),
    "device_count": st.dictionaries(st.sampled_from(["CPU", "GPU"]), st.integers(1, 8), min_size=1),
    "visible_device_list": st.lists(st.integers(0, 7), min_size=1, unique=True).map(
        lambda ids: ",".join(map(str, sorted(ids)))
    ),
    "experimental.virtual_devices": st.lists(
        st.fixed_dictionaries({"memory_limit_mb": st.lists(st.integers(1, 9999).map(float), min_size=1).map(tuple)}), min_size=1
    ).map(tuple),
    "global_jit_level": st.sampled_from(["ON_1", "OFF"]),
}


def _value(rule: Any) -> st.SearchStrategy[Any]:
    if rule.name in VALUES:
        return VALUES[rule.name]
    return st.sampled_from(rule.examples)


EXACT = {
    (f"{prefix}.{rule.name}" if prefix else rule.name): _value(rule)
    for prefix, table in SESSION.items()
    for rule in table
    if rule.fidelity is Fidelity.EXACT
}


@given(st.fixed_dictionaries({}, optional=EXACT))
@settings(max_examples=200)
def test_exact_session_fields_round_trip(values: dict[str, Any]) -> None:
    binary = message_of(values).SerializeToString()
    assert set_fields(read_binary(binary)) == values
    assert not binary or not is_text(binary)
    assert set_fields(read_text(str(message_of(values)))) == values
    modern, report = to_modern(LegacyConfig(session_config=values))
    checks = [row for row in report.rows if row.name.startswith("check.")]
    assert checks or report.exit_code() == 0
    back, again = to_legacy(modern)
    assert (back.session_config or {}) == values
    assert again.exit_code() == 0
    assert flatten(to_modern(back)[0]) == flatten(modern)


def test_every_path_of_the_schema_has_a_row() -> None:
    assert [path for path in paths(config_proto().DESCRIPTOR) if session_rule(path) is None] == []


def nested(number: int) -> bytes:
    """Custom optimizers' parameters: functions of attributes of functions, and so on."""
    config = config_proto()
    value = config.graph_options.rewrite_options.custom_optimizers.add().parameter_map["a"]
    for _ in range(number):
        value = value.func.attr["a"]
    value.i = 1
    return bytes(config.SerializeToString())


def test_messages_that_stand_too_deep_in_each_other() -> None:
    assert first_fault(nested(5), config_proto().DESCRIPTOR) is None
    with pytest.raises(BridgeError, match="a message inside 100 others"):
        read_binary(nested(60))
    opened = (
        "graph_options { rewrite_options { custom_optimizers { parameter_map { key: 'a' value "
        + "{ func { attr { key: 'a' value " * 3000
    )
    with pytest.raises(BridgeError):
        read_text(opened)


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert value_text(Row("model_dir", "\x1b[2J", Fidelity.EXACT)) == '"\\u001b[2J"'
