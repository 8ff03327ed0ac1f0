"""The ``checkpoint`` file of a model_dir: a CheckpointState in protobuf's text format, which names the latest checkpoint."""

from __future__ import annotations

import ast
import contextlib
import re
from pathlib import Path

STATE_FILE = "checkpoint"
_PATH = re.compile(r'^\s*(all_model_checkpoint_paths|model_checkpoint_path)\s*:\s*("(?:[^"\\\n]|\\.)*")', re.MULTILINE)


def latest(folder: Path) -> Path | None:
    """Returns the prefix that a folder's ``checkpoint`` file names as the latest, or None.

    Example:
        >>> latest(Path("no such folder")) is None
        True
    """
    paths = _paths(folder, "model_checkpoint_path")
    return folder / paths[0] if paths else None  # an absolute path stays as it is


def text(folder: Path, name: str) -> bytes:
    """Makes the ``checkpoint`` file that names a checkpoint as the latest and keeps all others in the list.

    Args:
        folder: Folder of the checkpoint.
        name: Last part of its prefix.

    Returns:
        The file's contents.

    Example:
        >>> print(text(Path("no such folder"), "model.ckpt-7").decode(), end="")
        model_checkpoint_path: "model.ckpt-7"
        all_model_checkpoint_paths: "model.ckpt-7"
    """
    paths = [path for path in _paths(folder, "all_model_checkpoint_paths") if path not in {name, str(folder / name)}]
    lines = [f"model_checkpoint_path: {_quoted(name)}"]
    lines += [f"all_model_checkpoint_paths: {_quoted(path)}" for path in [*paths, name]]
    return "".join(f"{line}\n" for line in lines).encode()


def _paths(folder: Path, field: str) -> list[str]:
    paths = []
    with contextlib.suppress(OSError):
        contents = (folder / STATE_FILE).read_text(encoding="utf-8", errors="replace")
        for name, quoted in _PATH.findall(contents):
            with contextlib.suppress(SyntaxError, ValueError):  # not escaped as in protobuf's text format, which is Python's
                if name == field:
                    paths.append(str(ast.literal_eval(quoted)))
    return paths


def _quoted(path: str) -> str:
    """Returns a string in protobuf's text format, with bytes beyond ASCII in octal."""
    escaped = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in path.encode())
    return f'"{"".join(escaped)}"'
