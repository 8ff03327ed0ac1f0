"""Remembers which sides of a comparison have ended, so that ``compare --resume`` runs only the others.

Beside the trace of a side that has ended stands SIDE.ended.json. It names what the side was asked to do, the versions of the packages
and the SHA-256 of the script and of the modules of the user's own that it imported. Files of data are not among them. A rewrite that
changes leaves the recording of the old script as it is.
"""

import dataclasses
import fcntl
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from estimator_bridge.compat.config.cluster.tf_config import read_environment
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.side import Order

_OWNED = "estimator-bridge-comparison"  # a file: the folder is ours, and locked while a comparison uses it
_FORM = 6  # of what a side records; another number whenever the judge needs something that older recordings lack


@contextmanager
def resumed_folder(folder: Path) -> Iterator[str]:
    """Yields the folder for the sides of a comparison, which stays there.

    Args:
        folder: Folder of an earlier ``--resume``, or an empty or a new one.

    Raises:
        BridgeError: The folder is another one, cannot be written, or is in use by another comparison.
    """
    expected = "an empty or a new folder, or one that --resume made"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / _OWNED).exists() and any(folder.iterdir()):
            raise BridgeError(
                "--resume does not write among other files.", expected=expected, received=str(folder), fix="Name a new folder."
            )
        with (folder / _OWNED).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sides = folder / "sides"
            sides.mkdir(exist_ok=True)
            yield str(sides)
    except BlockingIOError as error:
        raise BridgeError(
            "Another comparison uses the folder of --resume.", received=str(folder), fix="Wait for it, or name another folder."
        ) from error
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        if error.filename is None or not Path(error.filename).is_relative_to(folder):
            raise
        raise BridgeError(
            "The folder of --resume cannot be written.", expected=expected, received=f"{error.filename} ({error.strerror})"
        ) from error


def seconds_of_ended(order: Order, versions: dict[str, str]) -> float | None:
    """Returns the seconds that a side took which has ended before; None if it is still to run, for which its traces are removed.

    Args:
        order: Order for the side.
        versions: Versions of the packages that decide what a side does.
    """
    if not (_mark(order).exists() and order.trace(order.side).folder.exists()):
        _clear(order)
        return None
    ended = json.loads(_mark(order).read_bytes())
    changed = _changes(ended, order, versions)
    if changed:
        sys.stderr.write(f"estimator-bridge: the {order.side} side had ended, and runs again: {changed}\n")
        _clear(order)
        return None
    seconds: float = ended["seconds"]
    sys.stderr.write(f"estimator-bridge: the {order.side} side had ended after {seconds:.0f} s; it does not run again.\n")
    return seconds


def remember(order: Order, versions: dict[str, str], seconds: float) -> None:
    """Writes that a side has ended.

    Args:
        order: Order for the side.
        versions: Versions of the packages that decide what a side does.
        seconds: Seconds that the side took.
    """
    imported = [file for trace in order.traces(order.side) for event in trace.events("imported") for file in event["files"]]
    files = {file: _digest(Path(file)) for file in (*_scripts(order), *imported)}
    ended = {"form": _FORM, "asked": _asked(order), "versions": versions, "files": files, "seconds": seconds}
    part = _mark(order).with_suffix(".part")
    part.write_text(json.dumps(ended))
    part.replace(_mark(order))


def _changes(ended: dict[str, Any], order: Order, versions: dict[str, str]) -> str:
    if ended.get("form") != _FORM:
        return "an older estimator-bridge recorded it."
    if ended["asked"] != json.loads(json.dumps(_asked(order))):
        return "it is asked for something else now."
    if ended["versions"] != versions:
        return "the versions of the packages have changed."
    return next((f"{file} has changed." for file, digest in ended["files"].items() if _digest(Path(file)) != digest), "")


def _asked(order: Order) -> dict[str, Any]:
    cluster = read_environment()
    if order.plan and order.side == order.recorded:
        # The recorded side needs nothing else of the plan: pairs, say, are named only after its run.
        plan = RewritePlan(order.script, order.plan.anchor, order.plan.anchor_limit)
        order = dataclasses.replace(order, plan=plan)
    return {**dataclasses.asdict(order), "directory": str(Path.cwd()), "cluster": cluster and cluster.value}


def _clear(order: Order) -> None:
    """Removes what a side left that did not end; what the others made of its recording goes, too."""
    folder = Path(order.folder)
    is_first = order.seed is None and order.side in ("reference", order.recorded)
    for found in folder.iterdir() if is_first else folder.glob(f"{order.side}*"):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()


def _scripts(order: Order) -> Iterator[str]:
    for script in (order.script, *([order.plan.script] if order.plan and order.side != order.recorded else [])):
        if not script.is_module:
            yield str(Path(script.target).resolve())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _mark(order: Order) -> Path:
    return Path(order.folder) / f"{order.side}.ended.json"
