"""Scripts written for Python 2: told before the run, and mended in memory; Python 2.7 recorded what the program prints."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy import warn_once
from estimator_bridge.legacy.removed_names.patches import answer_removed_names
from estimator_bridge.script.loading import compile_source
from estimator_bridge.script.python2_arithmetic import divide, divide_in_place
from estimator_bridge.script.run import Script, run_as_main
from estimator_bridge.script.source_warnings import script_sources, warn_about_sources
from tests.running import write

TESTS = Path(__file__).parents[1]
PROGRAM = TESTS / "data" / "python2" / "program.py"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warn_once, "_warned", set())


def test_the_program_prints_what_it_prints_under_python2(capsys: pytest.CaptureFixture[str]) -> None:
    before = PROGRAM.read_bytes()
    with answer_removed_names():
        run_as_main(Script(str(PROGRAM), python2=True))
    assert capsys.readouterr().out == (TESTS / "golden" / "python2.txt").read_text()
    assert PROGRAM.read_bytes() == before


def executed(source: str, **names: Any) -> SimpleNamespace:
    exec(compile_source(source.encode(), "snippet.py", python2=True), names)
    return SimpleNamespace(**names)


def test_what_is_divided_in_place_is_computed_once() -> None:
    calls: list[str] = []

    def called(value: Any) -> Any:
        calls.append("called")
        return value

    box = SimpleNamespace(size=7)
    sizes, array = [9, 9], np.array([3, 5])
    ran = executed(
        "same = array\narray /= 2\ncalled(box).size /= 2\ncalled(sizes)[called(1)] /= 2\nview = array[0:1]\narray[0:1] /= 1\nx = 7\nx /= 2.0\n",
        called=called,
        box=box,
        sizes=sizes,
        array=array,
    )
    assert ran.same is ran.array is array
    assert array.tolist() == [1, 2]
    assert (box.size, sizes, ran.x) == (3, [9, 4], 3.5)
    assert len(calls) == 3


def test_true_division_is_left_alone() -> None:
    assert executed("from __future__ import division\nx = 7 / 2\nprint 'a'").x == 3.5


def test_what_is_whole() -> None:
    assert divide(np.int32(7), 2) == 3
    assert divide(np.array([7, -7]), 2).tolist() == [3, -4]
    assert divide(np.array([7]), 2.0).tolist() == [3.5]
    assert divide(True, 2) == 0
    assert divide_in_place(np.array([7.0]), 2).tolist() == [3.5]
    assert isinstance(divide(7, 2), int)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        whole, real = tf.constant([7, -7]), tf.constant(7.0)
        quotients = session.run([divide(whole, 2), divide(20, whole), divide(real, 2.0)])
    assert [quotient.tolist() for quotient in quotients] == [[3, -4], [2, -3], 3.5]
    assert divide(tf.compat.v1.Dimension(7), 2) == tf.compat.v1.Dimension(3)


def test_a_traceback_names_the_files_own_line(tmp_path: Path) -> None:
    script = write(tmp_path / "script.py", "import urllib2\nfrom urllib2 import urlopen, quote\nprint 'x'\nx = 1 / 0\n")
    with pytest.raises(ZeroDivisionError) as raised:
        run_as_main(Script(str(script), python2=True))
    entry = next(entry for entry in raised.traceback if str(entry.path) == str(script))
    assert entry.lineno + 1 == 4


def test_modules_beside_it_are_mended_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "project" / "helper.py", "half = 7 / 2\nprint 'helper', half\n")
    write(tmp_path / "project" / "package" / "__init__.py", "import beside\n")
    write(tmp_path / "project" / "package" / "beside.py", "print 'beside'\n")
    script = write(tmp_path / "project" / "script.py", "import helper, package\nprint helper.half\n")
    try:
        run_as_main(Script(str(script), python2=True))
    finally:
        for name in ("helper", "package", "package.beside"):
            sys.modules.pop(name, None)
    assert capsys.readouterr().out == "helper 3\nbeside\n3\n"
    assert not list((tmp_path / "project").rglob("*.pyc")), "what was mended is nowhere kept"


def test_what_a_dataset_maps_by_is_mended_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AutoGraph would read it from the file, where 7 / 2 is 3.5 by now."""
    source = """
        import tensorflow as tf
        sizes = []
        def scaled(x):
            sizes.append(7 / 2)
            return x
        tf.data.Dataset.range(2).map(scaled)
        print sizes
    """
    run_as_main(Script(str(write(tmp_path / "train.py", source)), python2=True))
    assert capsys.readouterr().out == "[3]\n"


def test_syntax_is_refused_with_its_lines_and_the_flag(tmp_path: Path) -> None:
    script = write(tmp_path / "script.py", "import helper\n")
    write(tmp_path / "helper.py", "x = 1\nprint x\nif x <> 2:\n    pass\n")
    with pytest.raises(BridgeError) as raised:
        warn_about_sources(script_sources(str(script), is_module=False), mended=False)
    said = str(raised.value)
    assert "helper.py: line 2: print statement, line 3: <>" in said
    assert "Add --py2" in said
    assert raised.value.exit_code == 2


def test_what_goes_wrong_in_silence_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = write(
        tmp_path / "script.py",
        """
        import helper
        hidden = map(int, "1,2".split(","))
        def model_fn(features):
            for units in hidden: pass
            return unicode(features), unicode(1)
        """,
    )
    write(tmp_path / "helper.py", "sizes = [x for x in range(len('abc') / 2)]\n")
    warn_about_sources(script_sources(str(script), is_module=False), mended=False)
    lines = caplog.messages
    assert [line.split(": ")[:2] for line in lines] == [
        [f"{script}:5", "map"],
        [f"{script}:6", "unicode"],
        [f"{tmp_path / 'helper.py'}:1", "/"],
    ]
    assert "empty from the function's second call on" in lines[0]
    assert lines[1].endswith("(also on line 6)")


def test_under_the_flag_one_line_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = write(tmp_path / "script.py", "print 1\nxrange(3)\n")
    warn_about_sources(script_sources(str(script), is_module=False), mended=True)
    assert caplog.messages == [f"{script}: Python 2, mended in memory in 2 places"]


def test_a_script_that_is_not_what_it_claims_is_named_before_it_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = "import tensorflow as tf\noptions = tf.GPUOptions(visible_device_list='0,1')\n"
    script = write(tmp_path / "script.py", source)
    warn_about_sources(script_sources(str(script), is_module=False), mended=False)
    (line,) = caplog.messages
    assert line.startswith(f"{script}:2: visible_device_list: Several GPUs become visible, and only the first trains")

    caplog.clear()
    write(script, source + "strategy = tf.distribute.MirroredStrategy()\n")
    warn_about_sources(script_sources(str(script), is_module=False), mended=False)
    assert caplog.messages == []


def test_a_module_and_what_it_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "trainer" / "__init__.py", "")
    write(tmp_path / "trainer" / "task.py", "from .names import x\nfrom trainer import model\n")
    write(tmp_path / "trainer" / "names.py", "x = 1\n")
    write(tmp_path / "trainer" / "model.py", "exec 'x'\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BridgeError, match=r"model\.py: line 1: exec statement"):
        warn_about_sources(script_sources("trainer.task", is_module=True), mended=False)


def test_nothing_is_said_of_python3(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = write(tmp_path / "script.py", "for x in map(int, '12'): print(x / 2)\nimport nowhere\n")
    warn_about_sources(script_sources(str(script), is_module=False), mended=False)
    warn_about_sources(script_sources("nowhere.py", is_module=False), mended=False)
    broken = write(tmp_path / "broken.py", "def (:\n")
    warn_about_sources(script_sources(str(broken), is_module=False), mended=False)
    assert caplog.messages == []


def test_neither_python3_nor_python2(tmp_path: Path) -> None:
    script = write(tmp_path / "script.py", "def (:\n")
    with pytest.raises(SyntaxError):
        run_as_main(Script(str(script), python2=True))
