"""Legacy -> modern: values by the rows of the tables, the strategy by its own table; silent errors are checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.checks import CHECKS, Job
from estimator_bridge.compat.config.cluster.tf_config import keys
from estimator_bridge.compat.config.decisions import (
    Decision,
    decide,
    public_name,
    settings_of,
    unknown_arguments,
    unread_reason,
)
from estimator_bridge.compat.config.legacy import JobFacts, LegacyConfig
from estimator_bridge.compat.config.model import ConfigPart, ModernConfig
from estimator_bridge.compat.config.reading.kinds import STRATEGIES
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.config.session_fields import session_settings
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.steps import Step, convert_value, merge_steps, note_unread
from estimator_bridge.compat.config.tables import (
    DISTRIBUTE_CONFIG,
    EARLY_STOPPING,
    EVAL_SPEC,
    EXPORTERS,
    HOOKS,
    PARTITIONERS,
    RUN_CONFIG,
    TF_CONFIG,
    TPU_CONFIG,
    TRAIN_SPEC,
)
from estimator_bridge.compat.config.tables.run_config import DEFAULTS
from estimator_bridge.compat.config.tables.specs import EVAL_DEFAULTS, EVALUATOR_DEFAULTS
from estimator_bridge.compat.rules import Fidelity, RuleTable
from estimator_bridge.errors import BridgeError

_SOFT = "session_config.allow_soft_placement"


def to_modern(legacy: LegacyConfig, facts: JobFacts | None = None) -> tuple[ModernConfig, Report]:
    """Converts a legacy configuration.

    Args:
        legacy: Legacy configuration of a job.
        facts: Facts about the job that no configuration contains.

    Returns:
        The modern configuration, and a row for every field that was set.

    Raises:
        BridgeError: Fields contradict each other, or a field has no row.

    Example:
        >>> config, report = to_modern(LegacyConfig(session_config={"gpu_options.allow_growth": True}))
        >>> config.devices.memory_growth, report.exit_code()
        (True, 0)
    """
    known = facts or JobFacts()
    decision = decide(legacy)
    steps = [*_fields(legacy, known), *_strategy(legacy, decision)]
    settings = merge_steps(steps)
    steps = [note_unread(step, decision.strategy) for step in steps]
    findings = [*_found(legacy, settings, known)]
    settings |= {name: value for _, mended in findings for name, value in mended.items()}
    if decision.strategy == "MultiWorkerMirroredStrategy" and "cluster.jobs" in settings:
        settings["cluster.jobs"] = {job: tasks for job, tasks in settings["cluster.jobs"].items() if job != "ps"}
    return unflatten(settings), Report(tuple(row for row, _ in (*steps, *findings)))


def _fields(legacy: LegacyConfig, facts: JobFacts) -> Iterator[Step]:
    yield from _session(legacy.session_config, facts)
    yield from _table(RUN_CONFIG, "", legacy.run_config)
    yield from _run_defaults(legacy.run_config)
    yield from _table(TPU_CONFIG, "tpu_config", legacy.tpu_config)
    yield from _table(TF_CONFIG, "TF_CONFIG", None if legacy.tf_config is None else keys(legacy.tf_config))
    if legacy.remote_cluster is not None:
        yield convert_value(
            DISTRIBUTE_CONFIG["remote_cluster"], "experimental_distribute.remote_cluster", legacy.remote_cluster
        )
    yield from _table(TRAIN_SPEC, "train_spec", legacy.train_spec)
    yield from _table(EVAL_SPEC, "eval_spec", legacy.eval_spec)
    evaluator = (legacy.tf_config or {}).get("task", {}).get("type") == "evaluator"
    for name, value in (EVAL_DEFAULTS | (EVALUATOR_DEFAULTS if evaluator else {})).items():
        if legacy.eval_spec is not None and name not in legacy.eval_spec:
            yield convert_value(EVAL_SPEC[name], f"eval_spec.{name}", value, is_default=True)
    yield from _parts("hooks", legacy.hooks, HOOKS, EARLY_STOPPING)
    yield from _parts("exporters", legacy.exporters, EXPORTERS)
    yield from _parts("partitioner", (legacy.partitioner,) if legacy.partitioner else (), PARTITIONERS)


def _session(values: Mapping[str, Any] | None, facts: JobFacts) -> Iterator[Step]:
    yield from session_settings(values or {}, facts)
    if values is not None and "allow_soft_placement" not in values:
        note = "without it a session fails if a device lacks a kernel; eager code uses another device, and still does"
        yield Row(_SOFT, False, Fidelity.APPROXIMATE, "eager's own default, True", note, default=True), {}


def _table(table: RuleTable, prefix: str, values: Mapping[str, Any] | None) -> Iterator[Step]:
    for name, value in (values or {}).items():
        full = f"{prefix}.{name}" if prefix else name
        if name not in table:
            raise BridgeError(f"{full} is not a field of {table.title}.", expected=", ".join(table.names), received=name)
        yield convert_value(table[name], full, value)


def _run_defaults(values: Mapping[str, Any] | None) -> Iterator[Step]:
    if values is None:
        return
    for name, value in DEFAULTS.items():
        if name not in values and not (name == "save_checkpoints_secs" and "save_checkpoints_steps" in values):
            yield convert_value(RUN_CONFIG[name], name, value, is_default=True)


def _parts(prefix: str, parts: tuple[ConfigPart, ...], *tables: RuleTable) -> Iterator[Step]:
    for index, part in enumerate(parts):
        short = part.kind.rpartition(".")[2]
        table = next((one for one in tables if short in one), None)
        rule = table[short] if table else HOOKS["SessionRunHook"] if prefix == "hooks" else None
        if rule is None:
            raise BridgeError(f"{prefix}: {part.kind} is unknown.", expected=", ".join(tables[0].names), received=part.kind)
        yield convert_value(rule, f"{prefix}[{index}].{short}", part.arguments)


def _strategy(legacy: LegacyConfig, decision: Decision) -> Iterator[Step]:
    asked = legacy.train_distribute
    settings: dict[str, Any] = {} if decision.strategy is None else {"strategy.name": decision.strategy}
    note, fidelity = decision.note, decision.fidelity
    if asked is not None and decision.strategy is not None:
        given = settings_of(asked)
        lost = sorted(name.partition(".")[2] for name in given if unread_reason(name, decision.strategy))
        settings |= {name: value for name, value in given.items() if not unread_reason(name, decision.strategy)}
        note += f"; {', '.join(lost)} of the old strategy has no counterpart there" if lost else ""
        unknown = unknown_arguments(asked)
        if unknown:
            fidelity = Fidelity.worst([fidelity, Fidelity.MANUAL])
            note += f"; {', '.join(unknown)} of the old strategy is not carried over: set the new strategy's arguments instead"
    if asked is not None or legacy.sync_replicas is not None or legacy.tf_config or legacy.tpu_config is not None:
        target = f"tf.distribute.{decision.strategy}" if decision.strategy else "the default strategy"
        value = (
            asked.kind
            if asked is not None
            else "SyncReplicasOptimizer"
            if legacy.sync_replicas is not None
            else decision.cluster
        )
        yield Row(f"strategy.{decision.name}", value, fidelity, target, note), settings
    if legacy.eval_distribute is not None:
        yield _evaluation(legacy.eval_distribute)


def _evaluation(asked: ConfigPart) -> Step:
    name, unknown = public_name(asked.kind), unknown_arguments(asked)
    if name not in STRATEGIES:
        why = "not a class of TensorFlow: write its counterpart yourself"
        return Row("eval_distribute", name, Fidelity.MANUAL, "", why), {}
    note = "fit evaluates under the strategy that it trains with; an evaluator's process makes this one"
    note += f"; {', '.join(unknown)} is not carried over" if unknown else ""
    settings = {key.partition(".")[2]: value for key, value in settings_of(asked).items()}
    fidelity = Fidelity.MANUAL if unknown else Fidelity.APPROXIMATE
    return Row("eval_distribute", name, fidelity, f"tf.distribute.{name}", note), {
        "strategy.evaluation": {"kind": name} | settings
    }


def _found(legacy: LegacyConfig, settings: Mapping[str, Any], facts: JobFacts) -> Iterator[Step]:
    job = Job(legacy, settings, facts)
    for check in CHECKS:
        finding = check.look(job)
        if finding is not None:
            yield Row(f"check.{check.name}", check.combination, finding.fidelity, finding.fix, finding.why), finding.settings
