"""The tables are complete over what the installed TensorFlow and tensorflow-estimator really have."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from estimator_bridge.compat.config.proto.fields import config_proto
from estimator_bridge.compat.config.tables import (
    ALL,
    DISTRIBUTE_CONFIG,
    EARLY_STOPPING,
    EVAL_SPEC,
    EXPORTERS,
    HOOKS,
    PARTITIONERS,
    RUN_CONFIG,
    SESSION,
    TPU_CONFIG,
    TRAIN_SPEC,
    session_rule,
)
from estimator_bridge.compat.rules import Fidelity
from tests.compat.config.programs.surface import names
from tests.compat.config.test_proto import paths
from tests.forked_programs import Run


@pytest.fixture(scope="module")
def surface(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run(names)
    return found


TABLES = {
    "run_config": RUN_CONFIG,
    "tpu_config": TPU_CONFIG,
    "distribute_config": DISTRIBUTE_CONFIG,
    "train_spec": TRAIN_SPEC,
    "eval_spec": EVAL_SPEC,
    "exporters": EXPORTERS,
    "hooks": HOOKS,
    "early_stopping": EARLY_STOPPING,
    "partitioners": PARTITIONERS,
}


TENSORFLOW_1_ONLY = {"CheckpointInputPipelineHook"}  # public in tf.data.experimental of TensorFlow 1


@pytest.mark.parametrize("name", TABLES)
def test_every_name_has_a_row_and_every_row_a_name(surface: dict[str, Any], name: str) -> None:
    wanted = set(surface[name]) | (
        set(surface["exporter_arguments"]) - {"name", "exports_to_keep"} if name == "exporters" else set()
    )
    assert wanted - set(TABLES[name].names) == set()
    assert set(TABLES[name].names) - wanted <= TENSORFLOW_1_ONLY


def test_the_defaults_are_run_configs_own(surface: dict[str, Any]) -> None:
    from estimator_bridge.compat.config.tables.run_config import DEFAULTS

    assert surface["defaults"] == dict(DEFAULTS)


def test_every_config_proto_field_has_a_row() -> None:
    import tensorflow as tf

    assert [path for path in paths(tf.compat.v1.ConfigProto.DESCRIPTOR) if session_rule(path) is None] == []


def test_every_row_of_the_session_is_a_field() -> None:
    known = set(paths(config_proto().DESCRIPTOR))
    rows = [f"{prefix}.{name}" if prefix else name for prefix, table in SESSION.items() for name in table.names]
    assert [row for row in rows if row not in known and not any(path.startswith(row + ".") for path in known)] == []


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_rows_that_are_not_carried_over_say_why(table: Any) -> None:
    for rule in table:
        if not rule.fidelity.automatic:
            assert len(rule.note.split()) >= 4, rule.name
        else:
            assert rule.examples, f"{table.name}.{rule.name} shows no value"


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_rows_with_a_way_back_give_their_examples_back(table: Any) -> None:
    for rule in table:
        if rule.invert is None or rule.convert is None:
            continue
        for example in rule.examples:
            done = rule.convert(example)
            if rule.fidelity is Fidelity.EXACT:
                assert done.fidelity in {None, Fidelity.EXACT}, (rule.name, done)
            assert rule.invert(done.settings) == example, rule.name


def test_functions_of_rows_are_short() -> None:
    assert max(len(inspect.getsource(rule.convert).splitlines()) for table in ALL for rule in table if rule.convert) < 20
