"""Every setting that a ModernConfig can hold is in force, left to fit or the evaluator, without effect for a reason, or refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from estimator_bridge.compat.config.model import SECTIONS, ConfigPart
from estimator_bridge.compat.config.output.python import to_python
from estimator_bridge.compat.config.settings import to_dict, unflatten
from tests.forked_programs import Run

VALUES: dict[str, Any] = {
    "threads.intra_op": 2,
    "threads.inter_op": 2,
    "devices.logical_cpus": 2,
    "devices.visible_gpus": (0,),
    "devices.gpu_count": 1,
    "devices.memory_growth": True,
    "devices.gpu_memory_fraction": 0.5,
    "devices.gpu_memory_limits": ((100.0,),),
    "devices.gpu_allocator": "cuda_malloc_async",
    "devices.soft_placement": False,
    "devices.log_placement": True,
    "devices.filters": ("/job:ps",),
    "graph.jit": True,
    "graph.mlir_bridge": True,
    "graph.deterministic": True,
    "graph.options": {"remapping": False},
    "cluster.jobs": {"worker": ("localhost:1",)},
    "cluster.task_type": "worker",
    "cluster.task_id": 0,
    "cluster.rpc_layer": "grpc",
    "cluster.session_master": "grpc://localhost:1",
    "cluster.environment": "cloud",
    "strategy.name": "MirroredStrategy",
    "strategy.devices": ("CPU:0",),
    "strategy.cross_device_ops": "ReductionToOneDevice",
    "strategy.num_packs": 2,
    "strategy.communication": "RING",
    "strategy.bytes_per_pack": 1024,
    "strategy.timeout_seconds": 30.0,
    "strategy.parameter_device": "CPU:0",
    "strategy.partitioner": {"kind": "FixedShardsPartitioner", "num_shards": 2},
    "strategy.evaluation": {"kind": "OneDeviceStrategy", "devices": ["CPU:0"]},
    "strategy.remote_cluster": {"worker": ("localhost:1",)},
    "strategy.tpu": "x",
    "strategy.tpu_job_name": "w",
    "strategy.cores_per_replica": 2,
    "strategy.input_per_replica": False,
    "training.model_dir": "m",
    "training.random_seed": 7,
    "training.max_steps": 20,
    "training.steps_per_execution": 2,
    "training.per_replica_batch_size": 4,
    "training.global_batch_size": 4,
    "evaluation.steps": 3,
    "evaluation.name": "x",
    "evaluation.start_delay_secs": 1.0,
    "evaluation.throttle_secs": 1.0,
    "evaluation.sidecar": True,
    "checkpoint.interval_steps": 10,
    "checkpoint.interval_secs": 5.0,
    "checkpoint.max_to_keep": 3,
    "checkpoint.keep_every_n_hours": 2.0,
    "summaries.update_freq": 10,
    "summaries.speed_freq": 10,
}
NEEDS: dict[str, dict[str, Any]] = {
    "strategy.num_packs": {"strategy.name": "MirroredStrategy", "strategy.cross_device_ops": "NcclAllReduce"},
    "checkpoint.max_to_keep": {"checkpoint.interval_steps": 10, "training.model_dir": "m"},
    "checkpoint.keep_every_n_hours": {"checkpoint.interval_steps": 10, "training.model_dir": "m"},
    "checkpoint.interval_steps": {"training.model_dir": "m"},
    "checkpoint.interval_secs": {"training.model_dir": "m"},
    "evaluation.name": {"training.model_dir": "m"},
    "summaries.update_freq": {"training.model_dir": "m"},
    "summaries.speed_freq": {"training.model_dir": "m"},
    "training.model_dir": {"summaries.update_freq": 10},
    "training.global_batch_size": {"training.per_replica_batch_size": 4},
}
"""What says when and where, without which the printed script has no place for a setting."""
PARTS = {
    "callbacks": (
        ConfigPart("StopAtStep", {"last_step": 5}),
        ConfigPart("StopWithoutImprovement", {"monitor": "loss", "max_steps": 5, "mode": "min"}),
    ),
    "exporters": (ConfigPart("ExportLatest", {"name": "x", "exports_to_keep": 2}),),
}


def test_every_field_has_a_value_here() -> None:
    assert set(VALUES) == {f"{name}.{field.name}" for name, cls in SECTIONS.items() for field in dataclasses.fields(cls)}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_setting_shows_in_the_printed_script(name: str) -> None:
    """Or a comment says why it has no place there."""
    without = NEEDS.get(name, {})
    assert to_python(unflatten(without | {name: VALUES[name]})) != to_python(unflatten(without)), name


APPLY = """
import json, sys, tempfile
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.modern.config.fit import compile_arguments
from estimator_bridge.compat.config.settings import flatten, from_dict
from estimator_bridge.errors import BridgeError
import tensorflow as tf
import tf_keras
said, made = {}, {}
for name, tree in json.loads(sys.argv[1]).items():
    try:
        made[name] = apply(from_dict(tree))
    except BridgeError as error:
        said[name] = "refused: " + str(error)
for name, applied in made.items():
    config = applied.config
    asked = set(flatten(config))
    where = {one: "in force" for one in applied.in_force} | {one: why for one, why in applied.without_effect.items()}
    assert asked == set(where) | applied.pending, (asked, where, applied.pending)
    with applied.strategy.scope():
        model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[1])])
        model.compile("sgd", "mse", **compile_arguments(config))
    data = tf.data.Dataset.from_tensors((tf.ones([1, 1]),) * 2)
    fitted = applied.fit(model, tf.train.Checkpoint(model=model), data)
    where |= {one: "in force" for one in fitted.in_force} | dict(fitted.without_effect)
    assert asked <= set(where), asked - set(where)
    said[name] = where[name] if name in where else "in force"
print(json.dumps(said))
"""


def test_apply_and_fit_account_for_every_setting(run: Run, tmp_path: Any) -> None:
    alone: dict[str, dict[str, Any]] = {name: {name: value} | NEEDS.get(name, {}) for name, value in VALUES.items()}
    del alone["strategy.remote_cluster"]  # needs its servers: tests/modern/config/test_clusters.py
    alone |= {name: {name: value, "training.model_dir": "m"} for name, value in PARTS.items()}
    alone["graph.options.remapping"] = alone.pop("graph.options")
    folder = {"training.model_dir": str(tmp_path)}
    late = [
        name for name in alone if name.startswith(("threads.", "devices.logical", "devices.gpu_allocator"))
    ]  # before anything initialises devices
    ordered = {name: alone[name] for name in (*late, *(name for name in alone if name not in late))}
    trees = {
        name: to_dict(unflatten(settings | (folder if "training.model_dir" in settings else {})))
        for name, settings in ordered.items()
    }
    said = run(APPLY, json.dumps(trees))
    refused = {name for name, why in said.items() if why.startswith("refused")}
    assert refused == {"devices.gpu_memory_fraction"}
    gone = {name for name, why in said.items() if why != "in force" and name not in refused}
    assert gone == {
        *(f"devices.{name}" for name in ("visible_gpus", "gpu_count", "memory_growth", "gpu_memory_limits", "filters")),
        *(name for name in VALUES if name.startswith("cluster.")),
        *(f"strategy.{name}" for name in ("devices", "cross_device_ops", "communication", "parameter_device", "partitioner")),
        *(f"strategy.{name}" for name in ("bytes_per_pack", "timeout_seconds")),
        *(f"strategy.{name}" for name in ("evaluation", "tpu", "tpu_job_name", "cores_per_replica")),
        "evaluation.sidecar",
        "training.per_replica_batch_size",
    }
    assert all(said[name] for name in gone)


def test_what_would_compute_something_else_is_refused(run: Run) -> None:
    lonely = {"cluster.jobs": {"worker": ("a:1", "b:1")}, "cluster.task_type": "worker", "cluster.task_id": 0}
    beyond = {"strategy.evaluation": {"kind": "MultiWorkerMirroredStrategy"}, "cluster.task_type": "evaluator"}
    batch = {"training.per_replica_batch_size": 4, "training.global_batch_size": 8}
    said = run(APPLY, json.dumps({name: to_dict(unflatten(one)) for name, one in (("0", lonely), ("1", beyond), ("2", batch))}))
    assert "each would train a model of its own" in said["0"]
    assert "an evaluator is one" in said["1"]
    assert "took training.per_replica_batch_size and ignored it" in said["2"] or "global_batch_size=8" in said["2"]


IGNORED = """
import json, sys
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.errors import BridgeError
import tensorflow as tf
import tf_keras
said = {}
def ignoring(name, patched, settings, build=True):
    target, attribute = patched
    kept = getattr(target, attribute)
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[1])])
    model.compile("sgd", "mse")
    def made(*given, **named):
        one = kept(*given, **{key: value for key, value in named.items() if key not in name.split()})
        return one
    setattr(target, attribute, made)
    try:
        apply(unflatten(settings)).fit(model, tf.train.Checkpoint(model=model), None)
    except BridgeError as error:
        said[name] = str(error)
    finally:
        setattr(target, attribute, kept)
saving = {"training.model_dir": sys.argv[1], "checkpoint.interval_steps": 5}
manager = (tf.train, "CheckpointManager")
ignoring("keep_checkpoint_every_n_hours", manager, saving | {"checkpoint.keep_every_n_hours": 2.0})
ignoring("steps_per_execution", (tf, "ones"), {"training.steps_per_execution": 4})
from estimator_bridge.compat.config.output import callbacks
ignoring("last_step", (callbacks, "StopAtStep"), {"training.max_steps": 4})
print(json.dumps(said))
"""


def test_what_is_ignored_once_there_is_a_model_is_an_error_too(run: Run, tmp_path: Any) -> None:
    said = run(IGNORED, str(tmp_path))
    assert "took checkpoint.keep_every_n_hours and ignored it" in said["keep_checkpoint_every_n_hours"]
    assert "took training.steps_per_execution and ignored it" in said["steps_per_execution"]
    assert "took training.max_steps and ignored it" in said["last_step"]


WITHOUT = """
import json, sys
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.model import ConfigPart
from estimator_bridge.compat.config.settings import unflatten
import tf_keras
model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[1])])
model.compile("sgd", "mse")
parts = (ConfigPart("SaveCheckpoint", {"directory": "d", "every_steps": 5}), ConfigPart("EvaluateEvery", {"every_steps": 5, "steps": 1}))
settings = {"callbacks": parts, "checkpoint.interval_steps": 5, "evaluation.steps": 1, "training.model_dir": "m"}
print(json.dumps(dict(apply(unflatten(settings)).fit(model).without_effect)))
"""


def test_settings_without_effect_have_a_reason(run: Run) -> None:
    assert set(run(WITHOUT)) == {
        "callbacks[0]",
        "callbacks[1]",
        "checkpoint.interval_steps",
        "evaluation.steps",
        "training.model_dir",
    }


SEED = """
import json
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.settings import unflatten
import tensorflow as tf
def drawn(seed):
    apply(unflatten({"training.random_seed": seed}))
    return tf.random.uniform([3]).numpy().tolist()
print(json.dumps([drawn(7), drawn(7), drawn(8)]))
"""


def test_a_seed_is_seen_in_the_numbers(run: Run) -> None:
    first, again, other = run(SEED)
    assert first == again != other


OPTIONS = """
import json, sys
import tensorflow as tf
from estimator_bridge import legacy
legacy.install()
from estimator_bridge.compat.config import to_legacy, to_modern
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.live_objects import from_objects, settings_of_strategy
from estimator_bridge.compat.config.output.python import to_python
from estimator_bridge.compat.config.settings import flatten, unflatten
config = unflatten(json.loads(sys.argv[1]))
made = apply(config).strategy
printed = {}
exec(to_python(config), printed)
found = [*(unflatten(settings_of_strategy(one)) for one in (made, printed["strategy"])), to_modern(from_objects(tf.estimator.RunConfig(train_distribute=made)))[0]]
print(json.dumps([{name: value for name, value in flatten(one).items() if name in flatten(config)} for one in found]))
"""


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy.name": "MirroredStrategy", "strategy.cross_device_ops": "NcclAllReduce", "strategy.num_packs": 3},
        {
            "strategy.name": "MultiWorkerMirroredStrategy",
            "strategy.communication": "RING",
            "strategy.bytes_per_pack": 4096,
            "strategy.timeout_seconds": 45.0,
        },
    ],
)
def test_options_of_a_strategy_come_back_from_what_was_made_of_them(run: Run, settings: dict[str, Any]) -> None:
    assert run(OPTIONS, json.dumps(settings)) == [settings] * 3
