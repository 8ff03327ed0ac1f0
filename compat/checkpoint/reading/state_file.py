"""The ``checkpoint`` file of a model_dir, a CheckpointState in protobuf's text format: which checkpoint is the latest."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from estimator_bridge.compat.checkpoint.reading.locate import STATE_FILE

_PATHS = re.compile(r'^\s*all_model_checkpoint_paths\s*:\s*("(?:[^"\\\n]|\\.)*")', re.MULTILINE)


def text(folder: Path, name: str) -> bytes:
    """The ``checkpoint`` file that makes a checkpoint the latest of a folder and keeps the others that are listed.

    Args:
        folder: of the checkpoint.
        name: the last part of its prefix.

    Returns:
        The file's contents.

    Example:
        >>> print(text(Path("no such folder"), "model.ckpt-7").decode(), end="")
        model_checkpoint_path: "model.ckpt-7"
        all_model_checkpoint_paths: "model.ckpt-7"
    """
    paths = [path for path in _listed(folder) if path not in {name, str(folder / name)}]
    lines = [f"model_checkpoint_path: {_quoted(name)}"]
    lines += [f"all_model_checkpoint_paths: {_quoted(path)}" for path in [*paths, name]]
    return "".join(f"{line}\n" for line in lines).encode()


def _listed(folder: Path) -> list[str]:
    try:
        contents = (folder / STATE_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [str(ast.literal_eval(quoted)) for quoted in _PATHS.findall(contents)]


def _quoted(path: str) -> str:
    """A string as protobuf's text format has it: bytes beyond ASCII in octal."""
    shown = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in path.encode())
    return f'"{"".join(shown)}"'
