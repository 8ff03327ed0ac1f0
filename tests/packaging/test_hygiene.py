"""No file contains a path or a package index that only one machine has."""

from __future__ import annotations

import re

import pytest

from tests.packaging.conftest import ROOT, tracked_files

# Built from parts, or this file would find itself. Golden files are searched too: checkpoint state files and event files may
# contain the model_dir of the machine that wrote them.
START = rb"(?<![\w.~}>*-])/"
TELLTALES = {
    "a home directory": START + rb"(?:home|Users)/" + rb"[a-z][\w.-]*",
    "the superuser's home directory": START + rb"root" + rb"/",
    "a workplace": START + rb"(?:work|workspace|builds|github)" + rb"/",
    "an interpreter's own folder": rb"\.(?:pyenv|conda|asdf)" + rb"/",
    "a package index": rb"(?:extra-)?index" + rb"-url|find" + rb"-links",
    "a package index's host": rb"python" + rb"hosted\.|(?:artifactory|nexus|devpi)" + rb"[\w.-]*[/:]",
    "a private address": rb"\b(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))" + rb"\.\d{1,3}\.\d{1,3}\b",
}


@pytest.mark.parametrize("telltale", TELLTALES)
def test_no_file_names_the_machine_it_was_made_on(telltale: str) -> None:
    pattern = re.compile(TELLTALES[telltale])
    found = [
        f"{file}: {match.group().decode(errors='replace')}"
        for file in tracked_files()
        if (match := pattern.search((ROOT / file).read_bytes()))
    ]
    assert not found


@pytest.mark.parametrize(
    ("telltale", "line"),
    [
        ("a home directory", b'model_dir: "/' + b'home/ada/models"'),
        ("the superuser's home directory", b"cd /" + b"root/project"),
        ("a package index", b"pip install --index" + b"-url https://example.org"),
        ("a private address", b"chief: 10.1.2" + b".3:2222"),
    ],
)
def test_a_machines_path_is_recognised(telltale: str, line: bytes) -> None:
    assert re.search(TELLTALES[telltale], line)
