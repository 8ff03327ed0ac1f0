"""When, where and from which state of the code a comparison ran, so that somebody else can repeat it."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

_COMMAND = "estimator-bridge"
_GIT_SECONDS = 10.0


def circumstances(script: str) -> dict[str, str]:
    """Returns the rows of a report that say how to repeat its comparison.

    Args:
        script: Path of the script; a module's name has no commit of its own.

    Returns:
        Date in UTC, host, number of processors, commit of the script's repository, and the command with its folder, as far as they
        are known.

    Example:
        >>> sorted(circumstances("missing.py").keys() - {"commit", "repeat"})
        ['date', 'host', 'processors']
    """
    found = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "host": platform.node(),
        "processors": str(os.cpu_count()),
        "commit": _commit(Path(script).parent),
    }
    if Path(sys.argv[0]).name in {_COMMAND, "__main__.py"}:
        found["repeat"] = f"cd {shlex.quote(str(Path.cwd()))} && {shlex.join([_COMMAND, *sys.argv[1:]])}"
    return {name: value for name, value in found.items() if value}


def _commit(folder: Path) -> str:
    """Returns the commit of a folder's repository, and whether its files have changed since; empty without git."""
    read = []
    for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]):
        try:
            ended = subprocess.run(
                ["git", *words], cwd=folder, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        read.append(ended.stdout.strip())
    return read[0] + (" with changes" if read[1] else "")
