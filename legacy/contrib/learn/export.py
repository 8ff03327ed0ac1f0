"""When and how an Experiment exports; ``tf.estimator.Exporter`` is what became of it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from tensorflow.python.util.deprecation import deprecated

_DIGITS_OF_A_STAMP = 10  # seconds since 1970


class ExportStrategy(NamedTuple):
    """A name and a function that exports.

    Attributes:
        name: of the folder below ``export``.
        export_fn: of the Estimator and the folder, and of ``checkpoint_path``, ``eval_result`` and ``strip_default_attrs`` where it
            names them.
        strip_default_attrs: whether nodes are written without attributes that have their defaults.
    """

    name: str
    export_fn: Callable[..., Any]
    strip_default_attrs: bool | None = None

    def export(self, estimator: Any, export_path: Any, checkpoint_path: Any = None, eval_result: Any = None) -> Any:
        """Exports, and returns what the function returns.

        Raises:
            ValueError: the function takes ``eval_result`` but no ``checkpoint_path``.
        """
        offered = {
            "checkpoint_path": checkpoint_path,
            "eval_result": eval_result,
            "strip_default_attrs": self.strip_default_attrs,
        }
        taken = inspect.getfullargspec(self.export_fn).args
        if "eval_result" in taken and "checkpoint_path" not in taken:
            raise ValueError("An export_fn accepting eval_result must also accept checkpoint_path.")
        return self.export_fn(estimator, export_path, **{name: offered[name] for name in offered if name in taken})


@deprecated(None, "Switch to tf.estimator.Exporter and associated utilities.")
def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """Exports SavedModels and keeps the newest.

    Args:
        serving_input_fn: returns a ``ServingInputReceiver``.
        default_output_alternative_key: must be None: the Estimators of ``tf.estimator`` have no output alternatives.
        exports_to_keep: how many; None for all.
    """

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Any = None, strip_default_attrs: Any = False) -> Any:
        if default_output_alternative_key is not None:
            raise ValueError(
                f"default_output_alternative_key is not supported in core Estimator. Given: {default_output_alternative_key}"
            )
        exported = estimator.export_savedmodel(
            export_dir_base,
            serving_input_fn,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            strip_default_attrs=strip_default_attrs,
        )
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return exported

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


def garbage_collect_exports(export_dir_base: Any, exports_to_keep: int | None) -> None:
    """Deletes all but the newest exports of a folder, told by their time stamps.

    Args:
        export_dir_base: the folder.
        exports_to_keep: how many; None for all.
    """
    if exports_to_keep is None:
        return
    base = os.fsdecode(export_dir_base)
    names = [name.rstrip("/") for name in tf.gfile.ListDirectory(base)]
    stamps = sorted(name for name in names if len(name) == _DIGITS_OF_A_STAMP and name.isdecimal())
    for stamp in stamps[: max(0, len(stamps) - exports_to_keep)]:
        tf.gfile.DeleteRecursively(f"{base}/{stamp}")
