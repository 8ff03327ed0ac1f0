"""TF_CONFIG: wrong keys are named with their position and the corrected JSON, right ones go both ways."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_bridge.compat.config import LegacyConfig, to_legacy, to_modern
from estimator_bridge.compat.config.cluster.faults import correct, find_faults
from estimator_bridge.compat.config.cluster.tf_config import check, from_environment, merge
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import path_text, read_object

CHIEF: dict[str, Any] = {"type": "chief", "index": 0}


def config(task: Any = None, **cluster: Any) -> dict[str, Any]:
    return {"cluster": cluster, "task": CHIEF if task is None else task}


WRONG: dict[str, tuple[dict[str, Any], str, str, dict[str, Any] | None]] = {
    "duplicate address": (
        config(chief=["a:1"], worker=["a:1"]),
        "cluster.worker[0]",
        "already",
        config(chief=["a:1"], worker=["a:2"]),
    ),
    "port clash": (
        config(chief=["localhost:1"], ps=["127.0.0.1:1"]),
        "cluster.ps[0]",
        "same host",
        config(chief=["localhost:1"], ps=["127.0.0.1:2"]),
    ),
    "unknown job": (
        config(chief=["a:1"], workers=["b:1"]),
        "cluster.workers",
        "not a job",
        config(chief=["a:1"], worker=["b:1"]),
    ),
    "index out of range": (
        config({"type": "chief", "index": 3}, chief=["a:1"]),
        "task.index",
        "out of range",
        config(chief=["a:1"]),
    ),
    "index of no number": (
        config({"type": "chief", "index": "x"}, chief=["a:1"]),
        "task.index",
        "number",
        config(chief=["a:1"]),
    ),
    "missing chief": (
        config({"type": "worker", "index": 1}, worker=["a:1", "b:1"]),
        "cluster",
        "no chief",
        config({"type": "worker", "index": 0}, chief=["a:1"], worker=["b:1"]),
    ),
    "two chiefs": (config(chief=["a:1", "b:1"]), "cluster.chief", "one chief", config(chief=["a:1"], worker=["b:1"])),
    "chief and master": (config(chief=["a:1"], master=["b:1"]), "cluster.master", "two names", config(chief=["a:1"])),
    "task of no job": (config({"type": "worker", "index": 0}, chief=["a:1"]), "task.type", "not a job of this cluster", None),
    "no task": ({"cluster": {"chief": ["a:1"]}, "task": {}}, "task", "missing", None),
    "no port": (config(chief=["a"]), "cluster.chief[0]", "not an address", None),
    "addresses as a string": (config(chief="a:1"), "cluster.chief", "string", config(chief=["a:1"])),
    "addresses as a number": (config(chief=1), "cluster.chief", "neither a list", None),
    "a chief without an address": (config(chief=[], worker=["a:1"]), "cluster.chief", "no address", None),
    "a task of an empty job": (config({"type": "worker", "index": 0}, chief=["a:1"], worker=[]), "task.index", "no task", None),
    "indices with a gap": (
        config({"type": "worker", "index": 1}, chief=["a:1"], worker={"0": "b:1", "5": "c:1"}),
        "cluster.worker",
        "without a gap",
        None,
    ),
    "a second evaluator": (
        config({"type": "evaluator", "index": 1}, chief=["a:1"]),
        "task.index",
        "one evaluator",
        config({"type": "evaluator", "index": 0}, chief=["a:1"]),
    ),
    "port 0": (config(chief=["a:0"]), "cluster.chief[0]", "not an address", None),
    "cluster as a list": ({"cluster": ["a:1"]}, "cluster", "object", None),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_wrong_key_is_named(name: str) -> None:
    value, key, what, mended = WRONG[name]
    text = json.dumps(value, indent=1)
    with pytest.raises(BridgeError) as caught:
        check(read_object(text, "job.json"))
    said = str(caught.value)
    assert re.match(rf"job.json, line \d+, column \d+: {re.escape(key)} is wrong: .*{what}", said), said
    if mended is not None:
        assert json.loads(said[said.index("Corrected:\n") + len("Corrected:\n") :]) == mended
        assert find_faults(mended) == []


def test_the_position_is_the_keys_own() -> None:
    with pytest.raises(BridgeError, match=r"line 3, column 11: task\.index"):
        check(read_object('{"cluster": {"chief": ["a:1"]},\n "task": {"type": "chief",\n          "index": 7}}', "job.json"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"cluster": }', "line 1, column 13: this is not JSON"),
        ("[]", "not a JSON object"),
        ('{"task": {"index": 0, "index": 1}}', "line 1, column 23: task.index occurs twice"),
        ('{"clustre": {}}', "clustre is not a key of a TF_CONFIG"),
        ('{"task": {"typ": "chief"}}', "task.typ is not a key"),
    ],
)
def test_broken_json_gives_its_position(text: str, said: str) -> None:
    with pytest.raises(BridgeError) as caught:
        check(read_object(text, "job.json"))
    assert said in str(caught.value)


def test_an_unresolvable_host_is_named_only_when_asked() -> None:
    value = config(chief=["nowhere.invalid:1"])
    assert find_faults(value) == []
    assert [path_text(fault.path) for fault in find_faults(value, resolve=True)] == ["cluster.chief[0]"]


def test_workers_need_no_chief_under_a_strategy() -> None:
    value = config({"type": "worker", "index": 0}, worker=["a:1", "b:1"])
    assert find_faults(value, chief_needed=False) == []
    assert find_faults(value)


def test_an_evaluator_may_stand_in_or_out_of_the_cluster() -> None:
    task = {"type": "evaluator", "index": 0}
    assert find_faults(config(task, chief=["a:1"])) == find_faults(config(task, chief=["a:1"], evaluator=["b:1"])) == []


def test_a_ps_job_without_tasks_is_valid() -> None:
    assert find_faults(config(chief=["a:1"], ps=[])) == []


def test_master_becomes_chief_and_stays_chief() -> None:
    old = config({"type": "master", "index": 0}, master=["a:1"], worker=["b:1"])
    modern, _ = to_modern(LegacyConfig(tf_config=old))
    assert modern.cluster.jobs == {"chief": ("a:1",), "worker": ("b:1",)}
    assert modern.cluster.task_type == "chief"
    back, _ = to_legacy(modern)
    assert back.tf_config == config({"type": "chief", "index": 0}, chief=["a:1"], worker=["b:1"])


def test_explicit_values_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps(config(chief=["a:1"], worker=["b:1"])))
    merged = merge(from_environment().value, {"task": {"type": "worker"}, "rpc_layer": "grpc"})
    assert merged["task"] == {"type": "worker", "index": 0}
    assert merged["rpc_layer"] == "grpc"
    monkeypatch.delenv("TF_CONFIG")
    with pytest.raises(BridgeError, match="TF_CONFIG is not set"):
        from_environment()


ADDRESS = st.tuples(st.sampled_from(["a", "b.example.org", "10-1"]), st.integers(1, 65535)).map(
    lambda pair: f"{pair[0]}:{pair[1]}"
)


@st.composite
def tf_configs(draw: st.DrawFn) -> dict[str, Any]:
    addresses = draw(st.lists(ADDRESS, min_size=1, max_size=6, unique=True))
    workers = draw(st.integers(0, len(addresses) - 1))
    cluster: dict[str, Any] = {"chief": addresses[:1], "worker": addresses[1 : 1 + workers], "ps": addresses[1 + workers :]}
    cluster = {job: tasks for job, tasks in cluster.items() if tasks}
    kind = draw(st.sampled_from([*cluster, "evaluator"]))
    index = draw(st.integers(0, len(cluster.get(kind, [""])) - 1))
    extra = draw(
        st.dictionaries(st.sampled_from(["rpc_layer", "environment", "session_master"]), st.sampled_from(["grpc", "x"]))
    )
    return {"cluster": cluster, "task": {"type": kind, "index": index}} | extra


@given(tf_configs())
def test_round_trip(value: dict[str, Any]) -> None:
    assert find_faults(value) == []
    modern, _ = to_modern(LegacyConfig(tf_config=value))
    back, _ = to_legacy(modern)
    if modern.strategy.name != "MultiWorkerMirroredStrategy":
        assert back.tf_config == value
        assert flatten(modern).items() <= flatten(to_modern(back)[0]).items()  # a RunConfig brings its defaults


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70000) | st.text("ab:1", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["chief", "worker", "ps", "type", "index", "0"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["cluster", "task"]), JSON))
def test_any_json_is_judged_and_a_correction_is_right_or_says_what_is_left(value: dict[str, Any]) -> None:
    mended = correct(value)
    if mended is not None:
        assert all(fault.mend is None for fault in find_faults(json.loads(mended)))


@pytest.mark.timeout(60)  # positions took time with the square of the tokens
def test_a_file_of_a_million_tokens_is_read() -> None:
    text = '{"numbers": [\n' + "1,\n" * 500_000 + '1],\n "last": 2}'
    assert read_object(text, "many.json").where(("last",)) == "many.json, line 500003, column 2"
