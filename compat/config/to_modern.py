"""Legacy -> modern: every value through its row, the strategy by its table, and the silent traps checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.checks import CHECKS, Job
from estimator_bridge.compat.config.cluster.tf_config import keys
from estimator_bridge.compat.config.contradictions import ContradictionError
from estimator_bridge.compat.config.decisions import Decision, decide, public_name, settings_of, unknown_arguments, unread
from estimator_bridge.compat.config.legacy import JobFacts, LegacyConfig
from estimator_bridge.compat.config.model import LISTS, ModernConfig, Part
from estimator_bridge.compat.config.reading.kinds import STRATEGIES
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.config.settings import unflatten
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
    session_rule,
)
from estimator_bridge.compat.config.tables.run_config import DEFAULTS
from estimator_bridge.compat.config.tables.specs import EVAL_DEFAULTS, EVALUATOR_DEFAULTS
from estimator_bridge.compat.rules import Conversion, Fidelity, Rule, RuleTable
from estimator_bridge.errors import BridgeError

Step = tuple[Row, Mapping[str, Any]]

_GROWTH = "gpu_options.allow_growth"
_FRACTION = "gpu_options.per_process_gpu_memory_fraction"
_SOFT = "session_config.allow_soft_placement"


def to_modern(legacy: LegacyConfig, facts: JobFacts | None = None) -> tuple[ModernConfig, Report]:
    """What a job's legacy configuration amounts to on the modern side.

    Args:
        legacy: the configuration.
        facts: what it does not say.

    Returns:
        The modern configuration, and a row for every field that was set.

    Raises:
        BridgeError: where fields contradict each other, or a field has no row.

    Example:
        >>> config, report = to_modern(LegacyConfig(session_config={"gpu_options.allow_growth": True}))
        >>> config.devices.memory_growth, report.exit_code()
        (True, 0)
    """
    known = facts or JobFacts()
    decision = decide(legacy)
    steps = [*_fields(legacy, known), *_strategy(legacy, decision)]
    settings = _merged(steps)
    steps = [_as_read(step, decision) for step in steps]
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
        yield _convert(DISTRIBUTE_CONFIG["remote_cluster"], "experimental_distribute.remote_cluster", legacy.remote_cluster)
    yield from _table(TRAIN_SPEC, "train_spec", legacy.train_spec)
    yield from _table(EVAL_SPEC, "eval_spec", legacy.eval_spec)
    evaluator = (legacy.tf_config or {}).get("task", {}).get("type") == "evaluator"
    for name, value in (EVAL_DEFAULTS | (EVALUATOR_DEFAULTS if evaluator else {})).items():
        if legacy.eval_spec is not None and name not in legacy.eval_spec:
            yield _convert(EVAL_SPEC[name], f"eval_spec.{name}", value, default=True)
    yield from _parts("hooks", legacy.hooks, HOOKS, EARLY_STOPPING)
    yield from _parts("exporters", legacy.exporters, EXPORTERS)
    yield from _parts("partitioner", (legacy.partitioner,) if legacy.partitioner else (), PARTITIONERS)


def _session(values: Mapping[str, Any] | None, facts: JobFacts) -> Iterator[Step]:
    for path, value in (values or {}).items():
        rule = session_rule(path)
        if rule is None:
            raise BridgeError(f"session_config.{path} has no row in the tables.", expected="a field of TensorFlow 2.15 to 2.21")
        if path == _FRACTION and facts.gpu_memory_mb and 0 < value < float("inf"):
            yield _fraction(value, facts, values or {}, rule)
        elif path == _GROWTH and facts.gpu_memory_mb and _FRACTION in (values or {}):
            note = "no effect beside a limit, which TensorFlow does not take together with growth: the memory is taken at the start"
            yield Row(f"session_config.{path}", value, Fidelity.APPROXIMATE, rule.target, note), {}
        else:
            yield _convert(rule, f"session_config.{path}", value)
    if values is not None and "allow_soft_placement" not in values:
        note = (
            "a session that does not say so fails where a device lacks a kernel; eager code uses another device, and still does"
        )
        yield Row(_SOFT, False, Fidelity.APPROXIMATE, "eager's own default, True", note, default=True), {}


def _fraction(value: float, facts: JobFacts, session: Mapping[str, Any], rule: Rule) -> Step:
    megabytes = facts.gpu_memory_mb or 0.0
    visible = session.get("gpu_options.visible_device_list")
    count = len(visible.split(",")) if visible else facts.gpus or 1
    limits = ((float(round(value * megabytes)),),) * count
    note = f"{value:g} of {megabytes:g} MB, of {count} GPU{'' if count == 1 else 's'}; there has to be a limit for each visible one"
    return Row(f"session_config.{_FRACTION}", value, Fidelity.APPROXIMATE, rule.target, note), {
        "devices.gpu_memory_limits": limits
    }


def _table(table: RuleTable, prefix: str, values: Mapping[str, Any] | None) -> Iterator[Step]:
    for name, value in (values or {}).items():
        full = f"{prefix}.{name}" if prefix else name
        if name not in table:
            raise BridgeError(f"{full} is no field of {table.title}.", expected=", ".join(table.names), received=name)
        yield _convert(table[name], full, value)


def _run_defaults(values: Mapping[str, Any] | None) -> Iterator[Step]:
    if values is None:
        return
    for name, value in DEFAULTS.items():
        if name not in values and not (name == "save_checkpoints_secs" and "save_checkpoints_steps" in values):
            yield _convert(RUN_CONFIG[name], name, value, default=True)


def _parts(prefix: str, parts: tuple[Part, ...], *tables: RuleTable) -> Iterator[Step]:
    for index, part in enumerate(parts):
        short = part.kind.rpartition(".")[2]
        table = next((one for one in tables if short in one), None)
        rule = table[short] if table else HOOKS["SessionRunHook"] if prefix == "hooks" else None
        if rule is None:
            raise BridgeError(f"{prefix}: {part.kind} is unknown.", expected=", ".join(tables[0].names), received=part.kind)
        yield _convert(rule, f"{prefix}[{index}].{short}", part.arguments)


def _convert(rule: Rule, name: str, value: Any, *, default: bool = False) -> Step:
    done = rule.convert(value) if rule.convert is not None else Conversion({})
    fidelity = Fidelity.worst([rule.fidelity, done.fidelity or Fidelity.EXACT])
    return Row(name, value, fidelity, rule.target, done.note or rule.note, default), done.settings


def _strategy(legacy: LegacyConfig, decision: Decision) -> Iterator[Step]:
    asked = legacy.train_distribute
    settings: dict[str, Any] = {} if decision.strategy is None else {"strategy.name": decision.strategy}
    note, fidelity = decision.note, decision.fidelity
    if asked is not None and decision.strategy is not None:
        given = settings_of(asked)
        lost = sorted(name.partition(".")[2] for name in given if unread(name, decision.strategy))
        settings |= {name: value for name, value in given.items() if not unread(name, decision.strategy)}
        note += f"; {', '.join(lost)} of the old strategy has no place there" if lost else ""
        unknown = unknown_arguments(asked)
        if unknown:
            fidelity = Fidelity.worst([fidelity, Fidelity.MANUAL])
            note += f"; {', '.join(unknown)} of the old strategy is not carried over: say what it asked for with the new one's arguments"
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


def _evaluation(asked: Part) -> Step:
    name, unknown = public_name(asked.kind), unknown_arguments(asked)
    if name not in STRATEGIES:
        why = "a class that TensorFlow does not bring: bring its own counterpart"
        return Row("eval_distribute", name, Fidelity.MANUAL, "", why), {}
    note = "fit evaluates under the strategy that it trains with; an evaluator's process makes this one"
    note += f"; {', '.join(unknown)} is not carried over" if unknown else ""
    settings = {key.partition(".")[2]: value for key, value in settings_of(asked).items()}
    fidelity = Fidelity.MANUAL if unknown else Fidelity.APPROXIMATE
    return Row("eval_distribute", name, fidelity, f"tf.distribute.{name}", note), {
        "strategy.evaluation": {"kind": name} | settings
    }


def _as_read(step: Step, decision: Decision) -> Step:
    """A row says so where it sets what the strategy takes no notice of; a cluster of one process is nothing to notice."""
    row, settings = step
    reasons = {reason for name in settings if not name.startswith("cluster.") and (reason := unread(name, decision.strategy))}
    if not reasons:
        return step
    fidelity = Fidelity.worst([row.fidelity, Fidelity.APPROXIMATE])
    note = f"{row.note} No effect here: {', '.join(sorted(reasons))}.".strip()
    return dataclasses.replace(row, fidelity=fidelity, note=note), settings


def _found(legacy: LegacyConfig, settings: Mapping[str, Any], facts: JobFacts) -> Iterator[Step]:
    job = Job(legacy, settings, facts)
    for check in CHECKS:
        finding = check.look(job)
        if finding is not None:
            yield Row(f"check.{check.name}", check.combination, finding.fidelity, finding.fix, finding.why), finding.settings


def _merged(steps: list[Step]) -> dict[str, Any]:
    """All settings; two rows that want different things of one setting contradict each other."""
    merged: dict[str, Any] = {}
    source: dict[str, Row] = {}
    for row, settings in steps:
        for name, value in settings.items():
            if name in LISTS:
                merged[name] = (*merged.get(name, ()), *value)
            elif name in merged and merged[name] != value:
                if not row.default:
                    raise _contradiction(name, source[name], row)
            else:
                merged[name], source[name] = value, row
    return merged


def _contradiction(name: str, first: Row, second: Row) -> ContradictionError:
    why = f"{first.value!r} and {second.value!r} are both to be {name}"
    return ContradictionError((first.name, second.name), why, "Drop one of the two, or give them the same value.")
