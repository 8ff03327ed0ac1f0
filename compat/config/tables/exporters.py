"""Exporters, which write SavedModels and delete old ones."""

from __future__ import annotations

from estimator_bridge.compat.config.tables.build import dropped, manual
from estimator_bridge.compat.config.tables.parts import part_rule
from estimator_bridge.compat.rules import RuleTable

_CODE = "serving_input_receiver_fn and assets_extra stay code: a tf.function's signature, and files copied beside the model."
_NAMES = {"name": "name", "exports_to_keep": "exports_to_keep"}

EXPORTERS = RuleTable(
    "exporters",
    "Exporters",
    (
        part_rule("FinalExporter", "ExportAtEnd", "tf.saved_model.save in on_train_end", {"name": "name"}, {"name": "final"},
                  where="exporters", note=_CODE),
        part_rule("LatestExporter", "ExportLatest", "tf.saved_model.save in on_test_end", _NAMES,
                  {"name": "latest", "exports_to_keep": 3}, where="exporters", note=f"{_CODE} Our callback deletes old exports."),
        part_rule("BestExporter", "ExportBest", "tf.saved_model.save in on_test_end", _NAMES, {"name": "best", "exports_to_keep": 3},
                  defaults={"name": "best_exporter"}, where="exporters", note=f"{_CODE} Best is the lowest validation loss; the exporter's own compare_fn stays code."),
        manual("Exporter", "tf.keras.callbacks.Callback", "The base of a script's own exporters: export() becomes on_test_end."),
        manual("serving_input_receiver_fn", "tf.function(input_signature=...)", "Code: placeholders become the signature's TensorSpecs."),
        manual("assets_extra", "tf.io.gfile.copy", "Code: copy the files to assets.extra/ after the save."),
        manual("compare_fn", "tf.keras.callbacks.Callback", "Code: it compares two results; the callback keeps the better."),
        dropped("as_text", "SavedModels as text were for reading; saved_model_cli shows a binary one."),
        dropped("event_file_pattern", "Where BestExporter read earlier results; the callback keeps the best result itself."),
    ),
    about="Every public Exporter, and the arguments that they share. A value is the exporter's arguments by name.",
)  # fmt: skip
