"""Judging whole files and trees."""

from __future__ import annotations

import errno
import os
import random
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.compat.source.checking import find_files
from estimator_bridge.compat.source.reading import check_path
from estimator_bridge.compat.source.surface import installed_version, load_surface
from estimator_bridge.compat.source.verdicts import Kind, Verdict
from estimator_bridge.errors import BridgeError
from tests.compat.source.reading import findings, judge, verdicts

SCRIPT = """
    import numpy as np
    import tensorflow as tf
    from tensorflow.contrib import layers, eager, nowhere
    from tensorflow.examples.tutorials.mnist import input_data
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.contrib.layers.fully_connected(x, 3)
    tf.contrib.nowhere.nothing()
    np.zeros(3, np.float)
    tf.train.Nothing
    tf.summary.create_file_writer("x")
    try:
        tf.gone
    except AttributeError:
        pass
    from tensorflow.python.ops import *
    import imp, asyncore
    import time
    time.clock()
    image.tostring()
    isinstance(x, np.bool)
"""


def test_a_script() -> None:
    assert verdicts(SCRIPT) == [
        (2, "tensorflow", "runs"),
        (3, "tf.contrib.eager", "mended"),
        (3, "tf.contrib.layers", "mended"),
        (3, "tf.contrib.nowhere", "human"),
        (4, "tf.examples.tutorials.mnist.input_data", "mended"),
        (5, "tf.placeholder", "runs"),
        (5, "tf.float32", "runs"),
        (6, "tf.contrib.layers.fully_connected", "mended"),
        (7, "tf.contrib.nowhere.nothing", "human"),
        (8, "np.float", "mended"),
        (9, "tf.train.Nothing", "human"),
        (10, "tf.summary.create_file_writer", "human"),
        (12, "tf.gone", "runs"),
        (15, "from tensorflow.python.ops import *", "human"),
        (16, "asyncore", "mended"),
        (16, "imp", "mended"),
        (18, "time.clock", "mended"),
        (19, ".tostring", "mended"),
        (20, "np.bool", "human"),
    ]


def test_findings_say_what_to_do() -> None:
    messages = {one.symbol: one.message for one in findings(SCRIPT)}
    assert "Use something else than tf.contrib.eager." in messages["tf.contrib.eager"]
    assert "Use something else than tf.contrib.nowhere." in messages["tf.contrib.nowhere"]
    assert "tf.compat.v2.summary.create_file_writer" in messages["tf.summary.create_file_writer"]
    assert "run uses float instead" in messages["np.float"]
    assert "pyasyncore" in messages["asyncore"]
    assert "Write bool" in messages["np.bool"]


def test_a_package_that_refuses() -> None:
    """Its import runs, reads of its names do not, and the file handles what it catches."""
    source = """
        import tensorflow.contrib.eager as tfe
        tfe.Network
        from tensorflow.contrib.eager import Network
        try:
            from tensorflow.contrib import eager
        except ImportError:
            eager = None
        """
    assert verdicts(source, Kind.CONTRIB) == [
        (1, "tf.contrib.eager", "mended"),
        (2, "tf.contrib.eager.Network", "human"),
        (3, "tf.contrib.eager.Network", "human"),
        (5, "tf.contrib.eager", "runs"),
    ]


def test_calls_of_ipython_need_a_human_where_nothing_tests_for_it() -> None:
    assert verdicts("get_ipython().run_line_magic('matplotlib', 'inline')") == [(1, "get_ipython", "human")]
    assert verdicts("if 'ipykernel' in names:\n    get_ipython()") == [(2, "get_ipython", "look")]
    assert verdicts("try:\n    get_ipython()\nexcept NameError:\n    pass") == []
    assert verdicts("from IPython import get_ipython\nget_ipython()") == []


def test_keras_by_itself() -> None:
    expected = [] if load_surface(installed_version()).version.startswith("2.15.") else [(1, "keras.layers.Dense", "mended")]
    assert verdicts("from keras.layers import Dense\nDense(3)") == expected


def test_packages_named_after_tensorflow_are_others() -> None:
    assert verdicts("import tensorflow_probability as tfp\nimport tensorflow_hub as hub\ntfp.nowhere\nhub.Module") == []


def test_a_class_that_defines_a_method_itself_is_left_alone() -> None:
    assert verdicts("class A:\n    def tostring(self): pass\nA().tostring()") == []


def test_a_removed_module_is_refused_where_it_is_used() -> None:
    source = "import parser, argparse\nparser = argparse.ArgumentParser()\nparser.parse_args()"
    assert verdicts(source) == [(1, "parser", "mended")]
    assert verdicts("import parser as old\nold.suite('1')") == [(1, "parser", "mended"), (2, "parser", "human")]
    assert verdicts("from parser import suite") == [(1, "parser", "human")]
    assert verdicts("try:\n    import parser\nexcept ImportError:\n    parser = None") == [(2, "parser", "runs")]


def test_a_file_that_is_not_python() -> None:
    report = judge().content(b"x = 1\ndef (:\n", "x.py")
    assert report.unreadable
    assert [(one.line, one.column, one.kind, one.verdict) for one in report.findings] == [(2, 5, Kind.SYNTAX, Verdict.HUMAN)]


def test_python2_is_judged_whole() -> None:
    report = judge().content(b"import tensorflow as tf\nprint 'a'\ntf.nowhere\n", "x.py")
    assert not report.unreadable
    assert [(one.line, one.symbol) for one in report.findings] == [(1, "tensorflow"), (2, "print statement"), (3, "tf.nowhere")]


def test_which_files(tmp_path: Path) -> None:
    for name in ("a.py", "b/c.py", "b/d.txt", ".hidden/e.py", "venv/lib/site-packages/f.py", "__pycache__/g.py", "script"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found = find_files([str(tmp_path), str(tmp_path / "a.py"), str(tmp_path / "script")])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["a.py", "b/c.py", "script"]


def test_no_files(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="No Python file"):
        find_files([str(tmp_path)])
    with pytest.raises(BridgeError, match="no such file"):
        find_files([str(tmp_path / "nowhere")])
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(BridgeError, match="cannot be read"):
        judge().file(tmp_path / "folder.py")


def test_a_folder_that_cannot_be_read_is_told_unless_it_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files would be missing from a green result; a stand-in refuses, since root may read everything."""
    for folder in ("open", "closed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").touch()
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(BridgeError, match=r"closed: Permission denied"):
        find_files([str(tmp_path)])
    assert find_files([str(tmp_path)], ["closed"]) == [tmp_path / "open" / "train.py"]


@settings(max_examples=150)
@given(st.text())
def test_no_text_crashes_it(text: str) -> None:
    judge().content(text.encode("utf-8", "surrogatepass"), "x.py")


@settings(max_examples=60)
@given(st.binary())
def test_no_bytes_crash_it(content: bytes) -> None:
    judge().content(content, "x.py")


LIBRARY = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_no_shuffled_source_crashes_it(seed: int) -> None:
    """Uses lines of real source in random order: most do not parse, and some parse and make no sense."""
    draw = random.Random(seed)
    lines = draw.choice(LIBRARY).read_bytes().splitlines()[:400]
    pieces = [line.strip() if draw.random() < 0.7 else line for line in draw.sample(lines, min(len(lines), 12))]
    judge().content(b"\n".join(pieces), "x.py")


def test_its_speed() -> None:
    """Judges 10,000 lines at a rate of at least 100,000 in 30 seconds of CPU time."""
    judge().content(b"", "x.py")
    chosen, lines = [], 0
    for path in LIBRARY:
        chosen.append(path)
        lines += path.read_bytes().count(b"\n")
        if lines > 10_000:
            break
    started = time.process_time()
    for path in chosen:
        judge().file(path)
    assert (time.process_time() - started) / lines * 100_000 < 30


def test_a_path_with_a_nul_is_one_message() -> None:
    """A file of a fleet may spell one."""
    with pytest.raises(BridgeError, match=r"received: train\\0\.py"):
        check_path(Path("train\0.py"))
