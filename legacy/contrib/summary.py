"""``tf.contrib.summary``: summaries written by operations of the graph, without a session fetching them."""

from __future__ import annotations

from tensorflow.python.ops.summary_ops_v2 import (
    SummaryWriter,
    always_record_summaries,
    audio,
    create_file_writer,
    create_summary_file_writer,
    eval_dir,
    generic,
    histogram,
    image,
    import_event,
    initialize,
    never_record_summaries,
    record_summaries_every_n_global_steps,
    scalar,
    summary_writer_initializer_op,
)
from tensorflow.python.ops.summary_ops_v2 import _legacy_contrib_should_record_summaries as should_record_summaries
from tensorflow.python.ops.summary_ops_v2 import all_v2_summary_ops as all_summary_ops
from tensorflow.python.ops.summary_ops_v2 import graph_v1 as graph
from tensorflow.python.ops.summary_ops_v2 import legacy_raw_flush as flush

__all__ = [
    "SummaryWriter",
    "all_summary_ops",
    "always_record_summaries",
    "audio",
    "create_file_writer",
    "create_summary_file_writer",
    "eval_dir",
    "flush",
    "generic",
    "graph",
    "histogram",
    "image",
    "import_event",
    "initialize",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "scalar",
    "should_record_summaries",
    "summary_writer_initializer_op",
]
