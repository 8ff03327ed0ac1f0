"""OptimizerOptions: XLA, and the passes that ran before Grappler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import dropped, manual, mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable

_LEVELS: Mapping[Any, str] = {True: "ON_1", False: "OFF"}


def _jit(value: str) -> Conversion:
    if value == "ON_2":
        note = "tf.config.optimizer.set_jit(True) is level 1; TF_XLA_FLAGS=--tf_xla_auto_jit=2 asks for level 2"
        return Conversion({"graph.jit": True}, Fidelity.APPROXIMATE, note)
    return Conversion({"graph.jit": value == "ON_1"})


OPTIMIZER_OPTIONS = RuleTable(
    "optimizer_options",
    "OptimizerOptions",
    (
        mapped("global_jit_level", "tf.config.optimizer.set_jit", Fidelity.EXACT, _jit,
               lambda settings: _LEVELS.get(settings.get("graph.jit")), "ON_1", "OFF"),
        manual("cpu_global_jit", "the environment variable TF_XLA_FLAGS=--tf_xla_cpu_global_jit",
               "XLA clusters on the CPU too: set the variable before TensorFlow starts, with --tf_xla_auto_jit."),
        dropped("opt_level", "L0 turns the passes off that ran before Grappler, and leaves Grappler on (seen in a session of TensorFlow "
                "2.15.1 and of 2.21): no public name. Results are equal; RewriterConfig.disable_meta_optimizer turns Grappler off."),
        dropped("do_common_subexpression_elimination", "The default level already does it."),
        dropped("do_constant_folding", "The default level already does it; RewriterConfig.constant_folding turns Grappler's off."),
        dropped("max_folded_constant_in_bytes", "How large a folded constant may become: no public name, and no result depends on it."),
        dropped("do_function_inlining", "The default level already does it; RewriterConfig.function_optimization turns Grappler's off."),
    ),
)  # fmt: skip
