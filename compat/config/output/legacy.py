"""Printer of a LegacyConfig as TensorFlow 1 Python, and as the JSON that ``read_source`` reads."""

import json
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format

from estimator_bridge.compat.config.model import ConfigPart, LegacyConfig
from estimator_bridge.compat.config.output.calls import Call, Name, given, source_lines
from estimator_bridge.compat.config.proto.fields import message_of


def legacy_data(legacy: LegacyConfig) -> dict[str, Any]:
    """Returns a legacy configuration as the RunConfig JSON that ``convert config`` reads.

    Args:
        legacy: Legacy configuration.

    Returns:
        Plain data.

    Example:
        >>> legacy_data(LegacyConfig(session_config={"gpu_options.allow_growth": True}))
        {'session_config': {'gpu_options': {'allow_growth': True}}}
    """
    train = {**(legacy.train_spec or {}), **({"hooks": legacy.hooks} if legacy.hooks else {})}
    evaluation = {**(legacy.eval_spec or {}), **({"exporters": legacy.exporters} if legacy.exporters else {})}
    session = None
    if legacy.session_config:
        session = json_format.MessageToDict(message_of(legacy.session_config), preserving_proto_field_name=True)
        if "device_count" in session:  # a map of protobuf, whose order differs from process to process
            session["device_count"] = dict(sorted(session["device_count"].items()))
    objects = {
        "session_config": session,
        "train_distribute": legacy.train_distribute,
        "eval_distribute": legacy.eval_distribute,
        "partitioner": legacy.partitioner,
        "experimental_distribute": {"remote_cluster": legacy.remote_cluster} if legacy.remote_cluster else None,
        "tpu_config": legacy.tpu_config or None,
        "TF_CONFIG": legacy.tf_config or None,
        "train_spec": train or None,
        "eval_spec": evaluation or legacy.eval_spec,
        "sync_replicas_optimizer": legacy.sync_replicas,
    }
    data = {**(legacy.run_config or {}), **{name: value for name, value in objects.items() if value is not None}}
    plain: dict[str, Any] = json.loads(json.dumps(data, default=_object))
    return plain


def legacy_python(legacy: LegacyConfig) -> str:
    """Returns a legacy configuration as TensorFlow 1 code.

    Args:
        legacy: Legacy configuration.

    Returns:
        Source that ends with a ``run_config``, and the arguments of the specs.

    Example:
        >>> print(legacy_python(LegacyConfig(run_config={"save_checkpoints_steps": 50})))
        import tensorflow as tf
        <BLANKLINE>
        run_config = tf.estimator.RunConfig(save_checkpoints_steps=50)
        <BLANKLINE>
    """
    sections = (_imports(legacy), _session(legacy), _run_config(legacy), _specs(legacy))
    return "\n\n".join("\n".join(section) for section in map(list, sections) if section) + "\n"


def _imports(legacy: LegacyConfig) -> Iterator[str]:
    if legacy.tf_config:
        yield from ("import json", "import os", "")
    yield "import tensorflow as tf"
    if legacy.tf_config:
        yield ""
        yield f"os.environ['TF_CONFIG'] = json.dumps({json.loads(json.dumps(legacy.tf_config))!r})"


def _session(legacy: LegacyConfig) -> Iterator[str]:
    if legacy.session_config:
        text = str(message_of(legacy.session_config)).strip()
        yield "from google.protobuf import text_format"
        yield ""
        yield "session_config = text_format.Parse("
        yield '    """'
        yield from (f"    {line}" for line in text.replace("\\", "\\\\").replace('"""', '\\"""').splitlines())
        yield '    """,'
        yield "    tf.compat.v1.ConfigProto(),"
        yield ")"


def _run_config(legacy: LegacyConfig) -> Iterator[str]:
    values = dict(legacy.run_config or {})
    if values.get("log_step_count_steps") == 0:
        values["log_step_count_steps"] = None  # RunConfig takes no 0 there
    values |= {"session_config": Name("session_config")} if legacy.session_config else {}
    strategies = {"train_distribute": legacy.train_distribute, "eval_distribute": legacy.eval_distribute}
    values |= {name: _strategy(part) for name, part in strategies.items() if part}
    if legacy.remote_cluster:
        values["experimental_distribute"] = Call("DistributeConfig", {"remote_cluster": dict(legacy.remote_cluster)})
        yield "from tensorflow.python.distribute.distribute_config import DistributeConfig"
        yield ""
    if legacy.tpu_config:
        values["tpu_config"] = Call("tf.compat.v1.estimator.tpu.TPUConfig", legacy.tpu_config)
    module = "compat.v1.estimator.tpu" if legacy.tpu_config else "estimator"
    yield from source_lines(Call(f"tf.{module}.RunConfig", values), "run_config = ")


def _specs(legacy: LegacyConfig) -> Iterator[str]:
    if legacy.partitioner:
        yield f"partitioner = {Call(f'tf.compat.v1.{legacy.partitioner.kind}', legacy.partitioner.arguments)}"
    if legacy.train_spec:
        yield f"train_spec_arguments = {Call('dict', legacy.train_spec)}  # tf.estimator.TrainSpec(input_fn, ...)"
    if legacy.eval_spec is not None:
        values = {name: None if name == "steps" and value == 0 else value for name, value in legacy.eval_spec.items()}
        yield f"eval_spec_arguments = {Call('dict', values)}  # tf.estimator.EvalSpec(input_fn, ...)"
    for part in (*legacy.hooks, *legacy.exporters):
        yield f"# {Call(part.kind, part.arguments)}"


def _strategy(part: ConfigPart) -> Call:
    inner = "" if part.kind in {"MirroredStrategy", "OneDeviceStrategy"} else "experimental."
    arguments = dict(part.arguments)
    implementation, ops, packs, tpu = (
        arguments.pop(name, None) for name in ("communication", "cross_device_ops", "num_packs", "tpu")
    )
    if ops:
        arguments["cross_device_ops"] = Call(f"tf.distribute.{ops}", given(num_packs=packs))
    if implementation:
        arguments["communication"] = Name(f"tf.distribute.experimental.CommunicationImplementation.{implementation}")
    resolver = Call("tf.distribute.cluster_resolver.TPUClusterResolver", {}, (tpu,))
    positional = (resolver,) if part.kind == "TPUStrategy" else ()
    return Call(f"tf.compat.v1.distribute.{inner}{part.kind}", arguments, positional)


def _object(part: ConfigPart) -> Any:
    return {"class": part.kind, **part.arguments} if part.arguments else part.kind
