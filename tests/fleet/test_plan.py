"""fleet.toml: what it says reaches the comparisons, and every mistake in it is said."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_bridge.errors import BridgeError
from estimator_bridge.fleet.plan import Pipeline, Waiver, as_toml, read_fleet
from tests.running import write

FLEET = """
[defaults]
steps = 200
owner = "everybody"
timeout = 60

[[pipeline]]
name = "ads"
script = "train.py"
folder = "ads"
arguments = ["--data", "a b"]
rel_diff = 1e-5
owner = "ads team"
signed_off = "R. Roe"

[[pipeline.waivers]]
finding = "metric"
reason = "AUC of 200 bins"
until = 2027-01-31

[[pipeline]]
name = "clicks"
script = "old.py"
rewrite = "new.py"
options = ["--py2"]
steps = 0
"""


def read(tmp_path: Path, text: str) -> list[Pipeline]:
    return read_fleet(write(tmp_path / "fleet.toml", text))


def test_everything_reaches_the_comparison(tmp_path: Path) -> None:
    ads, clicks = read(tmp_path, FLEET)
    assert ads.comparison() == ["--rel-diff=1e-05", "--steps=200", "train.py", "--data", "a b"]
    assert (ads.folder, ads.owner, ads.timeout) == (tmp_path / "ads", "ads team", 60)
    assert ads.waivers == (Waiver("metric", "AUC of 200 bins", datetime.date(2027, 1, 31)),)
    assert ads.signed_off == "R. Roe"
    assert clicks.comparison() == ["--py2", "old.py", "new.py"]
    assert (clicks.folder, clicks.owner) == (tmp_path, "everybody")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "this is not TOML"),
        ("", "there is no pipeline"),
        ("[[pipelines]]\nname = 'a'", "Did you mean 'pipeline'?"),
        ("[[pipeline]]\nname = 'a'", "script is missing"),
        ("[[pipeline]]\nname = 'a'\nscript = 'a.py'\nscripts = 'b.py'", "Did you mean 'script'?"),
        ("[[pipeline]]\nname = '../a'\nscript = 'a.py'", "name has a value that it cannot have"),
        ("[[pipeline]]\nname = 'a'\nscript = 'a.py'\nsteps = -1", "steps has a value that it cannot have"),
        ("[[pipeline]]\nname = 'a'\nscript = 'a.py'\nsteps = true", "steps has a value that it cannot have"),
        ("[[pipeline]]\nname = 'a'\nscript = 'a.py'\ntimeout = inf", "timeout has a value that it cannot have"),
        ("[[pipeline]]\nname = 'a'\nscript = 'a.py'\n[[pipeline]]\nname = 'A'\nscript = 'b.py'", "this name is there twice"),
        (
            "[[pipeline]]\nname = 'a'\nscript = 'a.py'\n[[pipeline.waivers]]\nfinding = 'metric'\nreason = 'r'",
            "until is missing",
        ),
        (
            "[[pipeline]]\nname = 'a'\nscript = 'a.py'\n[[pipeline.waivers]]\nfinding = 'metrics'\nreason = 'r'\nuntil = 2027-01-31",
            "finding has a value that it cannot have",
        ),
        ("[defaults]\nscript = 'a.py'\n[[pipeline]]\nname = 'a'\nscript = 'a.py'", "there is no key 'script' here"),
    ],
)
def test_mistakes_are_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BridgeError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert str(tmp_path / "fleet.toml") in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="The fleet cannot be read"):
        read_fleet(tmp_path / "fleet.toml")


_VALUES = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(-3, 3), st.floats(), st.booleans(), st.dates()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["finding", "until", "name"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_KEYS = st.sampled_from(
    ["name", "script", "steps", "folder", "waivers", "retries", "owner", "rel_diff", "arguments", "nothing"]
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(["defaults", "pipeline"]),
        st.one_of(_VALUES, st.dictionaries(_KEYS, _VALUES), st.lists(st.dictionaries(_KEYS, _VALUES), max_size=3)),
    )
)
def test_any_tables_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, tables: dict[str, Any]) -> None:
    try:
        text = tomli_w.dumps(tables)
    except (ValueError, TypeError):  # what TOML cannot hold
        return
    path = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        pipelines = read_fleet(path)
    except BridgeError:
        return
    assert all(isinstance(word, str) for one in pipelines for word in one.comparison())


def test_what_init_prints_can_be_read(tmp_path: Path) -> None:
    scripts = [tmp_path / "ads" / "train.py", tmp_path / "ads" / "train.ipynb", tmp_path / "ü b.py"]
    pipelines = read(tmp_path, as_toml(scripts, tmp_path))
    assert [one.folder / one.script for one in pipelines] == scripts
    assert [one.name for one in pipelines] == ["ads-train", "ads-train-2", "ü-b"]


@pytest.mark.parametrize(("script", "file"), [("train", "train.py"), ("jobs.ads.train", "jobs/ads/train.py"), (".", "/.py")])
def test_the_file_of_a_module(script: str, file: str) -> None:
    """A name without letters is no module; it ended with a ValueError."""
    assert Pipeline("ads", script, options=("-m",)).file == Path(file)


def test_a_script_in_a_package_is_run_as_a_module(tmp_path: Path) -> None:
    for folder in ("", "ads", "ads/trainer"):
        write(tmp_path / folder / "__init__.py", "")
    (one,) = read(tmp_path, as_toml([tmp_path / "ads" / "trainer" / "task.py"], tmp_path))
    assert one.comparison() == ["--steps=200", "-m", "ads.trainer.task"]
    assert one.folder / one.file == tmp_path / "ads" / "trainer" / "task.py"
