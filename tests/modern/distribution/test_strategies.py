"""Two virtual CPUs: split batches equal one device, whole batches equal the legacy MirroredStrategy, the rest is refused."""

from __future__ import annotations

import contextlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.distribution.strategies import distribution_for
from estimator_bridge.modern.engine import ModernEngine
from tests.modern.jobs import assert_close, linear, minimizing, spec, train, v1
from tests.running import python_output


@pytest.mark.parametrize(
    "claim",
    [
        "split_batches_train_as_one_device",
        "an_input_fn_gives_batches_for_all_replicas",
        "hooks_see_the_whole_batch",
        "summaries_of_one_replica_are_announced",
        "sums_of_gradients_are_announced",
        "each_replica_draws_its_own_numbers",
        "replicas_write_equal_values",
        "batch_norm_saves_the_mean_of_its_averages",
        "changes_by_splitting_are_refused",
        "whole_batches_train_as_the_legacy_mirrored_strategy",
        "optimizers_of_a_script_take_the_mean_of_whole_batches",
        "numbers_drawn_beside_an_optimizer_are_refused",
        "rows_beside_gradients_are_refused",
        "pieces_that_do_not_make_up_a_batch_are_refused",
        "later_terms_are_refused",
        "replicas_combine_nothing_in_a_model_fn",
        "places_and_a_scalar_train_as_one_device",
        "each_replica_evaluates_batches_of_its_own",
    ],
)
def test_two_devices(claim: str, warm_python: None, tmp_path: Path) -> None:
    """Runs each claim of two_devices.py in a process, because it depends on TensorFlow's devices."""
    python_output(sys.executable, Path(__file__).with_name("two_devices.py"), claim, tmp_path)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("device_fn", {"device_fn": lambda op: "/cpu:0"}),
        ("eval_distribute", {"eval_distribute": object()}),
        ("remote_cluster", {"_experimental_distribute": types.SimpleNamespace(remote_cluster={"worker": ["a:1"]})}),
        ("CentralStorageStrategy", {"cluster_spec": tf.train.ClusterSpec({"chief": ["a:1"], "worker": ["b:1"]})}),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(name: str, config: dict[str, Any], tmp_path: Path) -> None:
    class Settings:
        cluster_spec = master = eval_distribute = device_fn = train_distribute = _experimental_distribute = None

    settings: Any = Settings()
    for key, value in config.items():
        setattr(settings, key, value)
    if name == "CentralStorageStrategy":
        settings.train_distribute = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"], "/cpu:0")
    with pytest.raises(NotSupportedError, match=name):
        distribution_for(settings)


def test_a_run_config_of_the_real_contrib_learn_is_one_device() -> None:
    """Its constructor does not set what later constructors of its base class set."""

    class Settings:
        cluster_spec = master = eval_distribute = device_fn = train_distribute = None

    assert distribution_for(Settings()).strategy is tf.distribute.get_strategy()


def test_one_device_strategies_are_one_device(tmp_path: Path) -> None:
    model = minimizing(lambda: v1.train.AdamOptimizer(0.05))
    alone = train("legacy", model, tmp_path / "alone", steps=5)
    for strategy in (tf.distribute.OneDeviceStrategy("/cpu:0"), tf.distribute.MirroredStrategy(["/cpu:0"])):
        config = {"train_distribute": strategy}
        same = train("modern", model, tmp_path / type(strategy).__name__, steps=5, config=config)
        assert_close(same, alone, 1e-6)


@pytest.mark.parametrize("scope", ["train", "outer/train", ""])
def test_what_an_optimizer_makes_below_a_scope_has_the_names_of_the_strategy(scope: str, tmp_path: Path) -> None:
    """TensorFlow 1.15.5 names Adam's powers "train/train/beta1_power" under MirroredStrategy, and "train/beta1_power" without."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
        with v1.variable_scope(scope) if scope else contextlib.nullcontext():
            return spec(mode, loss, v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step()))

    modern, legacy = (
        train(path, model_fn, tmp_path / path, steps=2, config={"train_distribute": tf.distribute.MirroredStrategy(["/cpu:0"])})
        for path in ("modern", "legacy")
    )
    assert_close(modern, legacy)
    assert ("train/train/beta1_power" in modern) is (scope == "train")


@pytest.mark.parametrize("is_distributed", [True, False])
def test_a_strategy_keeps_variables_whole_that_a_partitioner_would_cut(is_distributed: bool, tmp_path: Path) -> None:
    """TensorFlow 1.15.5 names the slots of a variable "net/net/w/Momentum" under MirroredStrategy, and "net/w/t_0/Momentum" without."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with v1.variable_scope("net", partitioner=v1.fixed_size_partitioner(1)):
            loss = v1.losses.mean_squared_error(labels, tf.matmul(features["x"], v1.get_variable("w", [3, 1])))
            train_op = v1.train.MomentumOptimizer(0.05, 0.9).minimize(loss, v1.train.get_global_step())
        return spec(mode, loss, train_op)

    strategy = tf.distribute.MirroredStrategy(["/cpu:0"]) if is_distributed else None
    for first, second in (("legacy", "modern"), ("modern", "legacy")):
        for path, steps in ((first, 2), (second, 4)):  # the second one goes on with the first one's slots
            values = train(path, model_fn, tmp_path / first, max_steps=steps, steps=None, config={"train_distribute": strategy})
        assert {*values} == {"global_step", "net/w", "net/net/w/Momentum" if is_distributed else "net/w/t_0/Momentum"}


def test_no_replicas_make_no_training() -> None:
    with pytest.raises(BridgeError, match="must be at least 1"):
        ModernEngine(replicas=0)


def test_replicas_are_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    with pytest.raises(NotSupportedError, match="--replicas cannot be used in a cluster"):
        ModernEngine(replicas=2)


@pytest.mark.parametrize("tf_config", ["", "{}", '{"task": {"type": "worker"}}', "no json"])
def test_a_tf_config_without_a_cluster_is_no_reason_to_refuse(tf_config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config)
    assert ModernEngine().calls == 0
