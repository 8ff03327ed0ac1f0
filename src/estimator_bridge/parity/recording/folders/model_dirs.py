"""Gives every Estimator of a comparison its own folders: the script's model_dir is only read."""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from estimator_bridge.parity.recording.folders.redirected_files import redirect_files
from estimator_bridge.runtime.patching import wrap

_CREATED = "created"  # file in a side's folder that names the folders which the side created outside of it
_DIGITS = 12  # of a hash in a folder's name
_HOOKS = ("CheckpointSaverHook", "StepCounterHook", "SummarySaverHook")
_HOOKS_PATHS = ("_checkpoint_dir", "_output_dir", "_save_path")


_asked: dict[
    str, Callable[[], None]
] = {}  # model_dir of an Estimator -> function that creates the one that the script asked for


def create_asked(model_dir: str) -> None:
    """Creates the folder that a script asked for, as a training does: a script may write there afterwards, or ask whether it is there.

    Args:
        model_dir: Folder of the Estimator, which ``redirect`` gave it.
    """
    if model_dir in _asked:
        _asked[model_dir]()


def redirect(folder: Path, start: Path, is_shared: bool = False) -> Callable[[str], str]:
    """Makes Estimators keep checkpoints and exports under ``folder`` until the process ends.

    Estimators that share a model_dir still share one, and so do TensorFlow's hooks, ``tf.train.latest_checkpoint`` and ``tf.gfile`` if
    the script gives them the same folder. A checkpoint that the script's model_dir already holds is copied, so that both
    sides start from it.

    Args:
        folder: Folder of the side; gets ``model-0``, ``model-1`` and so on, and ``exports``.
        start: Folder where the first side keeps that checkpoint for the second one, in case the script overwrites its own.
        is_shared: True if the tasks of a cluster share the folder, and may make their Estimators in another order: the names in it
            then come from those of the model_dirs.

    Returns:
        Function of a path that returns the path in the side's folder for it, or any other path as it is.
    """
    from tensorflow_estimator.python.estimator import estimator as estimator_lib
    from tensorflow_estimator.python.estimator import run_config

    folders = _Folders(folder, start, is_shared)

    def overwrite(original: Callable[..., Any], config: Any, model_dir: Any) -> Any:
        made = original(config, model_dir)
        moved = run_config.RunConfig.replace(made, model_dir=str(folders.instead_of(made.model_dir)))
        if hasattr(made, "uid"):  # by which learn_runner recognises its own configuration
            moved.uid = made.uid
        return moved

    def export_inside(export: Callable[..., Any], estimator: Any, export_dir_base: str, *args: Any, **kwargs: Any) -> Any:
        return export(estimator, export_dir(folder, export_dir_base), *args, **kwargs)

    wrap(estimator_lib, maybe_overwrite_model_dir_and_session_config=overwrite)
    wrap(estimator_lib.Estimator, _export_all_saved_models=export_inside)  # what every kind of export comes to
    _redirect_names(folders.moved)
    if not is_shared:  # else other tasks may still write to the script's folders
        atexit.register(remove_created, folder)
    return folders.moved


class _Folders:
    """The folders in place of the script's model_dirs."""

    def __init__(self, folder: Path, start: Path, is_shared: bool) -> None:
        self._folder = folder
        self._start = start
        self._is_shared = is_shared
        self._instead: dict[str, Path] = {}

    def instead_of(self, model_dir: str) -> Path:
        """Returns the side's folder for a model_dir. It exists, with the checkpoint from before the first side ran, if that does."""
        asked = os.path.realpath(model_dir)
        if asked not in self._instead:
            name = hashlib.sha256(asked.encode()).hexdigest()
            before = self._start / name
            own = self._folder / f"model-{name[:_DIGITS] if self._is_shared else len(self._instead)}"
            with one_task(self._folder):
                if not before.exists():
                    _copy_latest(model_dir, before)
                if not (self._is_shared and own.exists()):  # another task may train in it already
                    _copy_latest(str(before), own, is_there=_is_folder(model_dir))
            self._instead[asked] = own
            _asked[str(own)] = functools.partial(self._create, model_dir)
        return self._instead[asked]

    def _create(self, model_dir: str) -> None:
        """Creates a folder that is missing, and remembers it, to remove it in the end."""
        if "://" in model_dir:
            return
        path = Path(model_dir).absolute()
        missing = [folder for folder in (*reversed(path.parents), path) if not folder.exists()]
        with contextlib.suppress(OSError):
            path.mkdir(parents=True, exist_ok=True)
            with (self._folder / _CREATED).open("a") as file:
                file.writelines(f"{folder}\n" for folder in missing)

    def moved(self, path: str) -> str:
        """Returns a path in a model_dir as the path in the side's folder for it; returns any other path as it is."""
        real = Path(os.path.realpath(os.fsdecode(path)))
        if any(real.is_relative_to(own.resolve()) for own in (self._folder, self._start)):
            return path
        return next(
            (str(own / real.relative_to(asked)) for asked, own in self._instead.items() if real.is_relative_to(asked)), path
        )


@contextlib.contextmanager
def one_task(folder: Path) -> Iterator[None]:
    """While active, no other process that asks for the same folder goes on.

    Args:
        folder: Folder that the tasks of a side share.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove_created(folder: Path) -> None:
    """Removes the model_dirs that a side created and left empty.

    Args:
        folder: Folder of the side.
    """
    made = folder / _CREATED
    for path in reversed(made.read_text().splitlines()) if made.exists() else ():
        with contextlib.suppress(OSError):
            Path(path).rmdir()


def _redirect_names(moved: Callable[[str], str]) -> None:
    """Redirects model_dirs that a script passes to TensorFlow's hooks or searches for checkpoints."""
    import tensorflow as tf
    from tensorflow.python.checkpoint import checkpoint_management
    from tensorflow.python.training import basic_session_run_hooks

    def init(original: Callable[..., None], hook: Any, *args: Any, **kwargs: Any) -> None:
        original(hook, *args, **kwargs)
        for name in _HOOKS_PATHS:
            if vars(hook).get(name):
                setattr(hook, name, moved(vars(hook)[name]))

    def state(original: Callable[..., Any], checkpoint_dir: str, latest_filename: str | None = None) -> Any:
        return original(moved(checkpoint_dir), latest_filename)

    redirect_files(moved)
    for name in _HOOKS:
        wrap(getattr(basic_session_run_hooks, name), __init__=init)
    for module in (checkpoint_management, tf.train, tf.compat.v1.train):
        wrap(module, get_checkpoint_state=state)


def export_dir(folder: Path, asked: str | bytes) -> str:
    """Returns the folder of an export: one of the side's own, unless it is in the (redirected) model_dir already."""
    asked = os.fsdecode(asked)  # an Experiment of tf.contrib.learn gives bytes
    inside = Path(asked).resolve().is_relative_to(folder.resolve())
    return asked if inside else str(folder / "exports" / Path(asked).name)


def _is_folder(path: str) -> bool:
    import tensorflow as tf

    return bool(tf.io.gfile.isdir(path))


def _copy_latest(source: str, target: Path, is_there: bool = True) -> None:
    import tensorflow as tf

    if is_there:
        target.mkdir(parents=True, exist_ok=True)
    latest = tf.train.latest_checkpoint(source)
    if latest:
        install_checkpoint(latest, target, Path(latest).name)


def install_checkpoint(prefix: str, model_dir: Path, name: str) -> None:
    """Copies a checkpoint into a model_dir and makes it the latest there.

    Args:
        prefix: Prefix of the checkpoint.
        model_dir: Folder to copy to.
        name: New name, e.g. ``model.ckpt-0``.
    """
    import tensorflow as tf

    model_dir.mkdir(parents=True, exist_ok=True)
    for file in Path(prefix).parent.glob(f"{Path(prefix).name}.*"):
        shutil.copy(file, model_dir / (name + file.name.removeprefix(Path(prefix).name)))
    tf.compat.v1.train.update_checkpoint_state(str(model_dir), str(model_dir / name))
