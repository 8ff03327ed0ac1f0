"""GraphOptions, without the messages inside it."""

from __future__ import annotations

from estimator_bridge.compat.config.tables.build import dropped, manual
from estimator_bridge.compat.rules import RuleTable

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
