"""RewriterConfig: Grappler's passes, which tf.config.optimizer.set_experimental_options switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import dropped, exact, manual, mapped
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity, RuleTable

TOGGLES = (
    "layout_optimizer",
    "constant_folding",
    "shape_optimization",
    "remapping",
    "arithmetic_optimization",
    "dependency_optimization",
    "loop_optimization",
    "function_optimization",
    "debug_stripper",
    "scoped_allocator_optimization",
    "pin_to_host_optimization",
    "implementation_selector",
    "auto_mixed_precision",
    "auto_mixed_precision_mkl",
    "auto_mixed_precision_onednn_bfloat16",
    "use_plugin_optimizers",
)
"""Passes that ``set_experimental_options`` turns on and off by True and False."""
SWITCHES = ("disable_model_pruning", "disable_meta_optimizer")
NUMBERS = ("min_graph_nodes",)
OPTIONS = (*TOGGLES, *SWITCHES, *NUMBERS)
"""Keys that ``set_experimental_options`` acts on; it silently ignores others."""

_TARGET = "tf.config.optimizer.set_experimental_options"
_UNREACHED = "set_experimental_options takes the key and ignores it, and no other public name reaches the pass"
_WORDS: Mapping[Any, str] = {True: "ON", False: "OFF"}


def _toggle(name: str) -> ConversionRule:
    def convert(value: str) -> Conversion:
        if value in {"ON", "OFF"}:
            return Conversion({f"graph.options.{name}": value == "ON"})
        note = f"{_TARGET} only knows on and off; {value} becomes on"
        return Conversion({f"graph.options.{name}": True}, Fidelity.APPROXIMATE, note)

    return mapped(
        name, f"{_TARGET}({{'{name}': ...}})", Fidelity.EXACT, convert, _back(name), "ON", "OFF", note=_NOTES.get(name, "")
    )


def _back(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda settings: _WORDS.get(settings.get(f"graph.options.{name}"))


_NOTES = {
    "auto_mixed_precision": "float16 in the graph changes results on both sides; tf_keras.mixed_precision sets it for a model.",
    "layout_optimizer": "It acts on GPUs.",
}

REWRITER_CONFIG = RuleTable(
    "rewriter_config",
    "RewriterConfig",
    (
        *(_toggle(name) for name in TOGGLES),
        *(exact(name, f"graph.options.{name}", f"{_TARGET}({{'{name}': ...}})", True) for name in SWITCHES),
        *(exact(name, f"graph.options.{name}", f"{_TARGET}({{'{name}': ...}})", 7) for name in NUMBERS),
        dropped("cpu_layout_conversion", f"Image layout on CPUs: {_UNREACHED}. Results are equal."),
        dropped("common_subgraph_elimination", f"No public switch: {_UNREACHED}. Results are equal."),
        manual("auto_mixed_precision_cpu", "tf.keras.mixed_precision.set_global_policy",
               "float16 on CPUs changes results, and set_experimental_options ignores the key: set a policy for the model."),
        dropped("disable_tfg_optimizer", f"Grappler's newer half: {_UNREACHED}. Results are equal."),
        dropped("experimental_conditional_code_motion", f"No public switch: {_UNREACHED}. Results are equal."),
        dropped("meta_optimizer_iterations", "How often the passes run: no public name. Results are equal; Estimator's own default "
                "(once) made start-up faster."),
        dropped("experimental_disable_compressed_tensor_optimization", f"No public switch: {_UNREACHED}. Results are equal."),
        manual("experimental_disable_folding_quantization_emulation", f"{_TARGET}({{'constant_folding': False}})",
               "Folding would remove quantisation emulation from a graph that is to be quantised: turn folding off as a whole."),
        dropped("memory_optimization", f"Swapping and recomputation by rewriting: {_UNREACHED}. Results are equal; tf.recompute_grad "
                "saves memory if a model uses it."),
        dropped("memory_optimizer_target_node_name_scope", f"It names what memory_optimization may recompute: {_UNREACHED}."),
        dropped("meta_optimizer_timeout_ms", f"How long optimising may take: {_UNREACHED}. Results are equal."),
        manual("auto_parallel.enable", "tf.distribute.MirroredStrategy", "Grappler's replicas in one graph: a strategy makes them."),
        manual("auto_parallel.num_replicas", "tf.distribute.MirroredStrategy", "Grappler's replicas in one graph: a strategy makes them."),
        dropped("fail_on_optimizer_errors", f"Raise if a pass fails, instead of continuing without it: {_UNREACHED}."),
        dropped("scoped_allocator_opts.enable_op", "Which operations share one buffer; MultiWorkerMirroredStrategy sets its own."),
        dropped("optimizers", "The list and order of passes: only their switches have public names. Results are equal."),
        dropped("custom_optimizers", "Passes that a plug-in brings, by name: no public name; a plug-in's device registers its own."),
        *(dropped(f"{verifier}.{field}", "Checks of TensorFlow's own passes, for their authors: no public name.")
          for verifier in ("inter_optimizer_verifier_config", "post_optimization_verifier_config")
          for field in ("verification_timeout_in_ms", "structure_verifier")),
    ),
    about="tf.config.optimizer.set_experimental_options takes any key, but acts only on these; other keys are refused here.",
)  # fmt: skip
