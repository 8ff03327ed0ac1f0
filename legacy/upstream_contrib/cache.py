"""The folder in which the fetched files of ``tf.contrib`` lie: each file is read only if its hash is the pinned one."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
from pathlib import Path

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.upstream_contrib import wheels

VARIABLE = "ESTIMATOR_BRIDGE_CONTRIB"
"""Environment variable that names another cache folder."""
MANIFEST = "manifest.json"


def folder() -> Path:
    """Returns the cache folder, which may not exist."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "estimator-bridge" / "contrib"


def is_fetched() -> bool:
    """True if the files have been fetched, whole."""
    return (folder() / MANIFEST).is_file()


def remove() -> None:
    """Removes the fetched files and what was compiled from them."""
    for place in (folder() / MANIFEST, folder() / "sources", folder() / "compiled", folder() / "wheels"):
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def publish(hashes: dict[str, str]) -> None:
    """Writes the manifest, after which the files are used.

    Args:
        hashes: sha256 by module path.

    Raises:
        BridgeError: They are not the files of the official wheels.
    """
    data = json.dumps(hashes, sort_keys=True, separators=(",", ":")).encode()
    if hashlib.sha256(data).hexdigest() != wheels.MANIFEST_SHA256:
        raise BridgeError("The wheels hold other files than expected.", fix="Please report this, with the version of Python.")
    write(folder() / MANIFEST, data)


def write(path: Path, data: bytes) -> None:
    """Writes a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_bytes(data)
    partial.replace(path)


@functools.cache
def manifest(place: Path) -> dict[str, str]:
    """Returns the sha256 of each file by its module path.

    Args:
        place: Cache folder.

    Raises:
        BridgeError: The manifest is not the one that the official wheels give.
    """
    data = (place / MANIFEST).read_bytes()
    if hashlib.sha256(data).hexdigest() != wheels.MANIFEST_SHA256:
        raise _altered(place / MANIFEST)
    hashes: dict[str, str] = json.loads(data)
    return hashes


def read(path: str) -> bytes:
    """Returns the bytes of a fetched file.

    Args:
        path: Module path, ``tensorflow/contrib/crf/__init__.py``.

    Raises:
        BridgeError: The file is missing, or its bytes are not those of the official wheel.
    """
    place = folder()
    file = place / "sources" / path
    data = file.read_bytes() if file.is_file() else b""
    if hashlib.sha256(data).hexdigest() != manifest(place).get(path):
        raise _altered(file)
    return data


def _altered(file: Path) -> BridgeError:
    return BridgeError(
        "A fetched file of tf.contrib is not the one of the official wheel.",
        expected="the file as estimator-bridge contrib fetch wrote it",
        received=str(file),
        fix="estimator-bridge contrib remove, then estimator-bridge contrib fetch",
    )
