"""Plans: what a plan.toml and --mesh say, and refusals of all that is no plan or does not work yet."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.parallel.plans.plan import HOST, ParallelPlan, PlacementPlan, PlaceRule, of_dict, shares_of
from estimator_bridge.modern.parallel.plans.reading import of_mesh, read_plan

WHOLE = """
[mesh]
data = 1
model = 2
pipeline = 1
[batch]
micro = 4
statistics = "micro"
[[place]]
match = "embeddings/.*"
device = "host"
[[place]]
match = "logits/.*"
device = 1
[script]
devices = true
[optimizer]
state = "replicated"
gradients = "float32"
"""


def read(folder: Path, text: str) -> ParallelPlan:
    """Reads a plan.toml with the given text."""
    path = folder / "plan.toml"
    path.write_text(text)
    return read_plan(path)


def test_a_plan_is_read(tmp_path: Path) -> None:
    """Every key that works."""
    rules = (PlaceRule("embeddings/.*", HOST), PlaceRule("logits/.*", 1))
    assert read(tmp_path, WHOLE) == ParallelPlan(PlacementPlan(2, rules, True), 4, True, 1)


def test_shards_are_read(tmp_path: Path) -> None:
    """Alone, or with an axis and the first device."""
    text = "[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\nshards = 4\n[[place]]\nmatch = 'b'\nshards = 2\naxis = 1\ndevice = 1"
    rules = PlaceRule("a", 0, 4), PlaceRule("b", 1, 2, 1)
    assert read(tmp_path, text).placement == PlacementPlan(2, rules)


def test_a_pipeline_is_read(tmp_path: Path) -> None:
    """With the names at which its stages begin, or by the command line without them."""
    plan = PlacementPlan(stages=3, at=("layer_2", "layer_5"))
    text = "[mesh]\npipeline = 3\n[pipeline]\nat = ['layer_2', 'layer_5']\n[batch]\nmicro = 8"
    assert read(tmp_path, text) == ParallelPlan(plan, 8)
    assert of_mesh("pipeline=3").placement == PlacementPlan(stages=3)
    assert of_dict(json.loads(json.dumps(dataclasses.asdict(ParallelPlan(plan, 8))))) == ParallelPlan(plan, 8)


def test_an_empty_plan_changes_nothing(tmp_path: Path) -> None:
    """One device, whole batches."""
    assert read(tmp_path, "") == ParallelPlan() == of_mesh("model=1")


def test_a_mesh_is_short_for_a_plan(tmp_path: Path) -> None:
    """Spaces do not matter."""
    assert of_mesh("data=4, model=3") == ParallelPlan(PlacementPlan(3), data=4)
    assert of_mesh("model=3") == read(tmp_path, "[mesh]\nmodel = 3") == ParallelPlan(PlacementPlan(3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model", "each axis once"),
        ("", "each axis once"),
        ("model=2,model=2", "each axis once"),
        ("modle=2", "Did you mean 'model'"),
        ("model=0", "a whole number of 1 or more"),
        ("model=-1", "a whole number of 1 or more"),
        ("model=two", "a whole number of 1 or more"),
        ("model=2.5", "a whole number of 1 or more"),
    ],
)
def test_what_is_no_mesh_is_refused(text: str, message: str) -> None:
    """The message names what was expected."""
    with pytest.raises(BridgeError, match=message):
        of_mesh(text)


def test_a_mesh_of_three_axes_is_read() -> None:
    """Each worker has a pipeline, and each stage devices of its own."""
    plan = of_mesh("data=2,pipeline=2,model=3")
    assert (plan.data, plan.placement, plan.placement.devices) == (2, PlacementPlan(3, stages=2), 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mesh", "not TOML"),
        ("[meshes]\nmodel = 2", "no table 'meshes'"),
        ("[mesh]\nmodels = 2", "Did you mean 'model'"),
        ("[mesh]\nmodel = true", "a whole number"),
        ("mesh = 2", r"not written as \[mesh\]"),
        ("[place]\nmatch = 'a'", r"not written as \[\[place\]\]"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'", "has no device"),
        ("[mesh]\nmodel = 2\n[[place]]\ndevice = 0", "has no match"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = '('\ndevice = 0", "a regular expression"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\ndevice = 2", 'expected: 0 to 1, or "host"'),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\ndevice = -1", "the number of a device"),
        ("[[place]]\nmatch = 'a'\ndevice = 0", "the mesh has one"),
        ("[[place]]\nmatch = 'a'\nshards = 2", "the mesh has one"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\naxis = 1", "has no device"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\ndevice = 1\naxis = 1", "has no shards"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\nshards = 1", "has no device"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\nshards = 2\naxis = -1", "0 or more"),
        ("[mesh]\nmodel = 2\n[[place]]\nmatch = 'a'\nshards = 2\ndevice = 'host'", "the devices of the mesh"),
        ("[script]\ndevices = true", "the mesh has one"),
        ("[mesh]\npipeline = 2\n[[place]]\nmatch = 'a'\ndevice = 1", "in a pipeline the stages do"),
        ("[mesh]\npipeline = 3\n[pipeline]\nat = ['a']", "pipeline = 2"),
        ("[pipeline]\nat = ['a']", "pipeline = 2"),
        ("[mesh]\npipeline = 2\n[pipeline]\nat = [1]", "a list of names"),
        ("[batch]\nmicro = 0", "a whole number of 1 or more"),
        ("[optimizer]\ngradients = 'float16'", 'state = "sharded"'),
        ("[optimizer]\ngradients = 'int8'", '"bfloat16"'),
        ("[batch]\nstatistics = 'all'", '"batch" or "micro"'),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The file is named, and what was expected."""
    with pytest.raises(BridgeError, match=message) as refused:
        read(tmp_path, text)
    assert "plan.toml" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "[pipeline]\nstages = 2",
        "[mesh]\nmodel = 2\n[optimizer]\nstate = 'sharded'",
        "[[place]]\nmatch = 'a'\nlayout = ['model']",
    ],
)
def test_keys_that_do_not_work_yet_are_refused(tmp_path: Path, text: str) -> None:
    """A key of the form without effect would be a silent mistake."""
    with pytest.raises(NotSupportedError, match="does not work yet"):
        read(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """The message names it."""
    with pytest.raises(BridgeError, match=r"missing\.toml"):
        read_plan(tmp_path / "missing.toml")


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=4), st.integers(0, 6))
def test_no_other_shares_end_a_step_earlier(speeds: list[float], more: int) -> None:
    """All ways to share the batches out are tried."""
    batches = len(speeds) + more
    ways = [way for way in itertools.product(range(1, batches + 1), repeat=len(speeds)) if sum(way) == batches]
    seconds = [max(share / speed for share, speed in zip(way, speeds, strict=True)) for way in ways]
    found = shares_of(speeds, batches)
    assert found in ways
    assert seconds[ways.index(found)] == min(seconds)
