"""Whatever a file holds, it converts or is refused: exit code 2, what was expected, no traceback, nothing on stdout, nothing written."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_bridge.cli.main import main
from estimator_bridge.compat.config.model import SECTIONS
from estimator_bridge.compat.config.proto.fields import message_of
from estimator_bridge.compat.config.reading.kinds import PARTS, STRATEGIES
from estimator_bridge.compat.config.reading.legacy_json import OBJECTS
from estimator_bridge.compat.config.reading.sources import KINDS
from estimator_bridge.compat.config.tables import EARLY_STOPPING, EXPORTERS, HOOKS, PARTITIONERS, RUN_CONFIG

VALID = {
    "session.pbtxt": b"allow_soft_placement: true\ngpu_options { allow_growth: true visible_device_list: '0,1' }\n",
    "session.pb": message_of({"device_count": {"CPU": 2}, "gpu_options.allow_growth": True}).SerializeToString(),
    "cluster.json": b'{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
    "run.json": b'{"model_dir": "m", "session_config": {"device_count": {"CPU": 2}}, "train_spec": {"hooks": [{"class": "NanTensorHook"}]}}',
    "modern.json": b'{"threads": {"intra_op": 2}, "callbacks": [{"kind": "StopAtStep", "arguments": {"last_step": 3}}]}',
    "modern.toml": b'[threads]\nintra_op = 2\n[[callbacks]]\nkind = "StopAtStep"\narguments = {last_step = 3}\n',
}
QUIET = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def convert(folder: Path, name: str, data: bytes, *options: str) -> int:
    """Runs the command on a file of these bytes."""
    file = folder / name
    file.write_bytes(data)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["convert", "config", *options, str(file)])
    assert code in {0, 1, 2}
    if code == 2:
        assert out.getvalue() == ""
        assert err.getvalue().startswith("estimator-bridge: ")
        assert "Traceback" not in err.getvalue()
        assert "expected" in err.getvalue() or "to do" in err.getvalue()
    elif "python" in options:
        compile(out.getvalue(), "out.py", "exec")
    assert [one.name for one in folder.iterdir()] == [name]
    file.unlink()
    return code


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A valid file with a few bytes changed, lost or added."""
    name = draw(st.sampled_from(sorted(VALID)))
    data = bytearray(VALID[name])
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(start + 6, len(data))))
        data[start:stop] = draw(
            st.binary(max_size=4) | st.sampled_from([b"{", b"}", b'"', b"[", b"null", b"-1", b"1e999", b"\\u0000"])
        )
    return name, bytes(data)


@pytest.mark.parametrize("name", VALID)
def test_the_files_are_valid_as_they_are(name: str, tmp_path: Path) -> None:
    assert convert(tmp_path, name, VALID[name], *(["--back"] if name.startswith("modern") else [])) in {0, 1}


@QUIET
@given(damaged(), st.booleans())
def test_damaged_files(tmp_path: Path, file: tuple[str, bytes], back: bool) -> None:
    convert(tmp_path, *file, *(["--back"] if back else []))


@QUIET
@given(st.binary(max_size=40), st.sampled_from([None, *KINDS]), st.sampled_from(["x", "x.json", "x.toml", "x.pb"]))
def test_any_bytes(tmp_path: Path, data: bytes, kind: str | None, name: str) -> None:
    convert(tmp_path, name, data, *(["--kind", kind] if kind else []), *(["--back"] if kind == "modern" else []))


VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["MirroredStrategy", "a:1"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["class", "kind", "arguments", "steps", "hooks", "x"]), inner)
    ),
    max_leaves=5,
)
FIELDS = {name: sorted(cls.__dataclass_fields__) for name, cls in SECTIONS.items()}


@QUIET
@given(st.dictionaries(st.sampled_from(sorted({*RUN_CONFIG.names, *OBJECTS})), VALUE, max_size=4))
def test_run_configs_of_anything(tmp_path: Path, values: dict[str, Any]) -> None:
    convert(tmp_path, "run.json", json.dumps(values).encode(), "--kind", "run-config")


OBJECT = st.sampled_from([*HOOKS.names, *EARLY_STOPPING.names, *EXPORTERS.names, *PARTITIONERS.names, *STRATEGIES])
ARGUMENT = st.sampled_from(
    ["every_n_iter", "save_secs", "last_step", "name", "metric_name", "threshold", "devices", "num_shards", "axis"]
)
MADE = st.builds(lambda name, given: {"class": name, **given}, OBJECT, st.dictionaries(ARGUMENT, VALUE, max_size=3))


@QUIET
@given(MADE, st.sampled_from(["train", "eval", "partitioner", "train_distribute", "eval_distribute"]))
def test_objects_of_any_arguments(tmp_path: Path, made: dict[str, Any], place: str) -> None:
    specs = {"train": {"train_spec": {"hooks": [made]}}, "eval": {"eval_spec": {"exporters": [made]}}}
    convert(
        tmp_path, "run.json", json.dumps(specs.get(place, {place: made})).encode(), "--kind", "run-config", "--format", "python"
    )


@st.composite
def sections(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from([*SECTIONS, *PARTS]), max_size=3, unique=True))
    return {
        name: draw(
            st.dictionaries(st.sampled_from(FIELDS[name]), VALUE, max_size=3) | VALUE
            if name in FIELDS
            else st.lists(VALUE) | VALUE
        )
        for name in names
    }


@QUIET
@given(sections(), st.sampled_from(["text", "json", "toml", "python"]))
def test_modern_configs_of_anything(tmp_path: Path, values: dict[str, Any], form: str) -> None:
    convert(tmp_path, "modern.json", json.dumps(values).encode(), "--kind", "modern", "--back", "--format", form)
