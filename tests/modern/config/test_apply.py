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
from tests.modern.config.programs.applying import (
    apply_and_read_back,
    apply_with_two_gpus,
    refusal_where_soft_placement_is_ignored,
    refusal_with_two_gpus,
)
from tests.modern.config.programs.rows_at_work import rows_at_work


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
    in_force, without_effect, proto = run(apply_and_read_back, to_dict(config))
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
    in_force, without_effect, proto = run(apply_with_two_gpus, to_dict(config))
    assert set(in_force) == set(GPU_GROUPS[name])
    assert without_effect == {}
    wanted = {path: value for path, value in (to_legacy(config)[0].session_config or {}).items() if "allocator" not in path}
    told = json.loads(json.dumps({"gpu_options.visible_device_list": "", **proto}))
    assert {path: told[path] for path in wanted if path != "device_count"} == json.loads(
        json.dumps({path: value for path, value in wanted.items() if path != "device_count"})
    )
    assert told["device_count"]["GPU"] == {"growth of the visible": 1, "limits": 3, "none": 0, "at most five, of two": 2}[name]


def test_a_gpu_that_is_not_there_is_refused(run: Run) -> None:
    refusal = run(refusal_with_two_gpus, {"devices": {"visible_gpus": [5]}})
    assert "TensorFlow does not take devices.visible_gpus" in refusal


def test_a_setting_that_tensorflow_ignores_is_an_error(run: Run) -> None:
    refusal = run(refusal_where_soft_placement_is_ignored, {"devices": {"soft_placement": False}})
    assert "took devices.soft_placement and ignored it" in refusal


def test_groups_hold_every_runtime_row_of_the_session() -> None:
    rows = {name for name, _, _ in _runtime_examples()}
    for table in SESSION.values():
        for rule in table:
            if rule.fidelity.automatic and rule.convert is not None:
                settings = rule.convert(rule.examples[0]).settings
                if not any(name.startswith(("strategy.", "devices.filters")) for name in settings):
                    assert f"{table.name}.{rule.name}" in rows


@pytest.fixture(scope="module")
def seen(run: Run) -> dict[str, bool]:
    found: dict[str, bool] = run(rows_at_work)
    return found


def test_every_other_row_is_seen_at_work(seen: dict[str, bool]) -> None:
    assert {name for name, happened in seen.items() if not happened} == set()
    runtime = {name for name, _, _ in _runtime_examples()}
    rows = {f"{table.name}.{rule.name}" for table in ALL for rule in table if rule.fidelity.automatic}
    assert all((test_clusters, test_early_stopping, test_tpu))  # imported, so that their tests have named their rows
    assert rows - runtime - set(seen) - set(OBSERVERS) == set()
