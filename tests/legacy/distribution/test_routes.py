"""Every route of a cluster on the legacy path, really run: who takes which steps on which devices, and the same weights in the end."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.legacy.distribution import job
from tests.running import Ended, estimator_bridge_command


@dataclasses.dataclass
class Route:
    """A route that has ended."""

    ended: Ended
    folder: Path

    def weights(self, name: str = "model") -> dict[str, Any]:
        return job.saved(self.folder / name)

    def seen(self) -> dict[str, Any]:
        """Returns the observations of each task in its last training."""
        lines = [json.loads(line) for line in re.findall(r"SEEN (.*)", self.ended.err + self.ended.out)]
        return {line["task"]: line for line in lines}

    def evaluated(self, name: str = "model") -> set[int]:
        """Global steps of the evaluator's summaries."""
        files = (self.folder / name / "eval").glob("*tfevents*")
        return {event.step for file in files for event in tf.compat.v1.train.summary_iterator(str(file)) if event.summary.value}


@pytest.fixture(scope="module")
def python(_warm_python: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", _warm_python)
        yield


def _run(folder: Path, *command: object) -> Route:
    return Route(estimator_bridge_command(*command, folder / "model", cwd=folder), folder)


@pytest.fixture(scope="module")
def alone(python: None, tmp_path_factory: pytest.TempPathFactory) -> Route:
    return _run(tmp_path_factory.mktemp("alone"), "run", job.__file__, "alone")


@pytest.fixture(scope="module")
def synchronous(python: None, tmp_path_factory: pytest.TempPathFactory) -> Route:
    return _launched(tmp_path_factory.mktemp("sync"), "sync", "--worker", 1, "--ps", 2, "--evaluator", 1)


@pytest.fixture(scope="module")
def all_reduce(python: None, tmp_path_factory: pytest.TempPathFactory) -> Route:
    return _launched(tmp_path_factory.mktemp("mwms"), "mwms", "--worker", 1, "--evaluator", 1)


@pytest.fixture(scope="module")
def parameter_servers(python: None, tmp_path_factory: pytest.TempPathFactory) -> Route:
    return _launched(tmp_path_factory.mktemp("ps"), "ps", "--worker", 1, "--ps", 1, "--evaluator", 1)


def _launched(folder: Path, route: str, *tasks: object) -> Route:
    return _run(folder, "launch", *tasks, "--format", "json", job.__file__, route)


def _assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def _assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6, err_msg=name)


def test_strategies_of_one_process(alone: Route) -> None:
    assert alone.ended.code == 0, alone.ended.err[-4000:]
    for name in ("2", "3"):
        _assert_close(alone.weights(f"model-{name}"), job.by_hand())
        assert alone.evaluated(f"model-{name}") == {job.STEPS}
    _assert_same(alone.weights("model-central"), alone.weights("model-one"))
    assert "MirroredStrategyV1: the session's device_count has 2 CPUs" in alone.ended.err
    assert "OwnStrategy: the session's device_count has 3 CPUs" in alone.ended.err


def test_synchronous_replicas_are_mirrored_ones(synchronous: Route, alone: Route) -> None:
    assert synchronous.ended.code == 0, synchronous.ended.err[-4000:]
    _assert_same(synchronous.weights(), alone.weights("model-2"))
    assert synchronous.evaluated() == {job.STEPS}


def test_synchronous_replicas_are_counted(synchronous: Route) -> None:
    seen = synchronous.seen()
    assert {task: said["local_steps"] for task, said in seen.items()} == {"chief0": job.STEPS, "worker0": job.STEPS}
    (events,) = (synchronous.folder / "model").glob("*tfevents*")
    values = {
        (event.step, value.tag.removeprefix("sync_replicas/")): value.simple_value
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
        if value.tag.startswith("sync_replicas/")
    }
    last = {tag: value for (step, tag), value in values.items() if step == job.STEPS}
    assert last == {"local_steps/chief_0": job.STEPS, "local_steps/worker_0": job.STEPS, "gradients_not_used": 0}
    assert {step for step, _ in values} >= {10, 20}, "every save_summary_steps"
    assert (
        f"local steps: chief 0 {job.STEPS}, worker 0 {job.STEPS}; {2 * job.STEPS} gradients in {job.STEPS} updates, 0 not used"
        in (synchronous.ended.err)
    )


def test_a_cluster_keeps_the_session_config_and_the_partitions(synchronous: Route) -> None:
    for task, said in synchronous.seen().items():
        jobs = [re.sub(r"/job:(\w+)/replica:0/task:(\d)/.*", r"\1\2", device) for device in said["devices"]]
        assert jobs == sorted([task, "ps0", "ps1"]), "device_filters hide the other trainer"
        servers = {said["variables"][f"{name}/part_{part}"] for name in job.START for part in (0, 1)}
        assert servers == {"/job:ps/task:0", "/job:ps/task:1"}


def test_workers_share_the_input(all_reduce: Route, alone: Route) -> None:
    """By an input_fn that does so, by a strategy of the user's class; and by one that knows nothing of workers."""
    _assert_same(all_reduce.weights("model-knowing"), alone.weights("model-2"))
    _assert_same(all_reduce.weights(), alone.weights("model-2"))
    for worker in (0, 1):
        assert f"worker {worker} of 2 gets one of every 2 batches" in all_reduce.ended.err


def test_sparse_gradients_of_other_rows_in_each_step(all_reduce: Route) -> None:
    """Embeddings have such gradients."""
    _assert_close(all_reduce.weights("model-sparse"), job.by_hand())


def test_an_evaluator_beside_workers_that_reduce_together(all_reduce: Route) -> None:
    assert all_reduce.evaluated() == all_reduce.evaluated("model-knowing") == {job.STEPS}


def test_datasets_that_differ_are_not_taken_for_parts(all_reduce: Route) -> None:
    assert all_reduce.ended.code == 0, all_reduce.ended.err[-4000:]
    refused = "REFUSED NotSupportedError: The input_fn takes no input_context, so it is unknown"
    assert all_reduce.ended.err.count(refused) == 2
    assert not list((all_reduce.folder / "model-own").glob("model.ckpt-*"))


def test_the_strategy_of_parameter_servers(parameter_servers: Route) -> None:
    assert parameter_servers.ended.code == 0, parameter_servers.ended.err[-4000:]
    seen = parameter_servers.seen()
    assert set(seen["chief0"]["variables"].values()) == {"/job:ps/task:0"}
    assert seen["chief0"]["local_steps"] + seen["worker0"]["local_steps"] >= job.STEPS
    assert max(parameter_servers.evaluated()) >= job.STEPS
