"""Modern -> legacy: RunConfig, ConfigProto, TF_CONFIG and specs from a ModernConfig."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config import tables
from estimator_bridge.compat.config.cluster.tf_config import legacy_form
from estimator_bridge.compat.config.model import LISTS, ConfigPart, LegacyConfig, ModernConfig
from estimator_bridge.compat.config.report import Report, Row
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.compat.config.tables.run_config import DEFAULTS
from estimator_bridge.compat.config.tables.specs import EVAL_DEFAULTS
from estimator_bridge.compat.rules import Fidelity, RuleTable

Said = dict[str, list[tuple[str, Fidelity, str]]]
"""Setting -> its legacy counterparts, each with the fidelity and the reason."""

_DERIVED = frozenset({"cluster_spec", "task_type", "task_id", "master"})  # a RunConfig takes these from TF_CONFIG
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "MirroredStrategy": {name: name for name in ("devices", "cross_device_ops", "num_packs")},
    "MultiWorkerMirroredStrategy": {"communication": "communication"},
    "CentralStorageStrategy": {"devices": "compute_devices", "parameter_device": "parameter_device"},
    "OneDeviceStrategy": {"devices": "device"},
    "TPUStrategy": {"tpu": "tpu"},
}
"""Strategy -> its section's fields that the legacy constructor takes, and the arguments' names."""
_NO_COUNTERPART = ("", Fidelity.DROPPED, "the legacy side has no counterpart")


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
    said: Said = defaultdict(list)
    session = dict(_session(settings, said))
    run = _values(tables.RUN_CONFIG, "", settings, said, _DERIVED)
    cluster = legacy_form(_tf_config(_values(tables.TF_CONFIG, "TF_CONFIG.", settings, said), modern, said))
    if "model_dir" in run:
        cluster.pop("model_dir", None)
    session |= _virtual_cpus(session, modern, said)
    partitioners = _values(tables.PARTITIONERS, "partitioner.", settings, said)
    legacy = LegacyConfig(
        session_config=session or None,
        run_config=_without_defaults(run, DEFAULTS),
        tpu_config=_values(tables.TPU_CONFIG, "tpu_config.", settings, said) or None,
        tf_config=cluster or None,
        train_distribute=_strategy(modern, settings, said),
        eval_distribute=_evaluation(modern.strategy.evaluation, said),
        remote_cluster=_values(tables.DISTRIBUTE_CONFIG, "experimental_distribute.", settings, said).get("remote_cluster"),
        train_spec=_values(tables.TRAIN_SPEC, "train_spec.", settings, said) or None,
        eval_spec=_without_defaults(_values(tables.EVAL_SPEC, "eval_spec.", settings, said), EVAL_DEFAULTS),
        hooks=_parts("callbacks", modern.callbacks, (tables.HOOKS, tables.EARLY_STOPPING), said),
        exporters=_parts("exporters", modern.exporters, (tables.EXPORTERS,), said),
        partitioner=next((ConfigPart(*named) for named in partitioners.items()), None),
    )
    return legacy, Report(tuple(_rows(settings, said)))


def _values(
    table: RuleTable, prefix: str, settings: Mapping[str, Any], said: Said, without: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Returns a table's legacy values, and records the rows that set each setting when they are converted again."""
    values = {name: value for name, value in table.invert(settings).items() if name not in without}
    for name, value in values.items():
        rule = table[name]
        again = rule.convert(value).settings if rule.convert is not None else {}
        for setting in again.keys() & settings.keys():
            said[setting].append((f"{prefix}{name}", rule.fidelity, rule.note))
    return values


def _session(settings: Mapping[str, Any], said: Said) -> Iterator[tuple[str, Any]]:
    for message, table in tables.SESSION.items():
        prefix = f"{message}." if message else ""
        for name, value in _values(table, f"session_config.{prefix}", settings, said).items():
            yield f"{prefix}{name}", value


def _without_defaults(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the values that are no defaults; None, and not an empty dictionary, if there was no value at all."""
    return {name: value for name, value in values.items() if defaults.get(name) != value} if values else None


def _tf_config(values: dict[str, Any], modern: ModernConfig, said: Said) -> dict[str, Any]:
    """An Estimator under MultiWorkerMirroredStrategy fails with a KeyError where the evaluator is not in the cluster."""
    outside = modern.cluster.task_type == "evaluator" and "evaluator" not in values.get("cluster", {})
    if outside and modern.strategy.name == "MultiWorkerMirroredStrategy":
        note = ("under MultiWorkerMirroredStrategy an Estimator looks its own task up in the cluster, a KeyError for an evaluator outside: give "
                "the cluster a job 'evaluator' with this process's address, and disable eager execution in its script")  # fmt: skip
        said["cluster.task_type"].append(("TF_CONFIG.cluster.evaluator", Fidelity.MANUAL, note))
    return values


def _evaluation(given: Mapping[str, Any], said: Said) -> ConfigPart | None:
    if not given:
        return None
    said["strategy.evaluation"] = [("eval_distribute", Fidelity.EXACT, "")]
    names = _ARGUMENTS.get(given["kind"], {})
    arguments = {names.get(key, key): value for key, value in given.items() if key != "kind" and value is not None}
    return ConfigPart(given["kind"], arguments)


def _virtual_cpus(session: Mapping[str, Any], modern: ModernConfig, said: Said) -> dict[str, Any]:
    """Counts the CPUs in device_count: without it a session makes one CPU device, and waits forever for the others."""
    cpus = sum("cpu" in device.lower() for device in modern.strategy.devices or ())
    counted = dict(session.get("device_count", {}))
    if cpus < 2 or counted.get("CPU", 1) >= cpus:
        return {}
    note = f"a session has one CPU device unless device_count is set: {cpus} were asked for"
    said["strategy.devices"].append(("session_config.device_count", Fidelity.APPROXIMATE, note))
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
    arguments = {}
    for field, argument in _ARGUMENTS.get(name, {}).items():
        if f"strategy.{field}" in settings:
            arguments[argument] = settings[f"strategy.{field}"]
            said[f"strategy.{field}"].append((f"train_distribute.{argument}", Fidelity.EXACT, ""))
    return ConfigPart(name, arguments)


def _parts(where: str, parts: tuple[ConfigPart, ...], known: tuple[RuleTable, ...], said: Said) -> tuple[ConfigPart, ...]:
    found = []
    for index, part in enumerate(parts):
        made = ((table[name], value) for table in known for name, value in table.invert({where: (part,)}).items())
        for rule, arguments in itertools.islice(made, 1):
            found.append(ConfigPart(rule.name, arguments))
            said[f"{where}[{index}]"].append((rule.name, rule.fidelity, rule.note))
    return tuple(found)


def _rows(settings: Mapping[str, Any], said: Said) -> Iterator[Row]:
    for name, value in settings.items():
        named = {f"{name}[{index}]": part.kind for index, part in enumerate(value)} if name in LISTS else {name: value}
        for full, one in named.items():
            for target, fidelity, note in said.get(full, [_NO_COUNTERPART]):
                yield Row(full, one, fidelity, target, note)
