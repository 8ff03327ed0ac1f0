"""Conversion tables; together they cover TensorFlow 2.15 to 2.21 and tensorflow-estimator 2.15."""

from collections.abc import Mapping

from estimator_bridge.compat.config.tables.config_proto import CONFIG_PROTO, EXPERIMENTAL, RPC_OPTIONS
from estimator_bridge.compat.config.tables.gpu_options import GPU_OPTIONS
from estimator_bridge.compat.config.tables.graph_options import GRAPH_OPTIONS, OPTIMIZER_OPTIONS, REWRITER_CONFIG
from estimator_bridge.compat.config.tables.partitioners import PARTITIONERS
from estimator_bridge.compat.config.tables.run_config import DISTRIBUTE_CONFIG, RUN_CONFIG
from estimator_bridge.compat.config.tables.specs import EARLY_STOPPING, EVAL_SPEC, EXPORTERS, HOOKS, TRAIN_SPEC
from estimator_bridge.compat.config.tables.tf_config import TASK_TYPES, TF_CONFIG
from estimator_bridge.compat.config.tables.tpu_config import TPU_CONFIG
from estimator_bridge.compat.rules import ConversionRule, RuleTable

__all__ = [
    "ALL",
    "DISTRIBUTE_CONFIG",
    "EARLY_STOPPING",
    "EVAL_SPEC",
    "EXPORTERS",
    "HOOKS",
    "PARTITIONERS",
    "RUN_CONFIG",
    "SESSION",
    "TF_CONFIG",
    "TPU_CONFIG",
    "TRAIN_SPEC",
    "session_rule",
]

SESSION: Mapping[str, RuleTable] = {
    "gpu_options": GPU_OPTIONS,
    "graph_options.optimizer_options": OPTIMIZER_OPTIONS,
    "graph_options.rewrite_options": REWRITER_CONFIG,
    "graph_options": GRAPH_OPTIONS,
    "rpc_options": RPC_OPTIONS,
    "experimental": EXPERIMENTAL,
    "": CONFIG_PROTO,
}
"""Path of a message in a ConfigProto -> its table, inner messages first."""

ALL: tuple[RuleTable, ...] = (
    RUN_CONFIG,
    CONFIG_PROTO,
    GPU_OPTIONS,
    GRAPH_OPTIONS,
    OPTIMIZER_OPTIONS,
    REWRITER_CONFIG,
    RPC_OPTIONS,
    EXPERIMENTAL,
    DISTRIBUTE_CONFIG,
    TPU_CONFIG,
    TF_CONFIG,
    TASK_TYPES,
    TRAIN_SPEC,
    EVAL_SPEC,
    EXPORTERS,
    HOOKS,
    EARLY_STOPPING,
    PARTITIONERS,
)


def session_rule(path: str) -> ConversionRule | None:
    """Finds the row of a ConfigProto field.

    Args:
        path: Dotted path from ConfigProto on.

    Returns:
        The row of the field, or of the message around it; None if there is neither.

    Example:
        >>> session_rule("gpu_options.allow_growth").target
        'tf.config.experimental.set_memory_growth'
        >>> session_rule("pluggable_device_options.allow_growth").name
        'pluggable_device_options'
    """
    for prefix, table in SESSION.items():
        inside = f"{prefix}." if prefix else ""
        if path.startswith(inside):
            name = path.removeprefix(inside)
            return next((table[one] for one in (name, name.partition(".")[0]) if one in table), None)
    return None
