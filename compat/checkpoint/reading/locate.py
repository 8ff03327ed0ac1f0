"""Finds the prefix of a checkpoint from a path: a prefix, an index file, a model_dir, or a SavedModel.

The ``checkpoint`` file of a model_dir, a CheckpointState in protobuf's text format, names the latest checkpoint.
"""

import ast
import contextlib
import errno
import glob
import re
import stat
from collections.abc import Callable
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import NotFoundError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import table

STATE_FILE = "checkpoint"
_MOST_BYTES = 16 * 1024 * 1024
_SHOWN = 5
_ANY_SHARD = re.compile(r"-\?{5}-of-\d{5}$")  # as TensorFlow's Saver names a sharded V1 checkpoint in the state file
_SUFFIX = re.compile(r"(?<=.)\.(index|data-\d{5}-of-\d{5})$")


def resolve(path: str | Path) -> Path:
    """Returns the prefix of the checkpoint that a path names.

    Args:
        path: Prefix, its ``.index`` or one of its data files, a model_dir, or a SavedModel's folder.

    Returns:
        The prefix; its index exists.

    Raises:
        NotFoundError: There is no checkpoint.
        UnsupportedError: The checkpoint has the V1 format.

    Example:
        >>> resolve("no/such/model.ckpt-7")
        Traceback (most recent call last):
        estimator_bridge.compat.checkpoint.errors.NotFoundError: There is no checkpoint.
        ...
    """
    given = Path(path)
    prefix = _in_folder(given) if _holds(given, Path.is_dir) else given.with_name(_SUFFIX.sub("", given.name))
    if prefix is not None and _holds(prefix.with_name(f"{prefix.name}.index")):
        return prefix
    refuse_v1(given)
    is_folder = _holds(given, Path.is_dir)
    is_keras = given.suffix in {".keras", ".h5"} and _holds(given)
    found = "" if is_keras else _what_is_there(given if is_folder else given.parent)
    wrong = _state_problem(given) if is_folder else _index_problem(prefix or given)
    raise NotFoundError(
        "There is no checkpoint.",
        expected="a prefix such as model_dir/model.ckpt-1000, a model_dir, or a SavedModel",
        received=f"{path}{f': {wrong}' if wrong else ''}",
        fix=f"Name one of these prefixes: {found}."
        if found
        else "Check the path; a prefix is the part before .index. Files of Keras (.keras, .h5) are read only by convert checkpoint.",
    )


def _what_is_there(folder: Path) -> str:
    """Returns the prefixes of the checkpoints in a folder, the latest first; of many the latest five.

    Args:
        folder: Folder; one that cannot be read has none.
    """
    try:
        names = [path for path in folder.iterdir() if path.suffix == ".index" and path.is_file()]
    except (OSError, ValueError):
        return ""
    numbers = {path: [int(number) for number in re.findall(r"\d{1,18}", path.name)] for path in names}
    prefixes = [str(path.with_suffix("")) for path in sorted(names, key=lambda path: (numbers[path], path.name), reverse=True)]
    more = len(prefixes) - _SHOWN
    return ", ".join([*prefixes[:_SHOWN], *([f"and {more:,} more"] if more > 0 else [])])


def _state_problem(folder: Path) -> str:
    """Returns what is wrong with the ``checkpoint`` file of a folder without a checkpoint."""
    try:
        contents = read_state(folder)
    except OSError as error:
        return (
            f"its file {STATE_FILE!r} cannot be read ({error.strerror})"
            if error.errno != errno.ENOENT
            else "it has no file 'checkpoint'"
        )
    except ValueError as error:
        return str(error)
    named = _named(contents, "model_checkpoint_path")
    if named:
        return f"its file {STATE_FILE!r} names {named[0]}, which is not there"
    return f"its file {STATE_FILE!r} {'names no checkpoint' if contents.strip() else 'is empty'}"


def _index_problem(prefix: Path) -> str:
    """Returns what is wrong with the index of a prefix; empty if there is none."""
    index = prefix.with_name(f"{prefix.name}.index")
    try:
        return "" if stat.S_ISREG(index.stat().st_mode) else f"{index} is not a file"
    except FileNotFoundError:
        return f"{index} is a link to a file that is not there" if _holds(index, Path.is_symlink) else ""
    except (OSError, ValueError) as error:
        return f"{index}: {getattr(error, 'strerror', error)}"


def refuse_v1(path: str | Path) -> None:
    """Refuses a checkpoint in the V1 format.

    Raises:
        UnsupportedError: The path names such a checkpoint.
    """
    if (found := v1(path)) is not None:
        raise UnsupportedError(
            "This checkpoint is in TensorFlow V1's format: one file without an index.",
            expected="PREFIX.index and PREFIX.data-*",
            received=str(found),
            fix=f"Convert it first: estimator-bridge convert checkpoint {found} TARGET --to name-based.",
        )


def v1(path: str | Path) -> Path | None:
    """Returns the V1 checkpoint that a path names: its file, or its prefix if it is sharded; None for any other path.

    Args:
        path: File, prefix of the files ``PREFIX-00000-of-00002`` and so on, or model_dir whose latest checkpoint to take.
    """
    given = Path(path)
    if _holds(given, Path.is_dir):
        found = _in_folder(given)
        return None if found is None else v1(found.with_name(_ANY_SHARD.sub("", found.name)))
    if _holds(given):
        return given if given.suffix != ".index" and table.is_table(given) else None
    shards = given.parent.glob(f"{glob.escape(given.name)}-00000-of-?????") if "\0" not in given.name else ()
    return given if any(map(table.is_table, shards)) else None


def latest(folder: Path) -> Path | None:
    """Returns the prefix that a folder's ``checkpoint`` file names as the latest, or None.

    Example:
        >>> latest(Path("no such folder")) is None
        True
    """
    paths = _paths(folder, "model_checkpoint_path")
    return folder / paths[0] if paths else None  # an absolute path stays as it is


def state_file(folder: Path, name: str) -> bytes:
    """Makes the ``checkpoint`` file that names a checkpoint as the latest and keeps all others in the list.

    Args:
        folder: Folder of the checkpoint.
        name: Last part of its prefix.

    Returns:
        The file's contents.

    Example:
        >>> print(state_file(Path("no such folder"), "model.ckpt-7").decode(), end="")
        model_checkpoint_path: "model.ckpt-7"
        all_model_checkpoint_paths: "model.ckpt-7"
    """
    paths = [path for path in _paths(folder, "all_model_checkpoint_paths") if path not in {name, str(folder / name)}]
    lines = [f"model_checkpoint_path: {_quoted(name)}"]
    lines += [f"all_model_checkpoint_paths: {_quoted(path)}" for path in [*paths, name]]
    return "".join(f"{line}\n" for line in lines).encode()


def _in_folder(folder: Path) -> Path | None:
    saved_model = folder / "variables" / "variables"
    if _holds(saved_model.with_name("variables.index")):
        return saved_model
    found = latest(folder)
    if found is not None and not _holds(found.with_name(f"{found.name}.index")):
        found = folder / found.name  # the folder moved after the checkpoint file was written
    return found


def _holds(path: Path, test: Callable[[Path], bool] = Path.is_file) -> bool:
    try:
        return test(path)
    except (OSError, ValueError):  # the name is too long for the system, or has a zero byte in it
        return False


def _paths(folder: Path, field: str) -> list[str]:
    with contextlib.suppress(OSError, ValueError):
        return _named(read_state(folder), field)
    return []


def read_state(folder: Path) -> str:
    """Reads the ``checkpoint`` file of a folder, but never without end.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no file, or too large for one.
    """
    path = folder / STATE_FILE
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"its {STATE_FILE!r} is not a file")
    with path.open("rb") as file:
        contents = file.read(_MOST_BYTES + 1)
    if len(contents) > _MOST_BYTES:
        raise ValueError(f"its file {STATE_FILE!r} is larger than {_MOST_BYTES:,} bytes")
    return contents.decode("utf-8", errors="replace")


def _named(contents: str, field: str) -> list[str]:
    paths = []
    for quoted in re.findall(rf'^\s*{field}\s*:\s*("(?:[^"\\\n]|\\.)*")', contents, re.MULTILINE):
        with contextlib.suppress(SyntaxError, ValueError):  # not escaped as in protobuf's text format, which is Python's
            paths.append(str(ast.literal_eval(quoted)))
    return paths


def _quoted(path: str) -> str:
    """Returns a string in protobuf's text format, with bytes beyond ASCII in octal."""
    escaped = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in path.encode())
    return f'"{"".join(escaped)}"'
