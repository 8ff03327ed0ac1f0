"""Gives every Estimator of a comparison folders of its own: the script's model_dir is read, its folders are never written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock


def redirect(folder: Path) -> None:
    """From now on, Estimators keep their checkpoints and exports under ``folder``; lasts for the process.

    Estimators that share a model_dir go on sharing one. A checkpoint that the script's model_dir already holds is copied, so that
    both sides start from it.

    Args:
        folder: gets ``model-0``, ``model-1`` and so on, and ``exports``.
    """
    from tensorflow_estimator.python.estimator import estimator as estimator_lib
    from tensorflow_estimator.python.estimator import run_config

    original: Callable[..., Any] = estimator_lib.maybe_overwrite_model_dir_and_session_config
    redirected: dict[str, Path] = {}

    def overwrite(config: Any, model_dir: Any) -> Any:
        made = original(config, model_dir)
        asked = made.model_dir
        if asked not in redirected:
            redirected[asked] = folder / f"model-{len(redirected)}"
            _copy_latest(asked, redirected[asked])
        moved = run_config.RunConfig.replace(made, model_dir=str(redirected[asked]))
        if hasattr(made, "uid"):  # by which learn_runner knows the configuration that it gave to the script
            moved.uid = made.uid
        return moved

    mock.patch.object(estimator_lib, "maybe_overwrite_model_dir_and_session_config", overwrite).start()
    export: Callable[..., Any] = estimator_lib.Estimator._export_all_saved_models  # what every kind of export comes to

    def export_inside(self: Any, export_dir_base: str, *args: Any, **kwargs: Any) -> Any:
        return export(self, export_dir(folder, export_dir_base), *args, **kwargs)

    mock.patch.object(estimator_lib.Estimator, "_export_all_saved_models", export_inside).start()


def export_dir(folder: Path, asked: str) -> str:
    """Where an export goes: a folder of the side's own, unless it lies in the (redirected) model_dir already."""
    inside = Path(asked).resolve().is_relative_to(folder.resolve())
    return asked if inside else str(folder / "exports" / Path(asked).name)


def _copy_latest(source: str, target: Path) -> None:
    import tensorflow as tf

    target.mkdir(parents=True, exist_ok=True)
    latest = tf.train.latest_checkpoint(source)
    if latest:
        install_checkpoint(latest, target, Path(latest).name)


def install_checkpoint(prefix: str, model_dir: Path, name: str) -> None:
    """Copies a checkpoint into a model_dir and makes it the latest there.

    Args:
        prefix: of the checkpoint.
        model_dir: where it goes.
        name: its new name, such as ``model.ckpt-0``.
    """
    import tensorflow as tf

    model_dir.mkdir(parents=True, exist_ok=True)
    for file in Path(prefix).parent.glob(f"{Path(prefix).name}.*"):
        shutil.copy(file, model_dir / (name + file.name.removeprefix(Path(prefix).name)))
    tf.compat.v1.train.update_checkpoint_state(str(model_dir), str(model_dir / name))
