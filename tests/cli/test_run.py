"""Whole runs of TF1 scripts on both paths: what the script sees and does, and how it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.script import run as runner
from tests.notebooks import notebook
from tests.running import estimator_bridge_command, write

PATHS = ("legacy", "modern")
DATA = Path(__file__).parents[1] / "data"
OURS = Path(runner.__file__).resolve().parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(DATA / "job_of_2017", tmp_path / "code")
    return tmp_path


@pytest.mark.parametrize("path", PATHS)
def test_a_job_with_flags(path: str, project: Path) -> None:
    script = str(Path("code") / "train.py")
    arguments = [script, "--steps=3", "--unknown=1", "rest", f"--model_dir={project / 'model'}"]
    ended = estimator_bridge_command("run", "--path", path, *arguments, cwd=project, stdin="given\n")

    assert ended.code == 7, ended.err[-3000:]
    assert ended.last_line == {
        "argv": [script, "--unknown=1", "rest"],  # tf.app.run leaves what it does not know
        "flags": [3, str(project / "model")],
        "stdin": "given\n",
        "session": [[2, 3]],
        "train": [3, False],
        "eval": [3, False],
        "infer": [3, False],
        "graph": [True, False, 2],
        "step": 3,
        "predictions": 16,
    }
    assert len(ended.out.splitlines()) == 1, "stdout is the script's"


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("path", PATHS)
def test_an_exception_in_model_fn_shows_the_scripts_frames_and_none_of_ours(path: str, project: Path) -> None:
    script = project / "code" / "train.py"

    ended = estimator_bridge_command("run", "--path", path, script, "--fail=train", cwd=project)

    assert ended.code == 1
    assert ended.err.rstrip().endswith("ValueError: no such feature")
    _, first, second = ended.err.split("Traceback (most recent call last):\n")
    assert "KeyError: 'missing'" in first
    files = [line.split('"')[1] for line in second.splitlines() if line.startswith('  File "')]
    assert files[0] == str(script)
    assert files[-2:] == [str(script)] * 2
    assert "estimator.train(input_fn, steps=FLAGS.steps)" in second
    assert not [file for file in files if Path(file).resolve().is_relative_to(OURS) and "site-packages" not in file]


@pytest.mark.usefixtures("warm_python")
def test_a_flag_that_does_not_parse_is_the_scripts_business(project: Path) -> None:
    ended = estimator_bridge_command("run", project / "code" / "train.py", "--steps=many", cwd=project)

    assert ended.code == 1
    assert ended.out == ""
    assert ended.err.splitlines()[-1].endswith("flag --steps=many: invalid literal for int() with base 10: 'many'")


@pytest.mark.usefixtures("warm_python")
def test_a_model_dir_that_cannot_be_written(project: Path) -> None:
    (project / "file").touch()
    script = project / "code" / "train.py"

    ended = estimator_bridge_command(
        "run", "--path", "modern", script, f"--model_dir={project / 'file' / 'model'}", cwd=project
    )

    assert ended.code == 2
    assert "Traceback" not in ended.err
    line = next(number for number, text in enumerate(script.read_text().splitlines(), 1) if "estimator.train(" in text)
    assert ended.err[ended.err.index("estimator-bridge:") :].splitlines() == [
        "estimator-bridge: The model_dir cannot be written.",
        "  expected: a folder for checkpoints, or a path where one can be made",
        f"  received: {project / 'file' / 'model'}: Not a directory",
        "  to do:    Choose another model_dir.",
        f"  asked by: {script}:{line}",
        "  help:     estimator-bridge explain runtime-estimator-calls-check-model-dir",
    ]


@pytest.mark.usefixtures("warm_python")
def test_a_module_with_relative_imports_that_uses_eager_execution(tmp_path: Path) -> None:
    """And has no Estimator, which the modern path says."""
    shutil.copytree(DATA / "relative_imports", tmp_path / "trainer")

    ended = estimator_bridge_command("run", "--path", "modern", "-m", "trainer.task", cwd=tmp_path)

    assert ended.out == "True 3 True trainer\n"
    assert ended.code == 2
    assert ended.err.startswith("estimator-bridge: The script called no Estimator, so nothing ran on the modern path.\n")
    assert "Use --path legacy" in ended.err


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "__init__.py", "")

    ended = estimator_bridge_command("run", "-m", "trainer.tusk", cwd=tmp_path)

    assert ended.code == 2
    assert ended.err.startswith("estimator-bridge: There is no such module.\n"), "nor do TensorFlow's warnings of our doing"
    assert "received: trainer.tusk\n" in ended.err


@pytest.mark.usefixtures("warm_python")
def test_sessions_without_an_estimator(tmp_path: Path) -> None:
    """Losses by hand: w moves half the way to x at each step, so the squared distance of 20 becomes a quarter each time."""
    script = Path(shutil.copy(DATA / "python2" / "sessions.py", tmp_path / "train.py"))
    before = script.read_bytes()

    ended = estimator_bridge_command("run", "--py2", script, tmp_path / "model", cwd=tmp_path)

    assert ended.code == 0, ended.err[-3000:]
    assert ended.last_line == {
        "sizes": [2, 1],
        "dtype": "float64",
        "session": [20.0, 5.0, 1.25],
        "monitored": [20.0, 5.0, 1.25],
        "raw": True,
        "mnist": 3,
    }
    assert (tmp_path / "model" / "model.ckpt-3.index").exists()
    assert f"{script}: Python 2, mended in memory in" in ended.err
    assert "train.py:14: numpy.float no longer exists; float is used instead" in ended.err
    assert script.read_bytes() == before


@pytest.mark.usefixtures("warm_python")
def test_a_seed_reaches_all_random_numbers_on_both_paths(tmp_path: Path) -> None:
    """Initial values that Keras chooses by default, too: no checkpoint is shared, as it is in a comparison."""
    script = DATA / "seeded.py"
    for path in PATHS:
        ended = estimator_bridge_command("run", "--path", path, script, tmp_path / path, cwd=tmp_path)
        assert ended.code == 0, ended.err[-3000:]

    legacy, modern = (tf.train.load_checkpoint(str(tmp_path / path)) for path in PATHS)
    names = legacy.get_variable_to_shape_map()
    assert {"dense/kernel", "keras_dense/kernel", "own"} < set(names)
    assert set(names) == set(modern.get_variable_to_shape_map())
    for name in names:
        np.testing.assert_array_equal(modern.get_tensor(name), legacy.get_tensor(name), err_msg=name)


def test_a_script_that_wants_tensorflow_1_reads_its_version() -> None:
    ended = estimator_bridge_command("run", "asks_version.py", cwd=DATA)
    assert ended.code == 0, ended.err
    assert ended.last_line == dict.fromkeys(("__version__", "VERSION", "version", "v1"), "1.15.5")
    assert (
        "asks_version.py:10: tf.__version__ is 1.15.5 here: the script refuses TensorFlow 2; --tf-version changes it"
        in ended.err
    )


def test_the_flag_decides_the_version() -> None:
    ended = estimator_bridge_command("run", "--path", "modern", "--tf-version", "2.3.0", "asks_version.py", cwd=DATA)
    assert ended.code == 1
    assert set(ended.last_line.values()) == {"2.3.0"}
    assert ended.err.splitlines()[-1] == "RuntimeError: TensorFlow 1 is needed"


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("path", PATHS)
def test_numbers_of_steps_that_are_no_whole_numbers(path: str) -> None:
    ended = estimator_bridge_command("run", "--path", path, "parts_of_steps.py", cwd=DATA)
    assert ended.code == 0, ended.err
    assert ended.last_line == [3, 5, 2.0], "TensorFlow 1.15.5 prints this"


def test_python2_without_the_flag(tmp_path: Path) -> None:
    script = Path(shutil.copy(DATA / "python2" / "sessions.py", tmp_path / "train.py"))
    line = next(number for number, text in enumerate(script.read_text().splitlines(), 1) if text.startswith("print "))

    ended = estimator_bridge_command("run", "train.py", cwd=tmp_path)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("estimator-bridge: The script is written for Python 2.\n")
    assert f"line {line}: print statement" in ended.err
    assert "Add --py2" in ended.err


@pytest.mark.usefixtures("warm_python")
def test_dropped_names_on_the_modern_path(tmp_path: Path) -> None:
    shutil.copy(DATA / "python2" / "dropped_names.py", tmp_path / "train.py")

    ended = estimator_bridge_command("run", "--path", "modern", "train.py", cwd=tmp_path)

    assert ended.out == "3 1 0\n"
    first, second, third = ended.err.splitlines()[:3]
    assert first.startswith("estimator-bridge: train.py:3: filter: Read again")
    assert second.endswith("train.py:3: numpy.int no longer exists; int is used instead")
    assert "The script called no Estimator" in third


@pytest.mark.usefixtures("warm_python")
def test_a_script_of_tensorflow_2_with_an_estimator(tmp_path: Path) -> None:
    ended = estimator_bridge_command("run", "--v2-behavior", DATA / "tensorflow_2.py", cwd=tmp_path)

    assert ended.code == 0, ended.err[-3000:]
    assert ended.last_line == [True, [3], False, "tensorflow", "LinearRegressorV2", True]


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("path", PATHS)
def test_a_notebook_runs_as_a_script(path: str, tmp_path: Path) -> None:
    """Its ``input_fn`` branches on a tensor, for which AutoGraph reads the source of the cell."""
    ended = estimator_bridge_command(
        "run", "--path", path, DATA / "notebooks" / "job.ipynb", f"--model_dir={tmp_path / 'model'}", cwd=tmp_path
    )
    assert (ended.code, ended.out) == (0, "16\n"), ended.err[-3000:]
    assert "left out, because only IPython can run it: %matplotlib, %tensorflow_version, !pip, %time, %%time" in ended.err
    assert (tmp_path / "model" / "model.ckpt-16.index").exists()


def test_an_error_in_a_notebook_names_cell_and_line(tmp_path: Path) -> None:
    script = DATA / "notebooks" / "fails.ipynb"
    ended = estimator_bridge_command("run", script, cwd=tmp_path)
    assert ended.code == 1
    assert ended.err.split("Traceback (most recent call last):\n")[-1].splitlines() == [
        f'  File "{script}:cell 2", line 6, in <module>',
        "    fails()",
        f'  File "{script}:cell 2", line 3, in fails',
        '    raise ValueError("in the second cell")',
        "ValueError: in the second cell",
    ]


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("train.py", b"x = 1\ndef (:\n", ("train.py", 2)),
        ("train.ipynb", notebook("x = 1", "y = 2\n\ndef (:"), ("train.ipynb:cell 2", 3)),
    ],
)
def test_a_syntax_error_is_told_before_tensorflow_loads(
    name: str, content: bytes, place: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(runner, "install", lambda: pytest.fail("TensorFlow is loaded"))
    with pytest.raises(SyntaxError) as caught:
        runner.run_legacy(runner.Script(str(tmp_path / name)))
    assert (caught.value.filename, caught.value.lineno) == (str(tmp_path / place[0]), place[1])
