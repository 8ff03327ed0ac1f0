"""GraphOptions, and the messages in it: OptimizerOptions for XLA, RewriterConfig for Grappler's passes."""

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import dropped, exact, manual, mapped
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity, RuleTable

GRAPH_OPTIONS = RuleTable(
    "graph_options",
    "GraphOptions",
    (
        dropped("enable_recv_scheduling", "When a session's receives start; the runtime schedules functions itself."),
        manual("build_cost_model", "tf.profiler.experimental.Profile",
               "Steps between cost models, which came back in RunMetadata.cost_graph: profile some steps instead."),
        manual("build_cost_model_after", "tf.profiler.experimental.Profile",
               "Steps before the first cost model, which came back in RunMetadata.cost_graph: profile some steps instead."),
        dropped("infer_shapes", "It annotated nodes with inferred shapes; TensorFlow infers them while a function is traced."),
        dropped("place_pruned_graph", "It placed only what a step needs; a function holds only what it needs."),
        manual("enable_bfloat16_sendrecv", "tf.cast(gradient, tf.bfloat16) before the reduction",
               "Float32 sent between devices as bfloat16, which costs accuracy: cast in the model if it is intended."),
        manual("timeline_step", "tf.profiler.experimental.Profile",
               "Steps between timelines, which came back in RunMetadata: TensorBoard(profile_batch=...) takes them."),
    ),
)  # fmt: skip

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

    def invert(settings: Mapping[str, Any]) -> Any:
        return _WORDS.get(settings.get(f"graph.options.{name}"))

    target = f"{_TARGET}({{'{name}': ...}})"
    return mapped(name, target, Fidelity.EXACT, convert, invert, "ON", "OFF", note=_NOTES.get(name, ""))


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
