"""A session's ConfigProto: what is applied can be read back from TensorFlow, what cannot be is refused by name."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from estimator_bridge.compat.config.tables import SESSION
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.config import session_config
from tests.forked_programs import Run
from tests.modern.config.programs import sessions
from tests.modern.jobs import estimator, minimizing, v1


def test_applied_fields_are_in_force(run: Run) -> None:
    run(sessions.fields_are_in_force)


def test_device_placement_is_logged(run: Run) -> None:
    run(sessions.placement_is_logged)


def test_threads_that_are_set_too_late_are_refused(run: Run) -> None:
    run(sessions.threads_too_late_are_refused)


def settings(**fields: Any) -> Any:
    return v1.ConfigProto(**fields)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (
            settings(gpu_options=v1.GPUOptions(per_process_gpu_memory_fraction=0.5)),
            "gpu_options.per_process_gpu_memory_fraction",
        ),
        (settings(graph_options=v1.GraphOptions(enable_bfloat16_sendrecv=True)), "graph_options.enable_bfloat16_sendrecv"),
        (
            settings(experimental=v1.ConfigProto.Experimental(disable_functional_ops_lowering=True)),
            "experimental.disable_functional_ops_lowering",
        ),
    ],
)
def test_unknown_fields_are_refused_by_name(config: Any, name: str) -> None:
    with pytest.raises(NotSupportedError, match=name):
        session_config.apply(config)


def test_every_field_that_only_a_human_can_carry_over_is_refused() -> None:
    values: dict[Any, Any] = {"bool": True, "int": 1, "float": 0.5, "str": "x"}
    refused = set()
    for prefix, table in SESSION.items():
        for rule in table:
            path = f"{prefix}.{rule.name}" if prefix else rule.name
            if rule.fidelity is Fidelity.MANUAL and path not in {"pluggable_device_options", "operation_timeout_in_ms"}:
                *outer, name = path.split(".")
                config = v1.ConfigProto()
                message = functools.reduce(getattr, outer, config)
                default = getattr(message, name, None)
                if default is not None:  # TensorFlow 2.15 has not all of them
                    setattr(message, name, values[type(default).__name__])
                    with pytest.raises(NotSupportedError, match=path):
                        session_config.apply(config)
                    refused.add(path)
    assert len(refused) >= 10


def test_fields_that_change_no_result_are_noted_and_not_refused() -> None:
    (note,) = session_config.apply(settings(experimental=v1.ConfigProto.Experimental(disable_thread_spinning=True)))
    assert "disable_thread_spinning has no effect" in note
    with pytest.raises(NotSupportedError, match="cluster_def"):
        session_config.apply(settings(cluster_def={"job": [{"name": "worker", "tasks": {0: "localhost:1"}}]}))


def test_fields_without_effect_are_noted() -> None:
    (note,) = session_config.apply(settings(operation_timeout_in_ms=5))
    assert "operation_timeout_in_ms" in note
    assert session_config.apply(None) == []


def test_the_session_config_that_run_config_makes_is_accepted(tmp_path: Any) -> None:
    made = estimator(minimizing(lambda: v1.train.AdamOptimizer(0.05)), tmp_path)
    assert session_config.apply(made.config.session_config) == []
