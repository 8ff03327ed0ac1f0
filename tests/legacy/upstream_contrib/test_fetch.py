"""The Python files and tables of tf.contrib are taken out of the official wheels, and out of no others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.upstream_contrib import cache, fetch, offered
from estimator_bridge.legacy.upstream_contrib.wheels import WHEELS
from tests.legacy.upstream_contrib.wheels import make_wheels


def test_only_the_python_files_and_tables_of_contrib_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = make_wheels(tmp_path, monkeypatch)
    fetch.fetch(wheels, lambda line: None)

    files = [
        file.relative_to(tmp_path / "cache" / "sources")
        for file in (tmp_path / "cache" / "sources").rglob("*")
        if file.is_file()
    ]
    kept = ["__init__.py", "data/iris.csv", "python/__init__.py"]
    assert sorted(map(str, files)) == [f"tensorflow/contrib/demo/{file}" for file in kept]
    assert cache.read("tensorflow/contrib/demo/python/__init__.py") == b"made = 1\n"


def test_the_command_fetches_shows_and_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheels = make_wheels(tmp_path, monkeypatch)
    assert main(["contrib", "status", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["fetched"] is False
    assert main(["contrib", "fetch", "--from", str(wheels)]) == 0
    assert "3 files" in capsys.readouterr().out
    assert main(["contrib", "status", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path / "cache"), "fetched": True, "files": 3}
    assert main(["contrib", "remove"]) == 0
    assert not cache.is_fetched()
    assert not list((tmp_path / "cache").rglob("*.py"))


def test_another_wheel_of_that_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = make_wheels(tmp_path, monkeypatch)
    (file,) = wheels.iterdir()
    file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(BridgeError, match="is not the official wheel"):
        fetch.fetch(wheels, lambda line: None)
    assert not cache.is_fetched()


def test_a_missing_wheel_is_named_with_the_command_that_downloads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheels = make_wheels(tmp_path, monkeypatch)
    (file,) = wheels.iterdir()
    file.unlink()
    assert main(["contrib", "fetch", "--from", str(wheels)]) == 2
    assert "pip download demo==1" in capsys.readouterr().err
    assert main(["contrib", "fetch", "--from", str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize("changed", ["tensorflow/contrib/demo/__init__.py", None])
def test_a_file_that_was_changed_in_the_cache_is_not_run(
    changed: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch.fetch(make_wheels(tmp_path, monkeypatch), lambda line: None)
    target = tmp_path / "cache" / "sources" / changed if changed else tmp_path / "cache" / cache.MANIFEST
    target.write_bytes(target.read_bytes() + b" ")
    with pytest.raises(BridgeError, match="not the one of the official wheel"):
        cache.read("tensorflow/contrib/demo/__init__.py")


def test_an_interrupted_fetch_goes_on_with_the_wheels_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = make_wheels(tmp_path, monkeypatch)
    asked: list[str] = []

    def pip(command: Sequence[str], **kwargs: Any) -> Any:
        asked.append(command[command.index("download") + 1])
        if len(asked) == 1:
            raise KeyboardInterrupt
        (file,) = wheels.iterdir()
        (Path(command[command.index("--dest") + 1]) / file.name).write_bytes(file.read_bytes())
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch(None, lambda line: None)
    assert not cache.is_fetched()
    fetch.fetch(None, lambda line: None)
    assert cache.is_fetched()
    assert asked == ["demo==1", "demo==1"]


def test_a_download_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheels(tmp_path, monkeypatch)
    monkeypatch.setattr(subprocess, "run", lambda command, **kwargs: subprocess.CompletedProcess(command, 1))
    with pytest.raises(BridgeError, match="could not download demo==1"):
        fetch.fetch(None, lambda line: None)


def test_check_knows_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not offered.offers("tf.contrib.demo.made")
    fetch.fetch(make_wheels(tmp_path, monkeypatch), lambda line: None)
    assert offered.offers("tf.contrib.demo.made")
    assert offered.offers("tf.contrib.demo.python.made")
    assert not offered.offers("tf.contrib.demo.nothing")
    assert not offered.offers("tf.contrib.eager.Network")


def test_a_star_brings_the_modules_of_a_package_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "tensorflow_core/contrib/demo/__init__.py": "from tensorflow.contrib.demo.all import *\nfrom tensorflow.contrib.demo.some import *\n",
        "tensorflow_core/contrib/demo/all/__init__.py": "",
        "tensorflow_core/contrib/demo/all/module.py": "",
        "tensorflow_core/contrib/demo/some/__init__.py": "__all__ = []\n",
        "tensorflow_core/contrib/demo/some/hidden.py": "",
    }
    fetch.fetch(make_wheels(tmp_path, monkeypatch, files), lambda line: None)
    assert offered.offers("tf.contrib.demo.module")
    assert not offered.offers("tf.contrib.demo.hidden")


def test_the_official_wheels_are_pinned() -> None:
    assert [wheel.requirement for wheel in WHEELS] == [
        "tensorflow==1.15.5",
        "tensorflow==1.14.0",
        "tensorflow-estimator==1.15.1",
    ]
    assert all(len(wheel.sha256) == 64 for wheel in WHEELS)
