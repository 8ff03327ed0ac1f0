"""Plans from a TensorFlow 1 configuration, and back: numbers of tasks, and the partitioner of variables.

Parameter servers hold variables for all workers. A plan has devices instead, in each worker. The rest of a configuration stays in the
script, which reads it on the modern path as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.model import ConfigPart, LegacyConfig, job_sizes
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.modern.parallel.plans.plan import ParallelPlan, PlaceRule

_ALL = ".*"
_FIXED, _MIN_MAX = "fixed_size_partitioner", "min_max_variable_partitioner"
_DEFAULT_BYTES = 256 << 10
"""``min_slice_size`` of TensorFlow 1's partitioner."""
_PORT = 2222


def plan_tables(legacy: LegacyConfig) -> tuple[dict[str, Any], Report]:
    """Returns the tables of a plan that does what the tasks and the partitioner of a configuration do.

    Args:
        legacy: TensorFlow 1 configuration.

    Returns:
        Tables as ``plan.toml`` has them, and a row for each part of the configuration.

    Example:
        >>> cluster = {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1", "d:1"]}}
        >>> plan_tables(LegacyConfig(tf_config=cluster))[0]
        {'mesh': {'data': 2, 'model': 2}}
    """
    sizes = job_sizes(legacy)
    workers, servers = sizes.get("chief", 0) + sizes.get("worker", 0), sizes.get("ps", 0)
    mesh: dict[str, int] = {}
    rows: list[Row] = []
    if workers > 1:
        mesh["data"] = workers
        rows.append(Row("TF_CONFIG.cluster", {"workers": workers}, Fidelity.EXACT, f"data = {workers}", "chief included"))
    rule = None
    if legacy.partitioner is not None:
        rule, row = _rule_of(legacy.partitioner)
        rows.append(row)
    devices = servers if servers > 1 or rule is None else rule["shards"]
    mesh |= {"model": devices} if devices > 1 else {}
    if servers:
        becomes, note = f"model = {devices}", "workers train in step, and each holds the model on devices of its own"
        rows.append(Row("TF_CONFIG.cluster.ps", servers, Fidelity.APPROXIMATE, becomes if devices > 1 else "no mesh", note))
    tables: dict[str, Any] = {"mesh": mesh} if mesh else {}
    return tables | ({"place": [rule]} if rule else {}), Report(tuple(rows))


def _rule_of(partitioner: ConfigPart) -> tuple[dict[str, Any] | None, Row]:
    kind, own = partitioner.kind, partitioner.arguments
    shards = own.get("num_shards", 1) if kind == _FIXED else own.get("max_partitions", 1)
    least = 1 if kind == _FIXED else own.get("min_slice_size", _DEFAULT_BYTES)
    name = f"partitioner.{kind}"
    if kind not in (_FIXED, _MIN_MAX):
        return None, Row(name, own, Fidelity.MANUAL, "", "shards of a largest size: choose their number, and write [[place]]")
    if shards == 1:
        return None, Row(name, own, Fidelity.EXACT, "no [[place]]", "one part is the whole variable")
    rule = {"match": _ALL, "shards": shards, "axis": own.get("axis", 0), "min_bytes": least}
    return rule, Row(
        name, own, Fidelity.EXACT, f"[[place]] with shards = {shards}", "of all trained variables with room for it"
    )


def legacy_of(plan: ParallelPlan) -> tuple[LegacyConfig, Report]:
    """Returns the tasks and the partitioner of a TensorFlow 1 job that divides its variables as a plan does.

    Args:
        plan: Plan.

    Returns:
        A configuration with invented addresses, and a row for each part of the plan.

    Example:
        >>> from estimator_bridge.modern.parallel.plans.reading import of_mesh
        >>> legacy_of(of_mesh("data=2,model=2"))[0].tf_config["cluster"]["ps"]
        ['ps0:2222', 'ps1:2222']
    """
    rows = list(_without_counterpart(plan))
    placement = plan.placement
    sizes = {"chief": 1, "worker": (plan.data or 1) - 1}
    if plan.data:
        note = "the addresses are invented; replace them by those of your machines"
        rows.append(Row("mesh.data", plan.data, Fidelity.EXACT, "a chief and workers in TF_CONFIG", note))
    if placement.model > 1:
        sizes["ps"] = placement.model
        rows.append(
            Row("mesh.model", placement.model, Fidelity.APPROXIMATE, "ps in TF_CONFIG", "workers do not wait for each other")
        )
    cut: ConfigPart | None = None
    for number, rule in enumerate(placement.rules):
        part = _partitioner_of(rule) if rule.match == _ALL and rule.shards > 1 and cut is None else None
        note = "" if part else "a partitioner or tf.device in the script, at these variables"
        fidelity = Fidelity.EXACT if part else Fidelity.MANUAL
        if part and (rule.device or not rule.min_bytes):
            note = "small variables are cut less instead of refused, and TensorFlow chooses where shards begin"
            fidelity = Fidelity.APPROXIMATE
        rows.append(Row(f"place[{number}]", rule.match, fidelity, f"tf.{part.kind}" if part else "", note))
        cut = part or cut
    cluster = {job: [f"{job}{index}:{_PORT}" for index in range(size)] for job, size in sizes.items() if size}
    tf_config = {"cluster": cluster, "task": {"type": "chief", "index": 0}} if sum(sizes.values()) > 1 else None
    return LegacyConfig(tf_config=tf_config, partitioner=cut), Report(tuple(rows))


def _partitioner_of(rule: PlaceRule) -> ConfigPart:
    if rule.min_bytes <= 1:
        return ConfigPart(_FIXED, {"num_shards": rule.shards, "axis": rule.axis})
    return ConfigPart(_MIN_MAX, {"max_partitions": rule.shards, "axis": rule.axis, "min_slice_size": rule.min_bytes})


def _without_counterpart(plan: ParallelPlan) -> Iterator[Row]:
    given: Mapping[str, tuple[bool, Any]] = {
        "mesh.pipeline": (plan.placement.is_pipeline, plan.placement.stages),
        "script.devices": (plan.placement.script_devices, True),
        "batch.micro": (plan.micro > 1, plan.micro),
        "batch.statistics": (plan.micro_statistics, "micro"),
        "batch.shares": (bool(plan.shares), list(plan.shares)),
        "elastic.workers": (plan.elastic is not None, list(plan.elastic or ())),
        "optimizer.state": (plan.sharded_state, "sharded"),
        "optimizer.gradients": (plan.gradients != "float32", plan.gradients),
    }
    for name, (is_given, value) in given.items():
        if is_given:
            yield Row(name, value, Fidelity.DROPPED, "", "TensorFlow 1 has no counterpart")
