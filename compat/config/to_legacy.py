"""Modern -> legacy: RunConfig, ConfigProto, TF_CONFIG and specs from a ModernConfig."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.cluster.tf_config import legacy_form
from estimator_bridge.compat.config.legacy import LegacyConfig
from estimator_bridge.compat.config.model import ConfigPart, ModernConfig
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.compat.config.tables import (
    DISTRIBUTE_CONFIG,
    EARLY_STOPPING,
    EVAL_SPEC,
    EXPORTERS,
    HOOKS,
    PARTITIONERS,
    RUN_CONFIG,
    SESSION,
    TF_CONFIG,
    TPU_CONFIG,
    TRAIN_SPEC,
)
from estimator_bridge.compat.config.tables.run_config import DEFAULTS
from estimator_bridge.compat.config.tables.specs import EVAL_DEFAULTS
from estimator_bridge.compat.rules import Fidelity, RuleTable

_DERIVED = frozenset({"cluster_spec", "task_type", "task_id", "master"})  # a RunConfig takes these from TF_CONFIG
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "MirroredStrategy": {
        "strategy.devices": "devices",
        "strategy.cross_device_ops": "cross_device_ops",
        "strategy.num_packs": "num_packs",
    },
    "MultiWorkerMirroredStrategy": {"strategy.communication": "communication"},
    "CentralStorageStrategy": {"strategy.devices": "compute_devices", "strategy.parameter_device": "parameter_device"},
    "OneDeviceStrategy": {"strategy.devices": "device"},
    "TPUStrategy": {"strategy.tpu": "tpu"},
}
_NO_ROW = "the legacy side has no counterpart"


def to_legacy(modern: ModernConfig) -> tuple[LegacyConfig, Report]:
    """Converts a modern configuration.

    Args:
        modern: Modern configuration.

    Returns:
        The legacy configuration, and a row for every setting.

    Example:
        >>> from estimator_bridge.compat.config.model import Threads
        >>> legacy, report = to_legacy(ModernConfig(threads=Threads(intra_op=2)))
        >>> legacy.session_config, report.exit_code()
        ({'intra_op_parallelism_threads': 2}, 0)
    """
    settings = flatten(modern)
    said: dict[str, list[tuple[str, Fidelity, str]]] = {}
    session = dict(_session(settings, said))
    run = _values(RUN_CONFIG, "", settings, said, _DERIVED)
    cluster = legacy_form(_tf_config(_values(TF_CONFIG, "TF_CONFIG", settings, said), modern, said))
    if "model_dir" in run:
        cluster.pop("model_dir", None)
    session |= _virtual_cpus(session, modern, said)
    legacy = LegacyConfig(
        session_config=session or None,
        run_config=_without_defaults(run) if run else None,
        tpu_config=_values(TPU_CONFIG, "tpu_config", settings, said) or None,
        tf_config=cluster or None,
        train_distribute=_strategy(modern, settings, said),
        eval_distribute=_evaluation(modern.strategy.evaluation, said),
        remote_cluster=_values(DISTRIBUTE_CONFIG, "experimental_distribute", settings, said).get("remote_cluster"),
        train_spec=_values(TRAIN_SPEC, "train_spec", settings, said) or None,
        eval_spec=_eval_spec(_values(EVAL_SPEC, "eval_spec", settings, said)),
        hooks=_parts("callbacks", modern.callbacks, (HOOKS, EARLY_STOPPING), said),
        exporters=_parts("exporters", modern.exporters, (EXPORTERS,), said),
        partitioner=_partitioner(settings, said),
    )
    return legacy, Report(tuple(_rows(settings, said)))


Said = dict[str, list[tuple[str, Fidelity, str]]]


def _values(
    table: RuleTable, prefix: str, settings: Mapping[str, Any], said: Said, without: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Returns a table's legacy values, and records the rows that set each setting when they are converted again."""
    values = {name: value for name, value in table.invert(settings).items() if name not in without}
    for name, value in values.items():
        rule = table[name]
        again = rule.convert(value).settings if rule.convert is not None else {}
        for setting in again:
            if setting in settings:
                full = f"{prefix}.{name}" if prefix else name
                said.setdefault(setting, []).append((full, rule.fidelity, rule.note))
    return values


def _session(settings: Mapping[str, Any], said: Said) -> Iterator[tuple[str, Any]]:
    for prefix, table in SESSION.items():
        inner = "session_config" + (f".{prefix}" if prefix else "")
        for name, value in _values(table, inner, settings, said).items():
            yield (f"{prefix}.{name}" if prefix else name), value


def _eval_spec(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Without its defaults, but there where they were said."""
    return {name: value for name, value in values.items() if EVAL_DEFAULTS.get(name) != value} if values else None


def _without_defaults(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if DEFAULTS.get(name) != value}


def _tf_config(values: dict[str, Any], modern: ModernConfig, said: Said) -> dict[str, Any]:
    """An Estimator under MultiWorkerMirroredStrategy fails with a KeyError where the evaluator is not in the cluster."""
    outside = modern.cluster.task_type == "evaluator" and "evaluator" not in values.get("cluster", {})
    if outside and modern.strategy.name == "MultiWorkerMirroredStrategy":
        note = ("under MultiWorkerMirroredStrategy an Estimator looks its own task up in the cluster, a KeyError for an evaluator outside: give "
                "the cluster a job 'evaluator' with this process's address, and disable eager execution in its script")  # fmt: skip
        said.setdefault("cluster.task_type", []).append(("TF_CONFIG.cluster.evaluator", Fidelity.MANUAL, note))
    return values


def _evaluation(given: Mapping[str, Any], said: Said) -> ConfigPart | None:
    if not given:
        return None
    said["strategy.evaluation"] = [("eval_distribute", Fidelity.EXACT, "")]
    names = _ARGUMENTS.get(given["kind"], {})
    return ConfigPart(
        given["kind"],
        {names.get(f"strategy.{key}", key): value for key, value in given.items() if key != "kind" and value is not None},
    )


def _virtual_cpus(session: Mapping[str, Any], modern: ModernConfig, said: Said) -> dict[str, Any]:
    """Counts the CPUs in device_count: without it a session makes one CPU device, and waits forever for the others."""
    cpus = sum("cpu" in device.lower() for device in modern.strategy.devices or ())
    counted = dict(session.get("device_count", {}))
    if cpus < 2 or counted.get("CPU", 1) >= cpus:
        return {}
    note = f"a session has one CPU device unless device_count is set: {cpus} were asked for"
    said.setdefault("strategy.devices", []).append(("session_config.device_count", Fidelity.APPROXIMATE, note))
    return {"device_count": counted | {"CPU": cpus}}


def _strategy(modern: ModernConfig, settings: Mapping[str, Any], said: Said) -> ConfigPart | None:
    name = modern.strategy.name
    if name is None:
        return None
    if name == "ParameterServerStrategy":
        note = "parameter servers need no strategy there: TF_CONFIG is enough"
        said["strategy.name"] = [("TF_CONFIG.cluster.ps", Fidelity.APPROXIMATE, note)]
        return None
    said["strategy.name"] = [("train_distribute", Fidelity.EXACT, "")]
    names = _ARGUMENTS.get(name, {})
    for setting in names:
        if setting in settings:
            said.setdefault(setting, []).append((f"train_distribute.{names[setting]}", Fidelity.EXACT, ""))
    return ConfigPart(name, {argument: settings[setting] for setting, argument in names.items() if setting in settings})


def _partitioner(settings: Mapping[str, Any], said: Said) -> ConfigPart | None:
    for name, value in _values(PARTITIONERS, "partitioner", settings, said).items():
        return ConfigPart(name, value)
    return None


def _parts(where: str, parts: tuple[ConfigPart, ...], tables: tuple[RuleTable, ...], said: Said) -> tuple[ConfigPart, ...]:
    found = []
    for index, part in enumerate(parts):
        pairs = [(table, table.invert({where: (part,)})) for table in tables]
        table, values = next(((table, values) for table, values in pairs if values), (tables[0], {}))
        for name, value in list(values.items())[:1]:
            found.append(ConfigPart(name, value))
            said.setdefault(f"{where}[{index}]", []).append((name, table[name].fidelity, table[name].note))
    return tuple(found)


def _rows(settings: Mapping[str, Any], said: Said) -> Iterator[Row]:
    for name, value in settings.items():
        if name in {"callbacks", "exporters"}:
            for index, part in enumerate(value):
                yield from _row(f"{name}[{index}]", part.kind, said)
        else:
            yield from _row(name, value, said)


def _row(name: str, value: Any, said: Said) -> Iterator[Row]:
    for target, fidelity, note in said.get(name, [("", Fidelity.DROPPED, _NO_ROW)]):
        yield Row(name, value, fidelity, target, note)
