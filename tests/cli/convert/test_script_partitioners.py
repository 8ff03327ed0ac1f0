"""Partitioners that a script's text makes."""

from __future__ import annotations

import ast

import pytest

from estimator_bridge.cli.convert.script_partitioners import find_partitioner
from estimator_bridge.compat.config.model import ConfigPart, LegacyConfig
from estimator_bridge.compat.source.reading import Source
from estimator_bridge.modern.parallel.plans.legacy_config import plan_tables


def find(*texts: str) -> ConfigPart | None:
    return find_partitioner([Source(f"file_{number}.py", text, ast.parse(text)) for number, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("text", "kind", "arguments"),
    [
        ("import tensorflow as tf\ntf.fixed_size_partitioner(4)", "fixed_size_partitioner", {"num_shards": 4}),
        ("tf.compat.v1.fixed_size_partitioner(4, axis=1)", "fixed_size_partitioner", {"num_shards": 4, "axis": 1}),
        (
            "from tensorflow import min_max_variable_partitioner\nmin_max_variable_partitioner(8, 0, min_slice_size=1024)",
            "min_max_variable_partitioner",
            {"max_partitions": 8, "axis": 0, "min_slice_size": 1024},
        ),
        ("tf.variable_axis_size_partitioner(1000)", "variable_axis_size_partitioner", {"max_shard_bytes": 1000}),
    ],
)
def test_literal_arguments_are_read(caplog: pytest.LogCaptureFixture, text: str, kind: str, arguments: dict[str, int]) -> None:
    """Twice the same partitioner is one; the warning has its places."""
    assert find(text, text, "x = 1") == ConfigPart(kind, arguments)
    assert "file_0.py:" in caplog.text
    assert "file_1.py:" in caplog.text
    assert f"tf.{kind} is read as the partitioner of all variables" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "tf.fixed_size_partitioner(FLAGS.shards)",
        "tf.fixed_size_partitioner(*[4])",
        "tf.fixed_size_partitioner(**{'num_shards': 4})",
        "tf.fixed_size_partitioner(4, shards=2)",
        "tf.fixed_size_partitioner(4, 0, 1)",
        "tf.fixed_size_partitioner(2); tf.fixed_size_partitioner(4)",
    ],
)
def test_what_the_text_does_not_tell_is_said(caplog: pytest.LogCaptureFixture, text: str) -> None:
    assert find(text) is None
    assert "the partitioner is not read" in caplog.text
    assert "file_0.py" in caplog.text


def test_a_script_without_partitioners_has_none(caplog: pytest.LogCaptureFixture) -> None:
    assert find("x = 1") is None
    assert not caplog.text


def test_the_plan_cuts_all_variables() -> None:
    tables, _ = plan_tables(LegacyConfig(partitioner=find("tf.fixed_size_partitioner(2)")))
    assert tables == {"mesh": {"model": 2}, "place": [{"match": ".*", "shards": 2, "axis": 0, "min_bytes": 1}]}
