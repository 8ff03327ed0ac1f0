"""Small wheels in the form of the official ones."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from estimator_bridge.legacy.upstream_contrib import cache, fetch
from estimator_bridge.legacy.upstream_contrib import wheels as official
from estimator_bridge.legacy.upstream_contrib.wheels import Wheel

OFFICIAL = {
    "tensorflow_core/contrib/demo/__init__.py": "from tensorflow.contrib.demo.python import made\n",
    "tensorflow_core/contrib/demo/python/__init__.py": "made = 1\n",
    "tensorflow_core/contrib/demo/data/iris.csv": "150,4\n",
    "tensorflow_core/contrib/demo/_demo_ops.so": "compiled",
    "tensorflow_core/python/ops/math_ops.py": "",
}


def make_wheels(folder: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str] = OFFICIAL) -> Path:
    """Writes a wheel that takes the place of the official ones, and an empty cache folder; returns the wheel's folder."""
    wheels = folder / "wheels"
    wheels.mkdir()
    file = wheels / "demo-1-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    wheel = Wheel("demo==1", file.name, sha256, 1, "any", (("tensorflow_core/contrib/", "tensorflow/contrib/"),))
    kept = {
        path: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items() if (path := wheel.module_path(name))
    }
    manifest = json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()
    monkeypatch.setattr(fetch, "WHEELS", (wheel,))
    monkeypatch.setattr(official, "MANIFEST_SHA256", hashlib.sha256(manifest).hexdigest())
    monkeypatch.setenv(cache.VARIABLE, str(folder / "cache"))
    cache.manifest.cache_clear()
    return wheels
