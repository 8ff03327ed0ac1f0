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
from tests.compat.config.test_proto import paths
from tests.forked_programs import Run

ASK = """
import importlib, inspect, json, pkgutil, sys
from estimator_bridge import legacy
legacy.install()
import tensorflow as tf
from tensorflow.python.distribute.distribute_config import DistributeConfig
v1 = tf.compat.v1
hooks, seen = set(), set()
def walk(module, depth):
    if id(module) in seen or depth > 5:
        return
    seen.add(id(module))
    for name in dir(module):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except (AttributeError, ImportError):
            continue
        if inspect.isclass(value) and issubclass(value, (v1.train.SessionRunHook, v1.train.CheckpointSaverListener)):
            hooks.add(name)
        elif inspect.ismodule(value) and "tensorflow" in value.__name__ and "keras" not in value.__name__:
            walk(value, depth + 1)
walk(tf, 0)
estimator = tf.estimator
walk(estimator.experimental, 4)
def properties(cls):
    return [name for name in dir(cls) if isinstance(getattr(cls, name), property)]
def arguments(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls", "args", "kwargs")]
from tensorflow_estimator.python.estimator import exporter, run_config
exporters = [getattr(estimator, name) for name in dir(estimator) if "Exporter" in name]
print(json.dumps({
    "run_config": sorted(set(properties(estimator.RunConfig)) | set(properties(v1.estimator.tpu.RunConfig))
                         | set(run_config._DEFAULT_REPLACEABLE_LIST) | set(arguments(estimator.RunConfig))),
    "tpu_config": list(v1.estimator.tpu.TPUConfig._fields),
    "distribute_config": list(DistributeConfig._fields),
    "train_spec": list(estimator.TrainSpec._fields),
    "eval_spec": list(estimator.EvalSpec._fields),
    "exporters": [cls.__name__ for cls in exporters],
    "exporter_arguments": sorted({name for cls in exporters if cls.__name__ != "Exporter" for name in arguments(cls.__init__)}),
    "hooks": sorted(hooks),
    "early_stopping": [name for name in dir(estimator.experimental) if name.endswith("_hook")],
    "partitioners": [name for name in dir(v1) if "partition" in name and name != "dynamic_partition"],
    "defaults": {name: getattr(estimator.RunConfig(), name) for name in
                 ("save_summary_steps", "save_checkpoints_secs", "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps")},
}))
"""


@pytest.fixture(scope="module")
def surface(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run(ASK)
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
