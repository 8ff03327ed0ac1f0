"""``estimator-bridge check``: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_bridge.cli import check, main
from estimator_bridge.legacy.contrib import offered
from tests.compat.source.reports.pages import read
from tests.notebooks import notebook
from tests.packaging.conftest import ROOT
from tests.running import write


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    write(tmp_path / "clean.py", "import tensorflow as tf\ntf.placeholder(tf.float32)\n")
    write(tmp_path / "trainer" / "mended.py", "import numpy as np\nx = np.zeros(3, np.float)\n")
    write(tmp_path / "trainer" / "human.py", "import tensorflow as tf\ntf.train.Nothing\n")
    write(tmp_path / "old.py", "print 'a'\n")
    write(tmp_path / "broken.py", "x = 1\ndef (:\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["clean.py"], 0),
        (["trainer/mended.py", "clean.py"], 0),
        (["trainer"], 1),
        (["old.py"], 1),
        (["--py2", "old.py"], 0),
        (["broken.py"], 2),
        (["."], 2),
    ],
)
@pytest.mark.usefixtures("project")
def test_exit_codes(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", *arguments]) == code
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("project")
def test_a_path_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", "nowhere"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("estimator-bridge: There is no such file or folder.\n")


@pytest.mark.usefixtures("project")
def test_lines_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["check", "."])
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert [line.split(": ")[:3] for line in lines[:4]] == [
        ["broken.py:2:5", "human", "syntax"],
        ["old.py:1:1", "human", "print statement"],
        ["trainer/human.py:2:1", "human", "tf.train.Nothing"],
        ["trainer/mended.py:2:17", "mended", "np.float"],
    ]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert ["TensorFlow", "4", "0", "0", "1"] in rows
    assert rows[-1] == ["all", "4", "1", "0", "3"]
    assert "5 files, 9 lines, judged for TensorFlow 2." in lines[-1]


def test_line_100_is_a_number_and_no_emoji(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "long.py", "\n" * 98 + "import tensorflow as tf\ntf.train.Nothing\n")
    main.main(["check", "long.py"])
    assert capsys.readouterr().out.startswith("long.py:100:1: human: ")


def test_notebooks_are_judged_by_cell_and_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = notebook(
        "%matplotlib inline\nimport tensorflow as tf", ("markdown", "text"), "x = 1\n!wget data\ntf.train.Nothing"
    )
    write(project / "nb" / "first.ipynb", content.decode())
    write(project / "nb" / ".ipynb_checkpoints" / "first.ipynb", content.decode())  # Jupyter's own copy
    expected = [
        ["nb/first.ipynb:cell 1:1:1", "mended", "%matplotlib"],
        ["nb/first.ipynb:cell 2:2:1", "human", "!wget"],
        ["nb/first.ipynb:cell 2:3:1", "human", "tf.train.Nothing"],
    ]
    for path in ("nb", "nb/first.ipynb"):
        assert main.main(["check", path]) == 1
        out = capsys.readouterr().out
        assert [line.split(": ")[:3] for line in out.splitlines()[:3]] == expected
        assert "1 file, 5 lines, " in out

    assert main.main(["check", "--format", "json", "nb"]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert [(one["cell"], one["line"], one["symbol"]) for one in file["findings"]] == [
        (1, 1, "%matplotlib"),
        (1, 2, "tensorflow"),
        (2, 2, "!wget"),
        (2, 3, "tf.train.Nothing"),
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (notebook("x = 1", "y = 2\ndef (:"), "nb.ipynb:cell 2:2:5: human: syntax: Neither Python 3 nor Python 2: "),
        (b'{"cells": []}', "nb.ipynb:1:1: human: notebook: nb.ipynb: this notebook has no code."),
        (b"null", "nb.ipynb:1:1: human: notebook: nb.ipynb: this is not a notebook."),
    ],
)
def test_a_notebook_that_cannot_be_judged(content: bytes, line: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "nb.ipynb").write_bytes(content)
    for paths in (["nb.ipynb"], ["."]):
        assert main.main(["check", *paths]) == 2
        out, err = capsys.readouterr()
        assert any(shown.startswith(line) for shown in out.splitlines()), out
        assert err == ""


@pytest.mark.usefixtures("project")
def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", "--format", "json", "trainer/mended.py"]) == 0
    told = json.loads(capsys.readouterr().out)
    (file,) = told["files"]
    assert told["counts"] == {"runs": 0, "mended": 1, "look": 0, "human": 0}
    assert file["path"] == "trainer/mended.py"
    assert file["lines"] == 2
    assert file["findings"] == [
        {
            "line": 2,
            "column": 17,
            "symbol": "np.float",
            "kind": "numpy",
            "verdict": "mended",
            "message": "no longer exists; run uses float instead",
        }
    ]


@pytest.mark.usefixtures("project")
def test_files_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", "--exclude", "trainer", "--exclude", "*o*.py", "."]) == 0
    assert "1 file, " in capsys.readouterr().out
    assert main.main(["check", "--exclude", "*.py", "."]) == 2
    assert capsys.readouterr().err.startswith("estimator-bridge: --exclude leaves out every file.\n")


@pytest.mark.usefixtures("project")
def test_only_one_verdict_is_shown_and_the_exit_code_stays(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", "--only", "mended", "trainer"]) == 1
    lines = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines() if line.startswith("trainer/")]
    assert lines == ["mended"]


def test_a_baseline_decides_the_exit_code(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", "--format", "json", "."]) == 2
    write(project / "known.json", capsys.readouterr().out)
    assert main.main(["check", "--baseline", "known.json", "."]) == 0
    assert " human: " not in capsys.readouterr().out
    write(project / "trainer" / "human.py", "import tensorflow as tf\n\ntf.train.Nothing\ntf.train.Other\n")
    assert main.main(["check", "--baseline", "known.json", "."]) == 1
    assert [line.split(": ")[2] for line in capsys.readouterr().out.splitlines() if " human: " in line] == ["tf.train.Other"]


def test_a_page_has_what_a_baseline_and_one_verdict_leave(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", "--format", "json", "trainer"]) == 1
    write(project / "known.json", capsys.readouterr().out)
    write(project / "trainer" / "human.py", "import tensorflow as tf\ntf.train.Nothing\ntf.train.Other\nimport numpy\n")
    write(project / "trainer" / "look.py", "if 'ipykernel' in names:\n    get_ipython()\n")

    def shown(*options: str) -> str:
        assert main.main(["check", "--html", "check.html", *options, "trainer"]) == 1
        return re.sub(r"\s+", " ", read((project / "check.html").read_text()).text)

    page = shown()
    assert "2 of 3 files need no human" in page
    assert "human: tf.train.Nothing" in page
    assert "look: " in page
    assert not any(text in page for text in ("new: ", "known", "are shown"))

    page = shown("--baseline", "known.json")
    assert "2 of 3 files have nothing new that needs a human" in page
    assert "2 known findings of the baseline are left out; stages, folders and files count new findings only." in page
    assert "human: tf.train.Nothing" not in page
    assert "tf.train.Nothing is not in TensorFlow 2.21.0. 1\N{EN DASH}1\N{EN DASH}" in page, "it stands, and is not new"
    assert "new: line 3: human: tf.train.Other" in page
    assert "new: line 2: look: get_ipython" in page

    page = shown("--baseline", "known.json", "--only", "human")
    assert "2 known findings" in page
    assert "Only findings with the verdict human are shown; stages count all verdicts." in page
    assert "new: line 3: human: tf.train.Other" in page
    assert "look: " not in page

    page = shown("--only", "mended")
    assert "2 of 3 files need no human" in page, "the stages stay"
    assert "mended: np.float" in page
    assert "tf.train" not in page


def test_a_page_is_written_and_replaced_but_never_a_file_of_the_users(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert main.main(["check", "--html", "pages/check.html", "trainer"]) == 1
    assert "1 of 2 files need no human" in (project / "pages" / "check.html").read_text()
    assert [path.name for path in (project / "pages").iterdir()] == ["check.html"]
    write(project / "mine.html", "mine")
    capsys.readouterr()
    for path in ("mine.html", "pages", "mine.html/check.html"):
        assert main.main(["check", "--html", path, "trainer"]) == 2
        assert capsys.readouterr().err.startswith("estimator-bridge: The report cannot be written.\n")
    assert (project / "mine.html").read_text() == "mine"


def test_a_bar_where_there_is_something_to_wait_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [Path(str(number)) for number in range(12)]
    assert check._with_progress(files) is files, "not where stderr is no terminal"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert check._with_progress(files[:2]) is files[:2] or len(list(check._with_progress(files[:2]))) == 2
    shown = check._with_progress(files)
    assert isinstance(shown, Iterator)
    assert list(shown) == files
    assert capsys.readouterr().out == ""


def test_it_loads_no_framework_and_runs_nothing(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "import tensorflow as tf\nfrom tensorflow.contrib import slim\nopen('ran', 'w')\n")
    ask = "import sys; from estimator_bridge.cli.main import main; main(['check', 'train.py']); print(sorted(sys.modules))"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    answer = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "mended: tf.contrib.slim: run restores it" in answer.stdout
    loaded = answer.stdout.splitlines()[-1]
    assert not [name for name in ("tensorflow", "tf_keras", "keras", "numpy") if f"'{name}'" in loaded]
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


OFFERED = {
    "tf.contrib": True,
    "tf.contrib.layers": True,
    "tf.contrib.layers.l2_regularizer": True,
    "tf.contrib.layers.python.layers.regularizers.l2_regularizer": True,
    "tf.contrib.layers.nothing": False,
    "tf.contrib.nowhere": False,
    "tf.contrib.slim.conv2d": True,
}


@pytest.mark.parametrize("symbol", OFFERED)
def test_what_contrib_offers(symbol: str) -> None:
    assert offered.offers(symbol) is OFFERED[symbol]


def test_what_contrib_offers_is_read_as_it_is() -> None:
    """Our modules' own ``__all__``, asked by importing them."""
    import importlib

    from estimator_bridge.legacy.contrib import PACKAGES
    from estimator_bridge.legacy.installation import install

    install()
    for package in PACKAGES:
        module = importlib.import_module(f"estimator_bridge.legacy.contrib.{package}")
        assert offered.offered(package) == set(module.__all__), package
        assert offered.offered(package, True) == {*module.__all__, *getattr(module, "IN_FILES", ())}, package


@pytest.mark.parametrize("arguments", [["."], ["--py2", "."], [".", "old.py"]])
@pytest.mark.usefixtures("project")
def test_several_processes_report_the_same(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of many files; also of one that cannot be read."""
    results = []
    for least in (check._FILES_OF_ONE, 2):
        monkeypatch.setattr(check, "_FILES_OF_ONE", least)
        results.append((main.main(["check", "--format", "json", *arguments]), capsys.readouterr()))
    assert results[0] == results[1]
    assert '"human.py' in results[0][1].out.replace("trainer/", "")


def test_a_file_that_cannot_be_read_is_told_by_each_process(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "gone.py").symlink_to(project / "nowhere.py")
    results = []
    for least in (check._FILES_OF_ONE, 2):
        monkeypatch.setattr(check, "_FILES_OF_ONE", least)
        results.append((main.main(["check", "."]), capsys.readouterr()))
    assert results[0] == results[1]
