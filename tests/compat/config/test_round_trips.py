"""RunConfig, specs and whole ModernConfigs both ways; files as they were written."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from estimator_bridge.compat.config import LegacyConfig, ModernConfig, to_legacy, to_modern
from estimator_bridge.compat.config.contradictions import ContradictionError, refuse_contradictions
from estimator_bridge.compat.config.model import ConfigPart
from estimator_bridge.compat.config.output.legacy import legacy_data, legacy_python
from estimator_bridge.compat.config.output.python import to_python
from estimator_bridge.compat.config.reading.legacy_json import legacy_of
from estimator_bridge.compat.config.reading.sources import read_source
from estimator_bridge.compat.config.settings import flatten, from_dict, to_dict, unflatten
from estimator_bridge.compat.config.tables.run_config import DEFAULTS
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import read_object

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

RUN: dict[str, st.SearchStrategy[Any]] = {
    "model_dir": st.text(min_size=1, max_size=8),
    "tf_random_seed": st.integers(-9, 9),
    "save_summary_steps": st.integers(0, 500),
    "save_checkpoints_steps": st.integers(0, 500),
    "keep_checkpoint_max": st.integers(0, 9),
    "keep_checkpoint_every_n_hours": st.floats(0.5, 99),
    "log_step_count_steps": st.integers(0, 500),
    "protocol": st.just("grpc"),
}


def without_defaults(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if DEFAULTS.get(name) != value}


@given(st.fixed_dictionaries({}, optional=RUN))
def test_run_config(values: dict[str, Any]) -> None:
    modern, report = to_modern(LegacyConfig(run_config=values))
    assert report.exit_code() == 0
    back, _ = to_legacy(modern)
    assert back.run_config == without_defaults(values)


@given(
    st.fixed_dictionaries({}, optional={"max_steps": st.integers(1, 99)}),
    st.fixed_dictionaries(
        {},
        optional={
            "steps": st.integers(0, 99),
            "name": st.text(min_size=1, max_size=5),
            "start_delay_secs": st.integers(1, 99),
            "throttle_secs": st.integers(1, 99),
        },
    ),
)
def test_specs(train: dict[str, Any], evaluation: dict[str, Any]) -> None:
    back, _ = to_legacy(to_modern(LegacyConfig(train_spec=train, eval_spec=evaluation))[0])
    assert (back.train_spec or {}) == train
    assert back.eval_spec == {name: value for name, value in evaluation.items() if (name, value) != ("steps", 100)}


SETTINGS: dict[str, st.SearchStrategy[Any]] = {
    "threads.intra_op": st.integers(1, 9),
    "devices.visible_gpus": st.just((0, 1)),
    "devices.memory_growth": st.booleans(),
    "devices.gpu_memory_limits": st.just(((1.5, 2.0), (3.0,))),
    "graph.jit": st.booleans(),
    "graph.options.remapping": st.booleans(),
    "graph.options.min_graph_nodes": st.integers(1, 9),
    "cluster.jobs": st.just({"chief": ("a:1",), "worker": ("b:1",)}),
    "strategy.partitioner": st.just({"kind": "FixedShardsPartitioner", "num_shards": 2}),
    "training.model_dir": st.text(max_size=20),
    "evaluation.steps": st.sampled_from(["all", 3]),
    "checkpoint.max_to_keep": st.sampled_from(["all", 3]),
    "callbacks": st.just(
        (
            ConfigPart("StopAtStep", {"last_step": 3}),
            ConfigPart("StopAtThreshold", {"monitor": "loss", "mode": "min", "threshold": 0.5}),
        )
    ),
}


@given(st.fixed_dictionaries({}, optional=SETTINGS))
def test_files_hold_what_was_written(settings: dict[str, Any]) -> None:
    config = unflatten(settings)
    assert unflatten(flatten(config)) == config
    assert from_dict(json.loads(json.dumps(to_dict(config)))) == config
    assert from_dict(tomllib.loads(tomli_w.dumps(to_dict(config)))) == config


EVERYTHING = LegacyConfig(
    session_config={"gpu_options.allow_growth": True, "device_count": {"CPU": 2}},
    run_config={"save_checkpoints_steps": 50, "model_dir": "m"},
    train_distribute=ConfigPart("MirroredStrategy", {"devices": ["CPU:0", "CPU:1"]}),
    train_spec={"max_steps": 100},
    eval_spec={"steps": 0},
    hooks=(ConfigPart("StopAtStepHook", {"last_step": 20}), ConfigPart("NanTensorHook", {"fail_on_nan_loss": False})),
    exporters=(ConfigPart("BestExporter", {"name": "best", "exports_to_keep": 2}),),
    partitioner=ConfigPart("fixed_size_partitioner", {"num_shards": 2}),
)


def test_json_of_the_legacy_side_reads_back_as_it_was() -> None:
    again = legacy_of(read_object(json.dumps(legacy_data(EVERYTHING)), "run.json"))
    assert legacy_data(again) == legacy_data(EVERYTHING)


def test_hooks_and_exporters_go_both_ways() -> None:
    back, report = to_legacy(to_modern(EVERYTHING)[0])
    assert (back.hooks, back.exporters, back.partitioner) == (EVERYTHING.hooks, EVERYTHING.exporters, EVERYTHING.partitioner)
    assert report.exit_code() == 0


def test_an_own_hook_needs_a_human() -> None:
    _, report = to_modern(LegacyConfig(hooks=(ConfigPart("my.Hook"),)))
    assert report.exit_code() == 1
    assert report.exit_code(["hooks*"]) == 0
    with pytest.raises(BridgeError, match="matches no field of this conversion"):
        report.exit_code(["device_fn"])


CONTRADICTIONS = {
    "steps and seconds": LegacyConfig(run_config={"save_checkpoints_steps": 1, "save_checkpoints_secs": 1}),
    "growth and limits": LegacyConfig(
        session_config={
            "gpu_options.allow_growth": True,
            "gpu_options.experimental.virtual_devices": ({"memory_limit_mb": (1.0,)},),
        }
    ),
    "a GPU twice, with a space": LegacyConfig(session_config={"gpu_options.visible_device_list": "0, 0"}),
    "a GPU twice": LegacyConfig(session_config={"gpu_options.visible_device_list": "0,0"}),
    "no GPU and visible ones": LegacyConfig(
        session_config={"gpu_options.visible_device_list": "0", "device_count": {"GPU": 0}}
    ),
    "limits of more GPUs than are visible": LegacyConfig(
        session_config={
            "gpu_options.visible_device_list": "0",
            "gpu_options.experimental.virtual_devices": ({"memory_limit_mb": (1.0,)},) * 2,
        }
    ),
    "a filter of no job": LegacyConfig(
        session_config={"device_filters": ("/job:ps",)}, tf_config={"cluster": {"chief": ["a:1"]}}
    ),
    "two ways to stop": LegacyConfig(hooks=(ConfigPart("StopAtStepHook", {"num_steps": 1, "last_step": 1}),)),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_refused(name: str) -> None:
    with pytest.raises(ContradictionError, match="contradict"):
        refuse_contradictions(CONTRADICTIONS[name])


def test_two_rows_that_want_different_things_contradict_each_other() -> None:
    with pytest.raises(BridgeError, match=r"model_dir and TF_CONFIG\.model_dir contradict"):
        to_modern(LegacyConfig(run_config={"model_dir": "a"}, tf_config={"model_dir": "b"}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n "save_checkpoints_step": 5}', "line 2, column 2: save_checkpoints_step is not a property"),
        ('{"keep_checkpoint_max": "five"}', "line 1, column 2: keep_checkpoint_max has a value of the wrong type"),
        ('{"keep_checkpoint_max": -1}', "keep_checkpoint_max is negative"),
        ('{"train_distribute": 3}', "train_distribute does not name a class"),
        ('{"session_config": {"gpu_option": {}}, "model_dir": "m"}', "gpu_option"),
        ('{"session_config": "gpu_option {}", "model_dir": "m"}', "gpu_option"),
        ('{"train_spec": {"max_step": 1}, "model_dir": "m"}', "max_step is not a field"),
        ('{"experimental_distribute": {"foo": 1}}', "foo is not a field of a DistributeConfig"),
        ('{"cluster_spec": {"chief": ["a:1"]},\n "task_type": "worker", "task_id": 7}', "line 2, column 2: task.type is wrong"),
        ('{"save_checkpoints_secs": 1e999}', "save_checkpoints_secs has a value of the wrong type"),
        ('{"save_checkpoints_secs": NaN}', "line 1, column 27: NaN is not a number in JSON"),
        ('{"keep_checkpoint_max": ' + "9" * 5000 + "}", "cannot be read"),
        ("[" * 100000, "cannot be read"),
        ('{\n "model_dir": "\\udc00"}', "line 2, column 16: half a character"),
        ('{"train_spec": {"hooks": ["CheckpointSaverHook"]}}', "SaveCheckpoint lacks an argument"),
        ('{"train_spec": {"hooks": ["SummarySaverHook"]}}', "WriteSummaries lacks an argument"),
        (
            '{"train_spec": {"hooks": [{"class": "StopAtStepHook", "last_step": "x"}]}}',
            "last_step has a value of the wrong type",
        ),
        ('{"partitioner": "fixed_size_partitioner"}', "FixedShardsPartitioner lacks an argument"),
        ('{"partitioner": {"class": "fixed_size_partitioner", "shards": 2}}', "has no argument shards"),
        ('{"callbacks": [{"kind": "StopAtStep", "arguments": {"x": 1}}]}', "StopAtStep takes no argument x"),
        ('{"strategy": {"name": "X();import os"}}', "X();import os is not a class"),
        ('{"strategy": {"cross_device_ops": "X()"}}', "X() is not a class"),
        ('{"strategy": {"partitioner": {"kind": "X"}}}', "X is not a class"),
        (
            '{"strategy": {"evaluation": {"kind": "OneDeviceStrategy", "device": "CPU:0"}}}',
            "strategy.evaluation.device is not a field",
        ),
        ('{"threads": {"intra": 1}}', "threads.intra is not a field"),
        ('{"threads": {"intra_op": "x"}}', "threads.intra_op has a value of the wrong type"),
    ],
)
def test_bad_json_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)

    def convert() -> None:
        source = read_source(str(file))
        from_dict(source.modern)
        to_modern(source.legacy)

    with pytest.raises(BridgeError) as caught:
        convert()
    assert said in str(caught.value)


NOTHING = (
    '{"keep_checkpoint_max": null, "save_checkpoints_secs": null, "save_summary_steps": null, "log_step_count_steps": null}'
)


def test_none_is_none_and_not_the_default() -> None:
    """None switches off; a RunConfig whose checkpoints are all kept must not lose any."""
    modern, _ = to_modern(legacy_of(read_object(NOTHING, "run.json")))
    assert modern.checkpoint.max_to_keep == "all"
    assert not any((modern.checkpoint.interval_secs, modern.summaries.update_freq, modern.summaries.speed_freq))
    back = to_legacy(modern)[0]
    assert to_modern(back)[0] == modern
    assert "log_step_count_steps=None" in legacy_python(back)  # RunConfig takes no 0


def test_arguments_that_an_old_object_has_by_default() -> None:
    legacy = LegacyConfig(
        hooks=(
            ConfigPart("StepCounterHook"),
            ConfigPart("StepCounterHook", {"every_n_secs": 5}),
            ConfigPart("InMemoryEvaluatorHook"),
        )
    )
    assert [dict(part.arguments) for part in to_modern(legacy)[0].callbacks] == [
        {"every_steps": 100},
        {"every_secs": 5},
        {"every_steps": 100},
    ]


def test_what_a_strategy_was_given_is_never_lost_in_silence() -> None:
    for arguments in ({"num_gpus": 2}, {"cross_device_ops": "mine.Ops"}):
        for name in ("train_distribute", "eval_distribute"):
            given: dict[str, Any] = {name: ConfigPart("MirroredStrategy", arguments)}
            (row,) = to_modern(LegacyConfig(**given))[1].needs_human()
            assert next(iter(arguments)) in row.note
    assert to_modern(LegacyConfig(eval_distribute=ConfigPart("mine.Strategy")))[1].exit_code() == 1


def test_evaluations_hooks_do_not_watch_training() -> None:
    text = '{"eval_spec": {"hooks": [{"class": "SummarySaverHook", "save_steps": 1}]}}'
    modern, report = to_modern(legacy_of(read_object(text, "run.json")))
    assert modern.callbacks == ()
    assert [row.name for row in report.needs_human()] == ["eval_spec.hooks"]


def test_the_strategy_of_evaluation_goes_both_ways_and_an_evaluator_makes_it() -> None:
    asked = ConfigPart("OneDeviceStrategy", {"device": ("CPU:0",)})
    task = {"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}
    modern, _ = to_modern(LegacyConfig(eval_distribute=asked, tf_config=task))
    assert "OneDeviceStrategy(device='CPU:0')" in to_python(modern)
    assert to_legacy(modern)[0].eval_distribute == asked


def test_device_counts_are_printed_in_one_order() -> None:
    """A map of protobuf has another order in each process."""
    kinds = ["TPU", "XLA_GPU", "GPU", "XLA_CPU", "CPU"]
    data = legacy_data(LegacyConfig(session_config={"device_count": dict.fromkeys(kinds, 1)}))
    assert list(data["session_config"]["device_count"]) == sorted(kinds)


def test_an_empty_eval_spec_stays() -> None:
    config = LegacyConfig(eval_spec={})
    assert legacy_of(read_object(json.dumps(legacy_data(config)), "run.json")).eval_spec == {}


def test_a_negative_number_of_devices_needs_a_human() -> None:
    modern, report = to_modern(LegacyConfig(session_config={"device_count": {"GPU": -1}}))
    assert (modern.devices.gpu_count, report.exit_code()) == (None, 1)


def test_python_of_the_legacy_side_makes_objects() -> None:
    ops = LegacyConfig(train_distribute=ConfigPart("MirroredStrategy", {"cross_device_ops": "ReductionToOneDevice"}))
    assert "MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())" in legacy_python(ops)
    tpu = legacy_python(LegacyConfig(train_distribute=ConfigPart("TPUStrategy", {"tpu": "x"})))
    assert "experimental.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver('x'))" in ast.unparse(ast.parse(tpu))


def test_an_empty_config_is_empty() -> None:
    assert flatten(ModernConfig()) == {}
    assert to_legacy(ModernConfig())[0] == LegacyConfig()
