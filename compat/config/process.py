"""Settings that one process of a job reads, by its task and its strategy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.decisions import CLUSTERED, unread_reason
from estimator_bridge.compat.config.model import Cluster, ModernConfig
from estimator_bridge.compat.config.settings import flatten, from_dict


def is_server(config: ModernConfig) -> bool:
    """Returns True for a ps or a worker under ParameterServerStrategy: the chief sends it its work."""
    return config.strategy.name == "ParameterServerStrategy" and config.cluster.task_type in {"ps", "worker"}


def process_config(config: ModernConfig) -> ModernConfig:
    """Returns the configuration for this process's strategy; an evaluator makes ``strategy.evaluation``, in no cluster."""
    if config.cluster.task_type != "evaluator":
        return config
    settings = {"name" if key == "kind" else key: value for key, value in config.strategy.evaluation.items()}
    return dataclasses.replace(config, strategy=from_dict({"strategy": settings}).strategy, cluster=Cluster())


def find_unread_settings(config: ModernConfig) -> dict[str, str]:
    """Finds the settings that a task of this type does not read, on any machine.

    Args:
        config: Modern configuration.

    Returns:
        Setting -> reason.
    """
    return dict([*_unread(config, flatten(config)), *_evaluation(config), *_filters(config)])


def _unread(config: ModernConfig, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    evaluator = config.cluster.task_type == "evaluator"
    for name in settings:
        if name == "cluster.task_type" and evaluator:
            continue
        reason = unread_reason(name, None if evaluator else config.strategy.name)
        if evaluator and (reason is not None or name in {"strategy.name", "strategy.remote_cluster"}):
            yield name, "an evaluator's process is in no cluster and does not train"
        elif reason is not None:
            yield name, reason
        elif is_server(config) and name in {"strategy.partitioner", "cluster.session_master", "cluster.environment"}:
            yield name, "this process only serves; the chief's makes the strategy"


def _evaluation(config: ModernConfig) -> Iterator[tuple[str, str]]:
    if config.cluster.task_type == "evaluator":
        return
    if config.strategy.evaluation:
        reason = "fit evaluates under the strategy that it trains with; an evaluator's process makes this one"
        yield "strategy.evaluation", reason
    if config.evaluation.sidecar is not None:
        yield "evaluation.sidecar", "this process trains; the evaluator's, whose cluster.task_type says so, evaluates"


def _filters(config: ModernConfig) -> Iterator[tuple[str, str]]:
    if config.devices.filters is None:
        return
    if config.strategy.name in CLUSTERED and config.cluster.task_type != "evaluator":
        yield "devices.filters", f"{config.strategy.name} connects itself, and sets its own filters"
    elif not config.strategy.remote_cluster or config.cluster.task_type == "evaluator":
        yield "devices.filters", "this process contacts no other, so there is nothing to filter"
    elif config.cluster.task_type is None:
        yield "devices.filters", "filters belong to a task, and cluster.task_type is not set"
