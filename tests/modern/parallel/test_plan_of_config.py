"""Plans from TensorFlow 1's configurations, and back."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_bridge.cli.main import main
from estimator_bridge.compat.config.model import ConfigPart, LegacyConfig
from estimator_bridge.modern.parallel.plans.legacy_config import legacy_of, plan_tables
from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL, ParallelPlan, PlacementPlan, PlaceRule
from estimator_bridge.modern.parallel.plans.reading import read_plan

RUN_CONFIG = {
    "save_checkpoints_steps": 50,
    "TF_CONFIG": {
        "cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]},
        "task": {"type": "chief", "index": 0},
    },
    "partitioner": {"class": "min_max_variable_partitioner", "max_partitions": 2, "min_slice_size": 4096},
}
PLAN = {"mesh": {"data": 3, "model": 2}, "place": [{"match": ".*", "shards": 2, "axis": 0, "min_bytes": 4096}]}
RULES = st.builds(PlaceRule, st.just(".*"), shards=st.integers(2, 5), axis=st.integers(0, 2), min_bytes=st.integers(1, 10**6))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Returns the exit code, and what was printed."""
    code = main(["convert", "config", *map(str, arguments)])
    return code, *capsys.readouterr()


def read(text: str) -> Any:
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)


def test_a_run_config_becomes_a_plan_and_that_a_configuration_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text(json.dumps(RUN_CONFIG))
    code, out, err = run(capsys, "--format", "plan", tmp_path / "run.json")
    assert (code, read(out)) == (0, PLAN)
    assert "train in step" in " ".join(err.split())
    (tmp_path / "plan.toml").write_text(out)
    assert read_plan(tmp_path / "plan.toml").placement == PlacementPlan(2, (PlaceRule(".*", 0, 2, 0, 4096),))

    code, out, _ = run(capsys, "--back", "--format", "json", tmp_path / "plan.toml")
    again = json.loads(out)["legacy"]
    assert code == 0
    assert {job: len(tasks) for job, tasks in again["TF_CONFIG"]["cluster"].items()} == {"chief": 1, "worker": 2, "ps": 2}
    (tmp_path / "again.json").write_text(out)
    code, out, _ = run(capsys, "--format", "plan", tmp_path / "again.json")
    assert (code, read(out)) == (0, PLAN)

    code, out, _ = run(capsys, "--back", "--format", "python", tmp_path / "plan.toml")
    assert code == 0
    assert "tf.compat.v1.min_max_variable_partitioner(max_partitions=2, axis=0, min_slice_size=4096)" in out


@given(data=st.none() | st.integers(2, 9), devices=st.integers(2, 9), rules=st.lists(RULES, max_size=1))
def test_what_both_can_say_comes_back(data: int | None, devices: int, rules: list[PlaceRule]) -> None:
    plan = ParallelPlan(PlacementPlan(devices, tuple(rules)), data=data)
    legacy, report = legacy_of(plan)
    assert report.exit_code() == 0
    tables, back = plan_tables(legacy)
    assert back.exit_code() == 0
    assert tables["mesh"] == ({} if data is None else {"data": data}) | {"model": devices}
    assert [PlaceRule(**table) for table in tables.get("place", [])] == rules


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (ParallelPlan(PlacementPlan(stages=2), 4), "mesh.pipeline"),
        (ParallelPlan(micro=4), "batch.micro"),
        (ParallelPlan(micro=4, elastic=(1, 4)), "elastic.workers"),
        (ParallelPlan(micro=4, shares=(3, 1)), "batch.shares"),
        (ParallelPlan(sharded_state=True, gradients="float16"), "optimizer.gradients"),
        (ParallelPlan(PlacementPlan(2, (PlaceRule("a", 1),), True)), "script.devices"),
        (ParallelPlan(PlacementPlan(2, (PlaceRule("a", 1),))), "place[0]"),
    ],
)
def test_what_tensorflow_1_cannot_say_is_in_the_report(plan: ParallelPlan, name: str) -> None:
    _, report = legacy_of(plan)
    assert name in [row.name for row in report.needs_human()]
    assert report.exit_code() == 1


@pytest.mark.parametrize(
    ("partitioner", "place", "code"),
    [
        (ConfigPart("fixed_size_partitioner", {"num_shards": 3, "axis": 1}), ["shards", 3, 1, 1], 0),
        (ConfigPart("min_max_variable_partitioner", {"max_partitions": 3}), ["shards", 3, 0, 262144], 0),
        (ConfigPart("fixed_size_partitioner", {"num_shards": 1}), [], 0),
        (ConfigPart("variable_axis_size_partitioner", {"max_shard_bytes": 1024}), [], 1),
    ],
)
def test_each_partitioner(partitioner: ConfigPart, place: list[Any], code: int) -> None:
    tables, report = plan_tables(LegacyConfig(partitioner=partitioner))
    rules = [["shards", rule["shards"], rule["axis"], rule["min_bytes"]] for rule in tables.get("place", [])]
    assert rules == ([place] if place else [])
    assert report.exit_code() == code


def test_the_parts_of_one_parameter_server_get_a_device_each() -> None:
    """The report says the number that the plan has."""
    cluster = {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}}
    partitioner = ConfigPart("fixed_size_partitioner", {"num_shards": 3})
    tables, report = plan_tables(LegacyConfig(tf_config=cluster, partitioner=partitioner))
    assert tables["mesh"] == {"model": 3}
    assert "model = 3" in [row.target for row in report.rows]
    tables, report = plan_tables(LegacyConfig(tf_config=cluster))
    assert tables == {}
    assert [row.target for row in report.rows] == ["no mesh"]


def test_nothing_parallel_gives_an_empty_plan() -> None:
    assert plan_tables(LegacyConfig())[0] == {}
    assert legacy_of(NOT_PARALLEL)[0] == LegacyConfig()


@pytest.mark.parametrize(
    ("flags", "text", "said"),
    [
        (["--kind", "plan"], "[mesh]\nmodel = 2", "is a plan already"),
        (["--back", "--format", "plan"], "[mesh]\nmodel = 2", "no legacy configuration"),
        (["--back"], "[mesh]\nmodel = 0", "model has a value"),
        (["--back", "--kind", "plan"], "mesh = [", "not TOML"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], text: str, said: str) -> None:
    (tmp_path / "plan.toml").write_text(text)
    code, out, err = run(capsys, *flags, tmp_path / "plan.toml")
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
