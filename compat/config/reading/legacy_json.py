"""Reader of a RunConfig, with its TF_CONFIG and specs, from JSON."""

import difflib
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.cluster import tf_config
from estimator_bridge.compat.config.model import ConfigPart, LegacyConfig
from estimator_bridge.compat.config.proto.fields import read_json, read_text, set_fields
from estimator_bridge.compat.config.reading.kinds import conform
from estimator_bridge.compat.config.tables import DISTRIBUTE_CONFIG, RUN_CONFIG
from estimator_bridge.compat.config.tables.run_config import normalize
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import Document

OBJECTS = (
    "TF_CONFIG",
    "session_config",
    "tpu_config",
    "train_distribute",
    "eval_distribute",
    "experimental_distribute",
    "train_spec",
    "eval_spec",
    "partitioner",
    "sync_replicas_optimizer",
)
"""Keys of a RunConfig's JSON that contain objects."""

_NAMES: Mapping[Any, str] = {
    str: "model_dir protocol task_type master evaluation_master tpu_config.tpu_job_name eval_spec.name",
    int: "tf_random_seed task_id save_summary_steps save_checkpoints_steps keep_checkpoint_max log_step_count_steps "
    "train_spec.max_steps eval_spec.steps tpu_config.num_shards tpu_config.num_cores_per_replica "
    "sync_replicas_optimizer.replicas_to_aggregate sync_replicas_optimizer.total_num_replicas sync_replicas_optimizer.num_tokens",
    float: "save_checkpoints_secs session_creation_timeout_secs experimental_max_worker_delay_secs keep_checkpoint_every_n_hours "
    "eval_spec.start_delay_secs eval_spec.throttle_secs",
    bool: "checkpoint_save_graph_def",
    Mapping[str, tuple[str, ...]]: "cluster_spec",
    int | str: "tpu_config.iterations_per_loop",
    bool | int | str: "tpu_config.per_host_input_for_training",
}
"""Annotation -> dotted names of its values; other names may hold values of any type."""
_TYPES = {name: annotation for annotation, names in _NAMES.items() for name in names.split()}

_MAY_BE_NEGATIVE = {"tf_random_seed", "sync_replicas_optimizer.num_tokens"}


def legacy_of(document: Document, *, resolve_hosts: bool = False) -> LegacyConfig:
    """Reads a RunConfig, with its TF_CONFIG and specs.

    Args:
        document: Properties of the RunConfig by name, and TF_CONFIG, train_spec, eval_spec, partitioner and
            sync_replicas_optimizer. Strategies, hooks and exporters are ``{"class": name, argument: value}``, or only the name.
        resolve_hosts: True to look up the hosts of its TF_CONFIG.

    Returns:
        The configuration.

    Raises:
        BridgeError: A key is unknown, or a value has the wrong type; the error gives the position.

    Example:
        >>> from estimator_bridge.runtime.json_positions import read_object
        >>> legacy_of(read_object('{"train_distribute": "MirroredStrategy"}', "run.json")).train_distribute
        ConfigPart(kind='MirroredStrategy', arguments={})
    """
    value = document.value
    for key in value:
        if key not in RUN_CONFIG and key not in OBJECTS:
            near = difflib.get_close_matches(key, [*RUN_CONFIG.names, *OBJECTS], 1)
            known = ", ".join(dict.fromkeys([*RUN_CONFIG.names, *OBJECTS]))
            fix = f"Did you mean {near[0]}?" if near else None
            raise document.error((key,), f"{key} is not a property of a RunConfig.", expected=known, received=key, fix=fix)
    distribute = _object(document, "experimental_distribute") or {}
    for key in distribute:
        if key not in DISTRIBUTE_CONFIG:
            what, known = f"{key} is not a field of a DistributeConfig.", ", ".join(DISTRIBUTE_CONFIG.names)
            raise document.error(("experimental_distribute", key), what, expected=known, received=key)
    _check_task(document)
    train, evaluation = _object(document, "train_spec"), _object(document, "eval_spec")
    return LegacyConfig(
        session_config=_session(document),
        run_config=_values(document, "", normalize({key: one for key, one in value.items() if key not in OBJECTS})),
        tpu_config=_values(document, "tpu_config", _object(document, "tpu_config")),
        tf_config=_nested_tf_config(document, resolve_hosts),
        train_distribute=_one_strategy(document, "train_distribute", distribute),
        eval_distribute=_one_strategy(document, "eval_distribute", distribute),
        remote_cluster=distribute.get("remote_cluster"),
        train_spec=_values(document, "train_spec", train),
        eval_spec=_values(document, "eval_spec", _eval_steps(evaluation)),
        hooks=_parts(document, train, "hooks"),
        exporters=_parts(document, evaluation, "exporters"),
        partitioner=_part(document, "partitioner", value.get("partitioner")),
        sync_replicas=_values(document, "sync_replicas_optimizer", _object(document, "sync_replicas_optimizer")),
    )


def _session(document: Document) -> Mapping[str, Any] | None:
    value = document.value.get("session_config")
    if value is None:
        return None
    if not isinstance(value, str | dict):
        what = "session_config is not a ConfigProto."
        raise document.error(("session_config",), what, expected="an object, or a text proto", received=value)
    where = document.where(("session_config",))
    return set_fields(read_text(value, where) if isinstance(value, str) else read_json(value, where))


def _nested_tf_config(document: Document, resolve_hosts: bool) -> Mapping[str, Any] | None:
    value = _object(document, "TF_CONFIG")
    if value is None:
        return None
    strategies = (document.value, _object(document, "experimental_distribute") or {})
    chief_needed = all(one.get("train_distribute") is None for one in strategies)
    tf_config.check(document.inside("TF_CONFIG"), chief_needed=chief_needed, resolve=resolve_hosts)
    return value


def _check_task(document: Document) -> None:
    """Checks a RunConfig's own cluster_spec, task_type and task_id as a TF_CONFIG is checked."""
    names = {"cluster_spec": ("cluster",), "task_type": ("task", "type"), "task_id": ("task", "index")}
    values = {name: document.value.get(name) for name in names}
    if not values["cluster_spec"] or values["task_type"] is None:
        return
    task = {"type": values["task_type"], "index": values["task_id"]}
    places = {
        (*inner, *path[1:]): place
        for path, place in document.places.items()
        for name, inner in names.items()
        if path[0:1] == (name,)
    }
    tf_config.check(Document({"cluster": values["cluster_spec"], "task": task}, places, document.source), chief_needed=False)


def _object(document: Document, key: str) -> Mapping[str, Any] | None:
    value = document.value.get(key)
    if value is not None and not isinstance(value, dict):
        raise document.error((key,), f"{key} is not an object.", expected="its fields by name", received=value)
    return value


def _values(document: Document, prefix: str, values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if values is None:
        return None
    kept = {}
    for name, value in values.items():
        full = f"{prefix}.{name}" if prefix else name
        if value is not None and full not in {"train_spec.hooks", "eval_spec.exporters"}:
            try:
                kept[name] = _check_type(full, value)
            except BridgeError as error:
                raise document.error(tuple(full.split(".")), str(error)) from None
    return kept


def _eval_steps(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Writes EvalSpec(steps=None), the whole input, as 0."""
    return values if values is None or values.get("steps", 0) is not None else {**values, "steps": 0}


def _one_strategy(document: Document, name: str, distribute: Mapping[str, Any]) -> ConfigPart | None:
    if name in distribute and document.value.get(name) is not None:
        what = f"{name} is in RunConfig and in experimental_distribute."
        raise document.error((name,), what, expected="one of them", fix="Drop one of the two.")
    return _part(document, name, distribute.get(name, document.value.get(name)))


def _parts(document: Document, values: Mapping[str, Any] | None, name: str) -> tuple[ConfigPart, ...]:
    found = (values or {}).get(name) or []
    several = found if isinstance(found, list) else [found]
    return tuple(part for part in (_part(document, name, one) for one in several) if part is not None)


def _part(document: Document, name: str, value: Any) -> ConfigPart | None:
    if value is None:
        return None
    if isinstance(value, str):
        return ConfigPart(value)
    if isinstance(value, dict) and isinstance(value.get("class"), str):
        return ConfigPart(value["class"], {key: one for key, one in value.items() if key != "class"})
    expected = '"MirroredStrategy", or {"class": ..., "devices": ...}'
    raise document.error((name,), f"{name} does not name a class.", expected=expected, received=value)


def _check_type(name: str, value: Any) -> Any:
    """Returns a value from a file as its field holds it.

    Args:
        name: Dotted name.
        value: Value from the file.

    Returns:
        The value; whole seconds and hours stay whole numbers.

    Raises:
        BridgeError: The value has the wrong type, or is negative.

    Example:
        >>> _check_type("save_checkpoints_secs", 600)
        600
    """
    annotation = _TYPES.get(name, Any)
    fitting = conform(value, annotation, name)
    if isinstance(fitting, int | float) and not isinstance(fitting, bool) and fitting < 0 and name not in _MAY_BE_NEGATIVE:
        raise BridgeError(f"{name} is negative.", expected="0 or more", received=value)
    return value if annotation is float else fitting
