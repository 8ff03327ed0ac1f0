"""Writes the target of a conversion: a checkpoint, or a Keras file or folder, which appears whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.checkpoint.conversion.sides import Sides
from estimator_bridge.compat.checkpoint.errors import TargetError
from estimator_bridge.compat.checkpoint.request import KERAS_FORMATS
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import Options, Published, publish, target_exists
from estimator_bridge.compat.checkpoint.writing.staging import Disk, ScratchDisk, Staging

_OF_VARIABLES = ("variables", "fingerprint.pb")  # the latter has checksums of the old bytes, and is optional


def write(draft: Draft, sides: Sides, partial: bool = False, disk: Disk | None = None) -> Published:
    """Writes a draft to the target of a request.

    Args:
        draft: Draft with the names of the target.
        sides: Opened request, with the Keras model that a Keras file is written of.
        partial: True if some of the model's variables keep their values.
        disk: Disk that makes the changes.

    Returns:
        A record of the target.

    Raises:
        CheckpointError: The target cannot be written; nothing has changed then.
    """
    is_scratch = sides.request.is_scratch
    disk = disk or (ScratchDisk() if is_scratch else Disk())
    target, to = Path(sides.request.target), sides.request.to
    options = Options(sides.request.copy, sides.request.overwrite, update_state=not is_scratch)
    if to not in KERAS_FORMATS:
        return publish(draft, target, options, disk)
    as_is = Options(options.copy, update_state=False)
    with _published(target, options.overwrite, disk) as staged:
        if sides.saved_model:
            _copy_graph(sides.saved_model, staged, disk)
            return publish(draft, staged / "variables" / "variables", as_is, disk)
        values = staged.with_name("values") / "values"
        publish(draft, values, as_is, disk)
        if sides.model:
            sides.keras.ask(
                do="save",
                handle=sides.model.handle,
                checkpoint=str(values),
                path=str(staged),
                to=to,
                partial=partial,
            )
    return Published(())


def _copy_graph(saved_model: Path, target: Path, disk: Disk) -> None:
    """Copies a SavedModel without its variables: graph, signatures and assets stay as they are."""
    for path in sorted(saved_model.rglob("*")):
        place = path.relative_to(saved_model)
        if path.is_file() and place.parts[0] not in _OF_VARIABLES:
            disk.make_folder((target / place).parent)
            with path.open("rb", buffering=0) as reader, disk.create(target / place) as writer:
                while disk.copy_some(reader, writer):
                    pass


@contextlib.contextmanager
def _published(target: Path, overwrite: bool, disk: Disk) -> Iterator[Path]:
    """Yields a path beside the target; the file or folder written there becomes the target at the end, by rename."""
    if os.path.lexists(target) and not (overwrite and target.is_file()):
        if overwrite:
            raise TargetError(
                "A folder cannot be replaced in one step.", received=str(target), fix="Move it away, or name another target."
            )
        raise target_exists(target)
    staging = Staging(target, disk)
    with staging.opened():
        staged = staging.folder / target.name
        yield staged
        _sync(staged, disk)
        disk.rename(staged, target)
        disk.sync_folder(target.parent)


def _sync(path: Path, disk: Disk) -> None:
    if path.is_dir():
        for child in path.iterdir():
            _sync(child, disk)
        disk.sync_folder(path)
    else:
        with path.open("rb", buffering=0) as file:
            disk.sync(file)
