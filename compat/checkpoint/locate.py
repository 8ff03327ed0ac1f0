"""From what a user names to a checkpoint's prefix: a prefix, an index file, a model_dir, a SavedModel."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import NotFoundError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import table

STATE_FILE = "checkpoint"
_LATEST = re.compile(r'^\s*model_checkpoint_path\s*:\s*("(?:[^"\\\n]|\\.)*")', re.MULTILINE)
_DATA = re.compile(r"\.data-\d{5}-of-\d{5}$")


def resolve(path: str | Path) -> Path:
    """The prefix of the checkpoint that a path names.

    Args:
        path: a prefix, its ``.index`` or one of its data files, a model_dir or a SavedModel's folder.

    Returns:
        The prefix; its index exists.

    Raises:
        NotFoundError: when there is none.
        UnsupportedError: for V1's single-file format.

    Example:
        >>> resolve("no/such/model.ckpt-7")
        Traceback (most recent call last):
        estimator_bridge.compat.checkpoint.errors.NotFoundError: There is no checkpoint.
        ...
    """
    given = Path(path)
    prefix = _in_folder(given) if _holds(given, Path.is_dir) else _without_suffix(given)
    if prefix is not None and _holds(prefix.with_name(f"{prefix.name}.index")):
        return prefix
    if is_v1(given):
        raise UnsupportedError(
            "This is a checkpoint in V1's format, one file without an index.",
            expected="PREFIX.index and PREFIX.data-*",
            received=str(given),
            fix="Convert it first: estimator-bridge convert checkpoint SOURCE TARGET --to name-based.",
        )
    raise NotFoundError(
        "There is no checkpoint.",
        expected="a prefix such as model_dir/model.ckpt-1000, a model_dir, or a SavedModel",
        received=str(path),
        fix="Check the path; it is what stands before .index.",
    )


def latest(folder: Path) -> Path | None:
    """The prefix that a folder's ``checkpoint`` file names, or None.

    Example:
        >>> latest(Path("no such folder")) is None
        True
    """
    try:
        text = (folder / STATE_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = _LATEST.search(text)
    if match is None:
        return None
    try:
        return folder / str(ast.literal_eval(match[1]))  # protobuf's text format escapes as Python does; absolute paths stay
    except (SyntaxError, ValueError):
        return None


def is_v1(path: str | Path) -> bool:
    """Whether a path names a checkpoint in V1's format: a file, or the prefix of ``PREFIX-00000-of-00002`` and so on."""
    given = Path(path)
    if _holds(given):
        return given.suffix != ".index" and table.is_table(given)
    return any(map(table.is_table, given.parent.glob(f"{given.name}-00000-of-?????"))) if "\0" not in given.name else False


def _in_folder(folder: Path) -> Path | None:
    saved_model = folder / "variables" / "variables"
    if _holds(saved_model.with_name("variables.index")):
        return saved_model
    found = latest(folder)
    if found is not None and not _holds(found.with_name(f"{found.name}.index")):
        found = folder / found.name  # the folder was moved after the checkpoint file was written
    return found


def _without_suffix(path: Path) -> Path:
    if path.suffix == ".index":
        return path.with_suffix("")
    return path.with_name(_DATA.sub("", path.name))


def _holds(path: Path, test: Callable[[Path], bool] = Path.is_file) -> bool:
    try:
        return test(path)
    except (OSError, ValueError):  # a name longer than the system takes, or with a zero byte in it
        return False
