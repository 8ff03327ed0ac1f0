"""Logs the findings of ``estimator-bridge check`` for the line at which a script fails because a name is missing."""

import contextlib
import types
from pathlib import Path

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.warn_once import warn_once


def warn_about_removed_names(error: BaseException, file: str, line: int) -> None:
    """Logs each removed name of a line and its substitute; does nothing for errors of another kind.

    Args:
        error: Error that ended the script.
        file: File of the user's code.
        line: Innermost line of that file on the way to the error.
    """
    is_of_module = isinstance(error, AttributeError) and isinstance(error.obj, types.ModuleType)
    if not is_of_module and not isinstance(error, ImportError):
        return
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "tensorboard":
        warn_once("tensorboard: TensorFlow 1 installed it, this TensorFlow does not; pip install tensorboard", f"{file}:{line}")
    from estimator_bridge.compat.source.checking import Judge
    from estimator_bridge.compat.source.surface import installed_version, load_surface
    from estimator_bridge.compat.source.verdicts import Verdict
    from estimator_bridge.legacy.upstream_contrib import offered

    with contextlib.suppress(BridgeError):  # the file can no longer be read
        for finding in Judge(load_surface(installed_version()), offered).file(Path(file)).findings:
            if finding.line == line and finding.verdict is Verdict.HUMAN:
                warn_once(f"{finding.symbol}: {finding.message}", f"{file}:{line}")
