"""Legacy -> modern: values by the rows of the tables, the strategy by its own table; silent errors are checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config import tables
from estimator_bridge.compat.config.checks import CHECKS, Job
from estimator_bridge.compat.config.cluster.tf_config import keys
from estimator_bridge.compat.config.contradictions import ContradictionError
from estimator_bridge.compat.config.decisions import Decision, convert_arguments, decide, public_name, unread_reason
from estimator_bridge.compat.config.model import LISTS, ConfigPart, JobFacts, LegacyConfig, ModernConfig
from estimator_bridge.compat.config.reading.kinds import STRATEGIES
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.tables.run_config import DEFAULTS
from estimator_bridge.compat.config.tables.specs import EVAL_DEFAULTS, EVALUATOR_DEFAULTS
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity, RuleTable
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
    by_steps = "save_checkpoints_steps" in (legacy.run_config or {})
    defaults = {name: value for name, value in DEFAULTS.items() if name != "save_checkpoints_secs" or not by_steps}
    yield from _table(tables.RUN_CONFIG, "", legacy.run_config, defaults)
    yield from _table(tables.TPU_CONFIG, "tpu_config.", legacy.tpu_config)
    yield from _table(tables.TF_CONFIG, "TF_CONFIG.", keys(legacy.tf_config or {}))
    if legacy.remote_cluster is not None:
        remote = {"remote_cluster": legacy.remote_cluster}
        yield from _table(tables.DISTRIBUTE_CONFIG, "experimental_distribute.", remote)
    yield from _table(tables.TRAIN_SPEC, "train_spec.", legacy.train_spec)
    evaluator = (legacy.tf_config or {}).get("task", {}).get("type") == "evaluator"
    defaults = EVAL_DEFAULTS | (EVALUATOR_DEFAULTS if evaluator else {})
    yield from _table(tables.EVAL_SPEC, "eval_spec.", legacy.eval_spec, defaults)
    yield from _parts("hooks", legacy.hooks, [*tables.HOOKS, *tables.EARLY_STOPPING])
    yield from _parts("exporters", legacy.exporters, tables.EXPORTERS)
    yield from _parts("partitioner", (legacy.partitioner,) if legacy.partitioner else (), tables.PARTITIONERS)


def _session(values: Mapping[str, Any] | None, facts: JobFacts) -> Iterator[Step]:
    yield from session_settings(values or {}, facts)
    if values is not None and "allow_soft_placement" not in values:
        note = "without it a session fails if a device lacks a kernel; eager code uses another device, and still does"
        yield Row(_SOFT, False, Fidelity.APPROXIMATE, "eager's own default, True", note, default=True), {}


def _table(
    table: RuleTable, prefix: str, values: Mapping[str, Any] | None, defaults: Mapping[str, Any] | None = None
) -> Iterator[Step]:
    """Converts the values of an object by its table, then the defaults that apply; None for an object that is absent."""
    if values is None:
        return
    for name, value in values.items():
        if name not in table:
            what = f"{prefix}{name} is not a field of {table.title}."
            raise BridgeError(what, expected=", ".join(table.names), received=name)
        yield convert_value(table[name], f"{prefix}{name}", value)
    for name, value in (defaults or {}).items():
        if name not in values:
            yield convert_value(table[name], f"{prefix}{name}", value, is_default=True)


def _parts(prefix: str, parts: tuple[ConfigPart, ...], rules: Iterable[ConversionRule]) -> Iterator[Step]:
    known = {rule.name: rule for rule in rules}
    for index, part in enumerate(parts):
        short = part.kind.rpartition(".")[2]
        rule = known.get(short, known.get("SessionRunHook"))  # the base of a script's own hooks
        if rule is None:
            raise BridgeError(f"{prefix}: {part.kind} is unknown.", expected=", ".join(known), received=part.kind)
        yield convert_value(rule, f"{prefix}[{index}].{short}", part.arguments)


def _strategy(legacy: LegacyConfig, decision: Decision) -> Iterator[Step]:
    asked = legacy.train_distribute
    settings: dict[str, Any] = {} if decision.strategy is None else {"strategy.name": decision.strategy}
    note, fidelity = decision.note, decision.fidelity
    if asked is not None and decision.strategy is not None:
        fields, unknown = convert_arguments(asked)
        lost = sorted(name for name in fields if unread_reason(f"strategy.{name}", decision.strategy))
        settings |= {f"strategy.{name}": value for name, value in fields.items() if name not in lost}
        note += f"; {', '.join(lost)} of the old strategy has no counterpart there" if lost else ""
        if unknown:
            fidelity = Fidelity.worst([fidelity, Fidelity.MANUAL])
            note += f"; {', '.join(unknown)} of the old strategy is not carried over: set the new strategy's arguments instead"
    if asked is not None or legacy.sync_replicas is not None or legacy.tf_config or legacy.tpu_config is not None:
        target = f"tf.distribute.{decision.strategy}" if decision.strategy else "the default strategy"
        value = "SyncReplicasOptimizer" if legacy.sync_replicas is not None else decision.cluster
        yield Row(f"strategy.{decision.name}", asked.kind if asked is not None else value, fidelity, target, note), settings
    if legacy.eval_distribute is not None:
        yield _evaluation(legacy.eval_distribute)


def _evaluation(asked: ConfigPart) -> Step:
    name = public_name(asked.kind)
    if name not in STRATEGIES:
        why = "not a class of TensorFlow: write its counterpart yourself"
        return Row("eval_distribute", name, Fidelity.MANUAL, "", why), {}
    fields, unknown = convert_arguments(asked)
    note = "fit evaluates under the strategy that it trains with; an evaluator's process makes this one"
    note += f"; {', '.join(unknown)} is not carried over" if unknown else ""
    fidelity = Fidelity.MANUAL if unknown else Fidelity.APPROXIMATE
    row = Row("eval_distribute", name, fidelity, f"tf.distribute.{name}", note)
    return row, {"strategy.evaluation": {"kind": name} | fields}


def _found(legacy: LegacyConfig, settings: Mapping[str, Any], facts: JobFacts) -> Iterator[Step]:
    job = Job(legacy, settings, facts)
    for check in CHECKS:
        for finding in check.look(job):
            yield Row(f"check.{check.name}", check.combination, finding.fidelity, finding.fix, finding.why), finding.settings


_GROWTH = "gpu_options.allow_growth"
_FRACTION = "gpu_options.per_process_gpu_memory_fraction"

Step = tuple[Row, Mapping[str, Any]]


def convert_value(rule: ConversionRule, name: str, value: Any, *, is_default: bool = False) -> Step:
    """Converts one legacy value by its rule.

    Args:
        rule: Row of a table.
        name: Name of the value in the report.
        value: Legacy value.
        is_default: True for a value that applies because nothing else was given.

    Returns:
        The report's row and the settings.
    """
    done = rule.convert(value) if rule.convert is not None else Conversion({})
    fidelity = Fidelity.worst([rule.fidelity, done.fidelity or Fidelity.EXACT])
    return Row(name, value, fidelity, rule.target, done.note or rule.note, is_default), done.settings


def session_settings(fields: Mapping[str, Any], facts: JobFacts | None = None) -> Iterator[Step]:
    """Converts the fields of a ConfigProto, one by one.

    Args:
        fields: Dotted path -> value, as ``proto.fields.set_fields`` gives them.
        facts: Facts about the job; the memory of a GPU turns a fraction of it into a limit.

    Yields:
        A row and its settings for each field, in the order of ``fields``.

    Raises:
        BridgeError: A field has no row in the tables.

    Example:
        >>> [(row, settings)] = session_settings({"gpu_options.allow_growth": True})
        >>> row.fidelity.value, settings
        ('exact', {'devices.memory_growth': True})
    """
    known = facts or JobFacts()
    for path, value in fields.items():
        rule = tables.session_rule(path)
        name = f"session_config.{path}"
        if rule is None:
            raise BridgeError(f"{name} has no row in the tables.", expected="a field of TensorFlow 2.15 to 2.21", received=path)
        if path == _FRACTION and known.gpu_memory_mb and 0 < value < float("inf"):
            limits, note = _limits(value, known, fields)
            yield Row(name, value, Fidelity.APPROXIMATE, rule.target, note), {"devices.gpu_memory_limits": limits}
        elif path == _GROWTH and known.gpu_memory_mb and _FRACTION in fields:
            note = "no effect with a limit: TensorFlow does not combine growth and limits, and takes the memory at the start"
            yield Row(name, value, Fidelity.APPROXIMATE, rule.target, note), {}
        else:
            yield convert_value(rule, name, value)


def _limits(fraction: float, facts: JobFacts, fields: Mapping[str, Any]) -> tuple[tuple[tuple[float, ...], ...], str]:
    megabytes = facts.gpu_memory_mb or 0.0
    visible = fields.get("gpu_options.visible_device_list")
    count = len(visible.split(",")) if visible else facts.gpus or 1
    note = f"{fraction:g} of {megabytes:g} MB, of {count} GPU{'' if count == 1 else 's'}; each visible GPU needs a limit"
    return ((float(round(fraction * megabytes)),),) * count, note


def note_unread(step: Step, strategy: str | None) -> Step:
    """Adds to a row which of its settings the strategy does not read; a cluster of one process needs no remark.

    Args:
        step: Row and settings.
        strategy: Class of the strategy; None for one device.

    Returns:
        The same settings, and a row that is approximate at best if the strategy does not read one of them.
    """
    row, settings = step
    reasons = {reason for name in settings if not name.startswith("cluster.") and (reason := unread_reason(name, strategy))}
    if not reasons:
        return step
    fidelity = Fidelity.worst([row.fidelity, Fidelity.APPROXIMATE])
    note = f"{row.note} No effect here: {', '.join(sorted(reasons))}.".strip()
    return dataclasses.replace(row, fidelity=fidelity, note=note), settings


def merge_steps(steps: Iterable[Step]) -> dict[str, Any]:
    """Collects the settings of several steps.

    Args:
        steps: Rows and settings; lists of callbacks and exporters are joined, a default gives way to a value.

    Returns:
        Settings by name.

    Raises:
        ContradictionError: Two rows give one setting different values.
    """
    merged: dict[str, Any] = {}
    sources: dict[str, Row] = {}
    for row, settings in steps:
        for name, value in settings.items():
            if name in LISTS:
                merged[name] = (*merged.get(name, ()), *value)
            elif name not in merged or merged[name] == value:
                merged[name], sources[name] = value, row
            elif not row.default:
                first = sources[name]
                why = f"{first.value!r} and {row.value!r} are both to be {name}"
                fix = "Drop one of the two, or give them the same value."
                raise ContradictionError((first.name, row.name), why, fix)
    return merged
