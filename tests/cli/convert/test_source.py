"""``estimator-bridge convert source`` from the outside: the new script, reports, exit codes, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.compat.source.reading import module_root
from tests.running import ROOT

Run = Callable[..., tuple[int, str, str]]
WHOLE = ROOT / "tests" / "data" / "to_keras" / "columns.py"
FOR_HUMANS = WHOLE.with_name("for_humans.py")
SCAFFOLD = next(number for number, line in enumerate(FOR_HUMANS.read_text().splitlines(), 1) if "scaffold=tf" in line)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main(["convert", "source", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_new_script_goes_to_stdout_and_the_report_to_stderr(run: Run) -> None:
    code, out, err = run(WHOLE)
    assert code == 0
    assert "class Model(tf_keras.Model):" in out
    assert "0 human" in err
    assert f"{WHOLE}:49: approximate: assert mode == tf.estimator.ModeKeys.TRAIN: left out" in err


def test_what_needs_a_human_makes_it_1(run: Run) -> None:
    code, out, err = run("--check", FOR_HUMANS)
    assert (code, out) == (1, "")
    assert "human: EstimatorSpec(scaffold=...): there is no fixer" in err


def test_a_file_is_written_whole_and_never_replaced_unasked(run: Run, tmp_path: Path) -> None:
    new = tmp_path / "new.py"
    assert run("--out", new, WHOLE)[0] == 0
    written = new.read_text()
    assert written == run(WHOLE)[1]
    code, _, err = run("--out", new, FOR_HUMANS)
    assert code == 2
    assert "exists" in err
    assert new.read_text() == written
    assert [path.name for path in tmp_path.iterdir()] == ["new.py"]


def test_a_file_is_no_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.py").write_text(WHOLE.read_text())
    code, out, err = run("--out", tmp_path / "there", tmp_path / "jobs")
    assert (code, out) == (2, "")
    assert "Cannot make the folder" in err
    assert (tmp_path / "there").read_text() == "mine"


def test_a_script_can_be_replaced(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(WHOLE.read_text())
    assert run("--write", script)[0] == 0
    assert script.read_text() == run(WHOLE)[1]


def test_a_diff_names_both_scripts(run: Run) -> None:
    out = run("--diff", WHOLE)[1]
    assert out.startswith(f"--- {WHOLE}\n+++ {WHOLE} (Keras)\n")
    assert "-import tensorflow.compat.v1 as tf\n" in out


def test_json_has_the_source_and_every_change(run: Run) -> None:
    report = json.loads(run("--format", "json", FOR_HUMANS)[1])
    assert report["complete"] is False
    change = {"line": SCAFFOLD, "name": "EstimatorSpec(scaffold=...)", "outcome": "human"}
    assert any(change.items() <= one.items() for one in report["changes"])
    assert "# estimator-bridge: EstimatorSpec(scaffold=...) stays: " in report["source"]


def notebook(*cells: str) -> str:
    """Returns the file of a notebook."""
    return json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": cell} for cell in cells]})


def test_the_cells_of_a_notebook_become_one_script(run: Run, tmp_path: Path) -> None:
    """A line of IPython goes, and the report names cell and line."""
    (tmp_path / "train.ipynb").write_text(notebook("%matplotlib inline\n" + WHOLE.read_text(), "print('end')"))
    code, out, err = run(tmp_path / "train.ipynb")
    assert code == 0
    assert "class Model(tf_keras.Model):" in out
    assert "%matplotlib" not in out
    assert out.endswith("print('end')\n")
    assert "cell 1:1: approximate: %matplotlib: left out: only a notebook runs it" in err


def test_a_line_of_a_notebook_that_a_script_needs_is_left_to_a_human(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text(notebook("%cd data\n" + WHOLE.read_text()))
    code, _, err = run(tmp_path / "train.ipynb")
    assert code == 1
    assert "cell 1:1: human: %cd: left out: only a notebook runs it. Write os.chdir(...)." in err


def test_an_error_of_syntax_names_the_cell(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text(notebook("x = 1", "y = 2\ndef (:"))
    code, out, err = run(tmp_path / "train.ipynb")
    assert (code, out) == (2, "")
    assert "train.ipynb:cell 2, line 2 is not Python 3." in err


def test_a_folder_is_converted_into_another(run: Run, tmp_path: Path) -> None:
    (tmp_path / "old" / "models").mkdir(parents=True)
    (tmp_path / "old" / "train.py").write_text(WHOLE.read_text())
    (tmp_path / "old" / "models" / "plain.py").write_text("x = 1\n")
    (tmp_path / "old" / "explore.ipynb").write_text(notebook("y = 2"))
    assert run("--out", tmp_path / "new", tmp_path / "old")[0] == 0
    written = {str(path.relative_to(tmp_path / "new")): path.read_text() for path in (tmp_path / "new").rglob("*.py")}
    assert written == {"train.py": run(WHOLE)[1], "models/plain.py": "x = 1\n", "explore.py": "y = 2\n"}
    code, _, err = run(tmp_path / "old")
    assert code == 2
    assert "Add --out FOLDER" in err


def test_python_2_is_rewritten_if_asked(run: Run, tmp_path: Path) -> None:
    """Division is another one in Python 3, which the report says where it stands."""
    script = tmp_path / "two.py"
    script.write_text(f"{WHOLE.read_text()}\nprint 3 / 2\n")
    code, out, err = run("--py2", script)
    assert code == 0
    assert out.endswith("print(3 / 2)\n")
    assert f"two.py:{len(script.read_text().splitlines())}: approximate: /: Python 2 divides" in err


def test_python_2_that_python_3_parses_is_rewritten_if_asked(run: Run, tmp_path: Path) -> None:
    """``map`` gives a list in Python 2."""
    script = tmp_path / "two.py"
    script.write_text(f"{WHOLE.read_text()}\nwidths = map(int, '3,4'.split(','))\nprint(widths[0] / 2)\n")
    code, out, err = run("--py2", script)
    assert code == 0
    assert "widths = list(map(int, '3,4'.split(',')))" in out
    assert "approximate: /: Python 2 divides" in err
    assert "list(map" not in run(script)[1]


def test_code_scanning_reads_what_needs_a_human(run: Run) -> None:
    results = json.loads(run("--check", "--format", "sarif", FOR_HUMANS)[1])["runs"][0]["results"]
    errors = [one for one in results if one["level"] == "error"]
    assert {SCAFFOLD} <= {one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in errors}
    assert any("EstimatorSpec(scaffold=...)" in one["message"]["text"] for one in errors)
    assert f"::error file={FOR_HUMANS},line={SCAFFOLD}" in run("--check", "--format", "github", FOR_HUMANS)[1]


def test_keras_3_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    code, _, err = run("--keras", "3", "--out", tmp_path / "new.py", WHOLE)
    assert code == 2
    assert "cannot be converted for Keras 3" in err
    assert "compare --seeds" in err
    assert not (tmp_path / "new.py").exists()


def test_a_network_that_stays_needs_the_shim(run: Run) -> None:
    script = WHOLE.with_name("in_loops.py")
    code, _, err = run("--check", script)
    assert code == 1
    assert "norm: it makes layers" in err
    code, out, _ = run("--body", "shim", script)
    assert code == 0
    assert "track_tf1_style_variables" in out


def test_a_conversion_is_proved_only_if_nothing_needs_a_human(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison itself runs in tests/compat/source/fixers/test_proof.py."""
    commands: list[list[str]] = []

    def compare(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 7)

    monkeypatch.setattr(subprocess, "run", compare)
    new = tmp_path / "new.py"
    assert run("--prove", "--out", new, WHOLE, "--", "--epochs", "2")[0] == 7
    assert commands[0][1:] == ["-m", "estimator_bridge", "compare", str(WHOLE), str(new), "--epochs", "2"]
    assert run("--prove", "--out", tmp_path / "other.py", FOR_HUMANS)[0] == 1
    assert len(commands) == 1
    code, _, err = run("--prove", WHOLE)
    assert code == 2
    assert "--prove with --out NEW" in err


BAD = {
    "broken.py": ("def f(:\n", "is not Python 3"),
    "two.py": ("print 'x'\n", "is not Python 3"),
    "plain.py": ("x = 1\n", "uses no Estimator"),
    "nb.ipynb": ("{}", "notebook"),
    "long.py": ("x = 1\n" * 200_000, "is too long"),
    "zeros.py": ("import tensorflow\0", "is not Python 3"),
}


@pytest.mark.parametrize("name", [*BAD, "missing.py"])
def test_bad_input_ends_with_one_message(run: Run, tmp_path: Path, name: str) -> None:
    text, message = BAD.get(name, ("", "Cannot read"))
    if name in BAD:
        (tmp_path / name).write_text(text)
    code, out, err = run("--out", tmp_path / "new.py", tmp_path / name)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "new.py").exists()


THREE_FILES = WHOLE.parent / "three_files"


def test_a_file_that_is_not_python_3_keeps_no_other_from_being_converted(run: Run, tmp_path: Path) -> None:
    """It is copied below a mark; of a notebook the mark is all that is written."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    for path in THREE_FILES.glob("*.py"):
        (old / path.name).write_text(f"{path.read_text()}\nimport two\n")
    (old / "two.py").write_text("print 'x'\n")
    (old / "draft.ipynb").write_text(notebook("def (:"))
    (old / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nprint 'caf\xe9'\n")
    code, _, err = run("--out", new, old)
    assert code == 1
    assert "two.py:1: human: two.py: " in err
    assert "line 1 is not Python 3. If it is Python 2, add --py2." in err
    mark, text = (new / "two.py").read_text().split("\n", 1)
    assert mark.startswith("# estimator-bridge: two.py stays: ")
    assert text == "print 'x'\n"
    assert "from network import Model\n" in (new / "train.py").read_text()
    assert not (new / "draft.py").exists()
    assert "draft.ipynb:1: human: draft.ipynb: " in err
    latin = (new / "latin.py").read_text()
    assert latin.endswith("# -*- coding: utf-8 -*-\nprint 'caf\u00e9'\n")
    (old / "two.py").write_text((new / "two.py").read_text())
    assert run("--out", tmp_path / "again", old)[0] == 1
    assert (tmp_path / "again" / "two.py").read_text().count("two.py stays") == 1
    code, _, err = run("--check", old / "train.py")
    assert code == 1
    assert err.count("two.py: ") == 1
    (old / "train.py").write_text("print 'x'\n")
    assert run("--out", tmp_path / "third", old / "train.py")[0] == 2
    (old / "rows.ipynb").write_text(notebook("x = 1"))
    code, _, err = run("--out", tmp_path / "fourth", old)
    assert code == 2
    assert "Two files would become one" in err
    assert not (tmp_path / "fourth").exists()


def test_a_script_in_another_encoding_is_one_in_utf_8(run: Run, tmp_path: Path) -> None:
    """The new script names its own encoding, also where it goes to stdout."""
    text = "# -*- coding: latin-1 -*-\nimport tensorflow as tf\nprint('caf\u00e9', tf.to_float(1))\n"
    (tmp_path / "old.py").write_bytes(text.encode("latin-1"))
    code, out, _ = run(tmp_path / "old.py")
    assert code == 0
    assert out.startswith("# -*- coding: utf-8 -*-\n")
    assert "caf\u00e9" in out


def test_a_module_of_the_scripts_own_has_to_be_converted_with_it(run: Run) -> None:
    code, _, err = run("--check", THREE_FILES / "train.py")
    assert code == 1
    assert f"human: {THREE_FILES / 'rows.py'}: the script imports it" in err


def test_a_folder_takes_the_script_and_its_modules(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "keras"
    assert run("--out", folder, THREE_FILES / "train.py")[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["network.py", "rows.py", "train.py"]
    assert "from network import Model\n" in (folder / "train.py").read_text()
    assert "estimator = Model()\n" in (folder / "train.py").read_text()
    assert "return rows.batch(4)\n" in (folder / "rows.py").read_text()
    before = {path: path.read_text() for path in folder.iterdir()}
    assert run("--out", folder, THREE_FILES / "train.py")[0] == 2
    assert before == {path: path.read_text() for path in folder.iterdir()}


METHODS = WHOLE.parent / "methods"


def test_a_method_of_another_module_stays_a_model_function(run: Run, tmp_path: Path) -> None:
    """Which class makes the object is only known when the script runs; without the shim, the class and the Estimator have marks."""
    folder = tmp_path / "keras"
    assert run("--check", METHODS)[0] == 1
    code, _, err = run("--body", "shim", "--out", folder, METHODS)
    assert code == 0
    script, module = (folder / "train.py").read_text(), (folder / "net.py").read_text()
    assert "estimator = ModelOfGraph(model_fn=model.model_fn, params={})\n" in script
    assert "    def model_fn(self, features, labels, mode, params):\n" in module
    assert '        if mode == "train":\n            data = data.repeat()\n' in module
    assert "            x = tf_slim.bias_add(x)\n" in module
    assert "the new script needs the package tf_slim" in err
    assert "tf.estimator" not in script + module


def test_a_module_of_settings_names_the_model_function(run: Run, tmp_path: Path) -> None:
    """``MODEL_FN = network.model_fn`` is the class now; an input function may make its iterator in a scope."""
    texts = {path.name: path.read_text() for path in THREE_FILES.glob("*.py")}
    texts["settings.py"] = "import network\n\nMODEL_FN = network.model_fn\n"
    texts["train.py"] = texts["train.py"].replace("from network import model_fn", "import settings")
    texts["train.py"] = texts["train.py"].replace("Estimator(model_fn)", "Estimator(settings.MODEL_FN)")
    scope = "    with tf.variable_scope('rows'):  # scope\n        iterator = rows.make_one_shot_iterator()\n        return iterator.get_next()\n"
    texts["rows.py"] = texts["rows.py"].partition("    iterator = ")[0] + scope
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert run("--out", tmp_path / "new", tmp_path / "train.py")[0] == 0
    assert (tmp_path / "new" / "settings.py").read_text().endswith("MODEL_FN = network.Model\n")
    assert "estimator = settings.MODEL_FN()\n" in (tmp_path / "new" / "train.py").read_text()
    assert "    # scope\n    return rows\n" in (tmp_path / "new" / "rows.py").read_text()


BLOCKS = "import tensorflow as tf\n\n\ndef build(x):\n    return tf.layers.dense(x, 1)  # one\n"
OF_BLOCKS = (
    "import tensorflow as tf\nfrom blocks import build\n\n\ndef model_fn(features, labels, mode):\n    net = build(features)\n"
    "    loss = tf.losses.mean_squared_error(labels, net)\n    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())\n"
    "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n\n\ntf.estimator.Estimator(model_fn)\n"
)


def test_networks_of_other_modules_come_into_the_script(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OF_BLOCKS)
    (tmp_path / "blocks.py").write_text(BLOCKS)
    assert run("--out", tmp_path / "new", tmp_path / "train.py")[0] == 0
    assert "self.dense = tf_keras.layers.Dense(units=1" in (tmp_path / "new" / "train.py").read_text()
    assert "# one" in (tmp_path / "new" / "train.py").read_text()
    (tmp_path / "blocks.py").rename(tmp_path / "elsewhere.py")
    code, _, err = run("--check", tmp_path / "train.py")
    assert code == 1
    assert "human: build: it is of another module and may make layers" in err


def test_modules_are_found_from_the_folder_in_which_python_starts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for ``python -m models.train``; what is above the repository is not the script's."""
    top = tmp_path / "repository"
    for folder in (top / ".git", top / "models" / "parts"):
        folder.mkdir(parents=True)
    script = OF_BLOCKS.replace("from blocks", "from models.parts.blocks")
    script += "from data.rows import count\n"
    (top / "models" / "train.py").write_text(script)
    (top / "models" / "parts" / "blocks.py").write_text(BLOCKS + "\n\ndef other():\n    return tf.train.get_global_step()\n")
    (top / "data").mkdir()
    (top / "data" / "rows.py").write_text("count = 1\n")
    monkeypatch.chdir(top / "models")
    code, _, err = run("--out", tmp_path / "new", "train.py")
    assert code == 0, err
    new = {str(path.relative_to(tmp_path / "new")): path.read_text() for path in (tmp_path / "new").rglob("*.py")}
    assert sorted(new) == ["data/rows.py", "models/parts/blocks.py", "models/train.py"]
    assert "self.dense = tf_keras.layers.Dense(units=1" in new["models/train.py"]
    assert "parts.blocks" not in new["models/train.py"].replace("models.parts.blocks", "")

    (tmp_path / "above.py").touch()
    (top / "other.py").write_text("import tensorflow, above\n")
    assert module_root(top / "other.py") == top
    (top / ".git").rmdir()
    assert module_root(top / "other.py") == tmp_path


def test_a_function_of_another_module_may_return_the_model_function(run: Run, tmp_path: Path) -> None:
    """Its class is made inside of that function; a helper whose body the class contains is gone."""
    (tmp_path / "models.py").write_text(
        "import tensorflow as tf\n\n\ndef network(x):\n    return tf.layers.dense(x, 1)\n\n\ndef make(rate):\n    def model_fn(features, labels, mode):\n"
        "        loss = tf.losses.mean_squared_error(labels, network(features))\n"
        "        train_op = tf.train.AdamOptimizer(rate).minimize(loss, tf.train.get_global_step())\n"
        "        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n    return model_fn\n"
    )
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\nfrom models import make\nestimator = tf.estimator.Estimator(make(0.1), 'here')\n"
    )
    code, _, err = run("--out", tmp_path / "new", tmp_path / "train.py")
    assert code == 0, err
    assert "estimator = make(0.1)('here')\n" in (tmp_path / "new" / "train.py").read_text().replace('"', "'").replace(
        "model_dir=", ""
    )
    models = (tmp_path / "new" / "models.py").read_text()
    assert "def network" not in models
    assert "self.dense = tf_keras.layers.Dense(units=1" in models
