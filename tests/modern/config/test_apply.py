"""Every exact and approximate row is applied to a real TensorFlow, and read back from it or seen at work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.tables import ALL, SESSION, session_rule
from estimator_bridge.compat.config.to_legacy import to_legacy
from estimator_bridge.modern.config.runtime_settings import OPTIONS, RUNTIME
from tests.forked_programs import OBSERVERS, Run
from tests.modern.config import test_clusters, test_early_stopping, test_tpu

RUN = """
import json, sys
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.proto.fields import read_binary, set_fields
from estimator_bridge.compat.config.settings import from_dict
config = from_dict(json.loads(sys.argv[1]))
applied = apply(config)
from tensorflow.python.eager import context
print(json.dumps([applied.in_force, applied.without_effect, set_fields(read_binary(context.context().config.SerializeToString()))]))
"""


def _runtime_examples() -> list[tuple[str, Any, dict[str, Any]]]:
    """Path, legacy value and settings of every row whose settings are the runtime's."""
    names = (*(setting.name for setting in RUNTIME), OPTIONS)
    found = []
    for table in ALL:
        for rule in table:
            for example in rule.examples:
                assert rule.convert is not None
                settings = dict(rule.convert(example).settings)
                if any(name.startswith(names) for name in settings):
                    found.append((f"{table.name}.{rule.name}", example, settings))
    return found


def _groups(examples: list[tuple[str, Any, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Groups the examples into few configurations; two values of one setting go to different groups."""
    groups: list[dict[str, Any]] = []
    for _, _, settings in examples:
        for group in groups:
            if all(group.get(name, value) == value for name, value in settings.items()):
                group.update(settings)
                break
        else:
            groups.append(dict(settings))
    return groups


GROUPS = _groups(_runtime_examples())


@pytest.mark.parametrize("settings", GROUPS, ids=[f"{len(group)} settings" for group in GROUPS])
def test_runtime_rows_are_in_force_once_applied(run: Run, settings: dict[str, Any]) -> None:
    from estimator_bridge.compat.config.settings import to_dict

    config = unflatten(settings)
    in_force, without_effect, proto = run(RUN, json.dumps(to_dict(config)))
    assert set(in_force) | set(without_effect) == set(settings)
    legacy, _ = to_legacy(config)
    gone = {name.removeprefix("devices.") for name in without_effect}
    for path, value in (legacy.session_config or {}).items():
        rule = session_rule(path)
        if rule is None or rule.fidelity.value != "exact" or (gone and path.startswith("gpu_options")):
            continue
        if path == "device_count":
            assert proto[path]["CPU"] == value.get("CPU", 1)
        else:
            assert proto.get(path, type(value)()) == value, path


PRETEND = """
from tensorflow.python.eager import context
import tensorflow as tf
own = context.context()
own._initialize_physical_devices()
for index in range(2):
    gpu = context.PhysicalDevice(f"/physical_device:GPU:{index}", "GPU")
    own._physical_devices.append(gpu)
    own._physical_device_to_index[gpu] = index
    own._visible_device_list.append(gpu)
    own._memory_growth_map[gpu] = False
"""
GPU_GROUPS: dict[str, dict[str, Any]] = {
    "growth of the visible": {"devices.visible_gpus": (1,), "devices.memory_growth": True},
    "limits": {"devices.gpu_memory_limits": ((512.0, 512.0), (1024.0,)), "devices.gpu_allocator": "cuda_malloc_async"},
    "none": {"devices.gpu_count": 0},
    "at most five, of two": {"devices.gpu_count": 5},
}


@pytest.mark.parametrize("name", GPU_GROUPS)
def test_gpu_rows_are_in_force_where_there_are_gpus(run: Run, name: str) -> None:
    """Two GPUs that only TensorFlow's Python half believes in: everything but the allocation itself happens there."""
    from estimator_bridge.compat.config.settings import to_dict

    config = unflatten(GPU_GROUPS[name])
    in_force, without_effect, proto = run(PRETEND + RUN, json.dumps(to_dict(config)))
    assert set(in_force) == set(GPU_GROUPS[name])
    assert without_effect == {}
    wanted = {path: value for path, value in (to_legacy(config)[0].session_config or {}).items() if "allocator" not in path}
    told = json.loads(json.dumps({"gpu_options.visible_device_list": "", **proto}))
    assert {path: told[path] for path in wanted if path != "device_count"} == json.loads(
        json.dumps({path: value for path, value in wanted.items() if path != "device_count"})
    )
    assert told["device_count"]["GPU"] == {"growth of the visible": 1, "limits": 3, "none": 0, "at most five, of two": 2}[name]


def test_a_gpu_that_is_not_there_is_refused(run: Run) -> None:
    program = PRETEND + RUN.replace("applied = apply(config)", "from estimator_bridge.errors import BridgeError\ntry:\n"
                                    "    apply(config)\nexcept BridgeError as error:\n    print(json.dumps(str(error)))\n    sys.exit()")  # fmt: skip
    assert "TensorFlow does not take devices.visible_gpus" in run(program, '{"devices": {"visible_gpus": [5]}}')


def test_a_setting_that_tensorflow_ignores_is_an_error(run: Run) -> None:
    ignoring = "import tensorflow as tf\ntf.config.set_soft_device_placement = lambda value: None\n"
    program = ignoring + RUN.replace("applied = apply(config)", "from estimator_bridge.errors import BridgeError\ntry:\n"
                                     "    apply(config)\nexcept BridgeError as error:\n    print(json.dumps(str(error)))\n    sys.exit()")  # fmt: skip
    assert "took devices.soft_placement and ignored it" in run(program, '{"devices": {"soft_placement": false}}')


def test_groups_hold_every_runtime_row_of_the_session() -> None:
    rows = {name for name, _, _ in _runtime_examples()}
    for table in SESSION.values():
        for rule in table:
            if rule.fidelity.automatic and rule.convert is not None:
                settings = rule.convert(rule.examples[0]).settings
                if not any(name.startswith(("strategy.", "devices.filters")) for name in settings):
                    assert f"{table.name}.{rule.name}" in rows


OTHERS = """
import json, os, sys, tempfile
import numpy as np
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.compat.config.settings import flatten, unflatten
applied = apply(unflatten({"devices.logical_cpus": 2, "strategy.name": "MirroredStrategy", "strategy.devices": ("CPU:0", "CPU:1"),
                           "strategy.cross_device_ops": "ReductionToOneDevice"}))
import tensorflow as tf
import tf_keras
from estimator_bridge.modern.config.make_strategy import device_filters
from estimator_bridge.modern.config.fit import compile_arguments, prepare_fit
from estimator_bridge.compat.config.tables import *
from estimator_bridge.compat.config.model import ConfigPart
folder = tempfile.mkdtemp()
x = np.ones([400, 2], np.float32)
y = x.sum(1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4).repeat()
check = tf.data.Dataset.from_tensor_slices((x[:8], y[:8])).batch(4)
held = {}
def compiled(**given):
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[2])])
    model.compile("sgd", "mse", **given)
    model.optimizer.build(model.trainable_variables)
    return model
shared = compiled()  # traced once
def fit(settings, start=0, validation=None, **more):
    config = unflatten({"training.model_dir": folder + "/" + str(len(os.listdir(folder)))} | settings)
    os.makedirs(config.training.model_dir)
    given = compile_arguments(config)
    model = compiled(**given) if given else shared
    model.optimizer.iterations.assign(start)
    checkpoint = tf.train.Checkpoint(model=model)
    made = prepare_fit(config, flatten(config), model, checkpoint, validation)
    held.update(made.in_force)
    arguments = {"steps_per_epoch": 20, "epochs": 2} | made.arguments | more
    history = model.fit(data, verbose=0, callbacks=made.callbacks, **arguments)
    return model, config, history
def files(config):
    return sorted(os.path.relpath(os.path.join(at, name), config.training.model_dir) for at, _, names in os.walk(config.training.model_dir) for name in names)
def events(config, inner=""):
    found = []
    for at, _, names in os.walk(os.path.join(config.training.model_dir, inner)):
        for name in names:
            if "tfevents" in name:
                for event in tf.compat.v1.train.summary_iterator(os.path.join(at, name)):
                    found += [(value.tag, event.step) for value in event.summary.value]
    return found
def settings(table, name, index=0):
    rule = table[name]
    return dict(rule.convert(rule.examples[index]).settings)
def parts(table, name, **more):
    return settings(table, name) | more
seen = {}
# fit arguments, max_steps and checkpoints
model, config, _ = fit({"training.max_steps": 50, "checkpoint.interval_steps": 20, "checkpoint.max_to_keep": "all", "evaluation.steps": 2})
seen["train_spec.max_steps"] = int(model.optimizer.iterations) == 50
saved = sorted(int(name.split("-")[1].split(".")[0]) for name in files(config) if name.endswith(".index"))
seen["run_config.save_checkpoints_steps"] = saved == [0, 20, 40, 50]
model, config, _ = fit({"training.max_steps": 50, "checkpoint.interval_steps": 10, "checkpoint.max_to_keep": 2}, start=30)
seen["absolute"] = int(model.optimizer.iterations) == 50
seen["run_config.keep_checkpoint_max"] = sum(name.endswith(".index") for name in files(config)) == 2
# every hundred millionth of an hour: all are kept, whatever max_to_keep says
model, config, _ = fit({"training.max_steps": 50, "checkpoint.interval_steps": 10, "checkpoint.max_to_keep": 1, "checkpoint.keep_every_n_hours": 1e-8})
seen["run_config.keep_checkpoint_every_n_hours"] = sum(name.endswith(".index") for name in files(config)) == 6
seen["run_config.model_dir"] = held["training.model_dir"] == config.training.model_dir
model, config, _ = fit({"checkpoint.interval_secs": 0.0001, "checkpoint.max_to_keep": "all"})
seen["run_config.save_checkpoints_secs"] = sum(name.endswith(".index") for name in files(config)) > 3
model, config, _ = fit({"summaries.update_freq": 10, "summaries.speed_freq": 10})
tags = {tag for tag, _ in events(config)}
seen["run_config.save_summary_steps"] = "loss" in tags
seen["run_config.log_step_count_steps"] = "global_step/sec" in tags
model, config, _ = fit({"training.steps_per_execution": 5})
ran = model._steps_per_execution
seen["tpu_config.iterations_per_loop"] = int(ran.numpy() if ran is not None else 0) == 5
# evaluation
model, config, history = fit({"evaluation.steps": 2, "evaluation.name": "holdout"}, validation=check.repeat())
seen["eval_spec.name"] = len(events(config, "eval_holdout")) > 0
seen["eval_spec.steps"] = "val_loss" in history.history
model, config, history = fit({"evaluation.steps": "all"}, validation=check)
seen["eval_spec.steps all"] = "val_loss" in history.history
model, config, history = fit({"evaluation.steps": 1, "evaluation.start_delay_secs": 120.0}, validation=check.repeat())
seen["eval_spec.start_delay_secs"] = "val_loss" not in history.history
model, config, history = fit({"evaluation.steps": 1, "evaluation.throttle_secs": 600.0}, validation=check.repeat())
seen["eval_spec.throttle_secs"] = len(events(config, "eval")) == 1
# hooks
model, config, _ = fit(parts(HOOKS, "StopAtStepHook"), epochs=5)
seen["hooks.StopAtStepHook"] = int(model.optimizer.iterations) == 20
model, config, _ = fit(parts(EARLY_STOPPING, "make_stop_at_checkpoint_step_hook"), epochs=5)
seen["early_stopping.make_stop_at_checkpoint_step_hook"] = int(model.optimizer.iterations) == 20
os.chdir(folder)
fit(parts(HOOKS, "CheckpointSaverHook"))
seen["hooks.CheckpointSaverHook"] = sum(name.endswith(".index") for name in os.listdir("saved")) == 5
import logging
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
tf.get_logger().addHandler(handler)
tf.get_logger().setLevel("INFO")
fit(parts(HOOKS, "LoggingTensorHook"))
tf.get_logger().setLevel("ERROR")
seen["hooks.LoggingTensorHook"] = [line.split(":")[0] for line in lines if line.startswith("step ")] == ["step 10", "step 20", "step 30", "step 40"]
model, config, _ = fit(parts(HOOKS, "StepCounterHook"))
seen["hooks.StepCounterHook"] = ("global_step/sec", 10) in events(config)
model, config, _ = fit(parts(HOOKS, "SummarySaverHook"))
seen["hooks.SummarySaverHook"] = [step for tag, step in events(config) if tag == "loss"] == [10, 20, 30, 40]
model, config, _ = fit(parts(HOOKS, "ProfilerHook"))
seen["hooks.ProfilerHook"] = any(name.endswith("xplane.pb") for name in files(config))
model, config, _ = fit(parts(HOOKS, "InMemoryEvaluatorHook") | {"evaluation.steps": 2}, validation=check.repeat())
seen["hooks.InMemoryEvaluatorHook"] = {step for _, step in events(config, "eval")} >= {10, 30}
class Broken(tf_keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        logs["loss"] = float("nan")
from estimator_bridge.compat.config.output import callbacks
nan = callbacks.StopOnNan(**settings(HOOKS, "NanTensorHook")["callbacks"][0].arguments)
try:
    nan.set_model(model); nan.on_train_batch_end(0, {"loss": float("nan")}); seen["hooks.NanTensorHook"] = False
except FloatingPointError:
    seen["hooks.NanTensorHook"] = True
# exporters
for name, inner, count in (("FinalExporter", "final", 1), ("LatestExporter", "latest", 3), ("BestExporter", "best", 1)):
    model, config, _ = fit(settings(EXPORTERS, name) | {"evaluation.steps": 1}, validation=check.repeat(), epochs=4)
    found = os.listdir(config.training.model_dir + "/export/" + inner)
    times = all(int(one) > 1_700_000_000 for one in found)  # named as an Estimator names them, so that its own stay the older
    seen["exporters." + name + " by time"] = times
    seen["exporters." + name] = len(found) == count if name != "BestExporter" else 1 <= len(found) <= 3
os.makedirs(folder + "/export/1600000000")  # of an Estimator, in the same folder
older = callbacks.Export(folder + "/export", "latest", 1)
older.set_model(shared)
older._export()
seen["the oldest export goes first"] = [int(name) > 1_700_000_000 for name in os.listdir(folder + "/export")] == [True]
# partitioners: the same cuts
v1 = tf.compat.v1
from estimator_bridge.compat.config.live_objects import settings_of_strategy
from estimator_bridge.compat.config.output.calls import make as called
from estimator_bridge.compat.config.output.config_calls import partitioner_call
from estimator_bridge.modern.config.make_strategy import make_strategy, resolver
for rule in PARTITIONERS:
    for example in rule.examples:
        modern = called(partitioner_call(rule.convert(example).settings["strategy.partitioner"]), {"tf": tf})
        old = getattr(v1, rule.name)(**example)
        shapes = [tf.TensorShape(shape) for shape in ([1024, 4], [7, 3], [4096], [2, 1000])]
        seen["partitioners." + rule.name] = all(list(old(shape=shape, dtype=tf.float32)) == list(modern(shape, tf.float32)) for shape in shapes)
# resolvers, filters, strategies
from estimator_bridge.compat.config.settings import unflatten as make
cluster = {"cluster.jobs": {"chief": ("localhost:2222",), "worker": ("localhost:2223",)}, "cluster.task_type": "worker", "cluster.task_id": 0,
           "cluster.rpc_layer": "grpc", "cluster.environment": "cloud", "cluster.session_master": "grpc://localhost:2222"}
own = resolver(make(cluster).cluster)
seen["run_config.cluster_spec"] = seen["tf_config.cluster"] = own.cluster_spec().as_dict() == {"chief": ["localhost:2222"], "worker": ["localhost:2223"]}
seen["run_config.task_type"] = seen["tf_config.task.type"] = own.task_type == "worker"
seen["task_types.chief"] = seen["task_types.worker"] = seen["task_types.ps"] = all(
    resolver(make({"cluster.jobs": {kind: ("a:1",)}, "cluster.task_type": kind, "cluster.task_id": 0}).cluster).task_type == kind for kind in ("chief", "worker", "ps"))
seen["task_types.master"] = seen["task_types.chief"]
seen["run_config.task_id"] = seen["tf_config.task.index"] = own.task_id == 0
seen["run_config.protocol"] = seen["tf_config.rpc_layer"] = own.rpc_layer == "grpc"
seen["tf_config.environment"] = own.environment == "cloud"
seen["run_config.master"] = seen["tf_config.session_master"] = own.master() == "grpc://localhost:2222"
seen["tf_config.model_dir"] = seen["run_config.model_dir"]
filters = device_filters(make(cluster | {"devices.filters": ("/job:ps", "/job:worker/task:0")}))
seen["config_proto.device_filters"] = dict(filters._device_filters["worker"]) == {0: ["/job:ps", "/job:worker/task:0"]}
outside = make({"cluster.jobs": {"worker": ("a:1", "b:1")}, "cluster.task_type": "evaluator", "cluster.task_id": 0, "strategy.name": "MultiWorkerMirroredStrategy"})
seen["task_types.evaluator"] = type(make_strategy(outside)).__name__ == "_DefaultDistributionStrategy"
seen["mirrored"] = applied.in_force["strategy.cross_device_ops"] == "ReductionToOneDevice"
central = {"strategy.name": "CentralStorageStrategy", "strategy.devices": ("CPU:0", "CPU:1"), "strategy.parameter_device": "CPU:0"}
seen["central_storage"] = settings_of_strategy(make_strategy(make(central))) == central
one = {"strategy.name": "OneDeviceStrategy", "strategy.devices": ("CPU:1",)}
seen["one_device"] = settings_of_strategy(make_strategy(make(one))) == one
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(run: Run) -> dict[str, bool]:
    found: dict[str, bool] = run(OTHERS)
    return found


def test_every_other_row_is_seen_at_work(seen: dict[str, bool]) -> None:
    assert {name for name, happened in seen.items() if not happened} == set()
    runtime = {name for name, _, _ in _runtime_examples()}
    rows = {f"{table.name}.{rule.name}" for table in ALL for rule in table if rule.fidelity.automatic}
    assert all((test_clusters, test_early_stopping, test_tpu))  # imported, so that their tests have named their rows
    assert rows - runtime - set(seen) - set(OBSERVERS) == set()
