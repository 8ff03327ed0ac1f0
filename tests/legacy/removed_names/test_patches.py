"""Dropped names are answered to the user's own code, with one note each; installed libraries see no change."""

from __future__ import annotations

import importlib
import math
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.legacy import warn_once
from estimator_bridge.legacy.removed_names import numpy_functions as old
from estimator_bridge.legacy.removed_names import python_functions
from estimator_bridge.legacy.removed_names.patches import answer_removed_names
from estimator_bridge.script.loading import compile_own_modules, compile_source
from tests.running import write

Run = Callable[[str], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a snippet as a user's file, with a library beside it that looks for what is gone."""
    library = tmp_path / "lib" / "site-packages"
    write(
        library / "looking.py",
        """
        import time, numpy as np
        SEEN = [hasattr(np, name) for name in ("float_", "int", "product")] + [hasattr(time, "clock")]
        try:
            import imp
            SEEN.append(True)
        except ImportError:
            SEEN.append(False)
        def asked(array):
            return hasattr(np, "float_"), hasattr(array, "tostring")
        """,
    )
    monkeypatch.syspath_prepend(str(library))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(warn_once, "_warned", set())
    modules = set(sys.modules)

    def run(source: str) -> dict[str, Any]:
        path = write(tmp_path / "script.py", source)
        names: dict[str, Any] = {"__name__": "script", "__file__": str(path)}
        with answer_removed_names(), compile_own_modules(python2=False):
            exec(compile_source(path.read_bytes(), str(path)), names)
        return names

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield run
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_numpys_names(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    names = run(
        """
        import numpy as np
        from numpy import complex_
        int_ = np.int
        again = np.int
        float_ = np.float_
        infinity = np.Inf
        product = np.product([2, 3])
        there = hasattr(np, "asscalar"), getattr(np, "nonsense", None)
        """
    )
    assert names["int_"] is names["again"] is int
    assert names["float_"] is np.float64
    assert names["complex_"] is np.complex128
    assert names["infinity"] == math.inf
    assert names["product"] == 6
    assert names["there"] == (True, None)
    said = caplog.text
    assert said.count("numpy.int no longer exists; int is used instead") == 1
    assert "script.py:4: numpy.int no longer exists" in said
    if not hasattr(np, "product"):
        assert "script.py:8: numpy.product no longer exists; prod is used instead" in said


def test_scalars_print_as_numbers_and_read_back_in(run: Run) -> None:
    names = run(
        """
        import ast, numpy as np
        results = {"loss": np.float32(0.5), "global_step": np.int64(100), "best": np.bool_(True)}
        text = str(results)
        again = ast.literal_eval(text)
        """
    )
    assert names["text"] == "{'loss': 0.5, 'global_step': 100, 'best': True}"
    assert names["again"] == {"loss": 0.5, "global_step": 100, "best": True}
    assert repr(np.float32(0.5)) == ("np.float32(0.5)" if np.__version__ >= "2" else "0.5")


def test_pythons_names(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    names = run(
        """
        import collections, fractions, inspect, itertools, os, string, sys, time, types, urllib
        from collections import Mapping
        clock = time.clock()
        pair = list(itertools.izip([1], [2]))
        gcd = fractions.gcd(12, -18), fractions.gcd(-4, 0)
        spec = inspect.getargspec(lambda a, b=1, *c, **d: a)
        table = "abc".translate(string.maketrans("ab", "xy"))
        is_mapping = isinstance({}, Mapping) and isinstance({}, collections.Mapping)
        quoted = urllib.quote("a b")
        other = sys.maxint, os.getcwdu() == os.getcwd(), types.StringType
        """
    )
    assert names["clock"] > 0
    assert names["pair"] == [(1, 2)]
    assert names["gcd"] == (-6, -4)
    assert names["spec"] == (["a", "b"], "c", "d", (1,))
    assert names["table"] == "xyc"
    assert names["is_mapping"]
    assert names["quoted"] == "a%20b"
    assert names["other"] == (sys.maxsize, True, str)
    assert "script.py:3: collections.Mapping no longer exists; Mapping is used instead" in caplog.text


def test_a_module_without_a_successor_may_be_imported_but_not_used(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    names = run("import parser, argparse\nparser = argparse.ArgumentParser()")
    assert type(names["parser"]).__name__ == "ArgumentParser"
    assert "script.py:1: the module parser no longer exists; an empty one is used instead" in caplog.text
    assert "parser" not in sys.modules
    with pytest.raises(AttributeError, match=r"parser.suite: Python no longer has the module parser. Use ast."):
        run("import parser as old\nold.suite('1')")
    with pytest.raises(ModuleNotFoundError, match="parser"):
        run("from parser import suite")
    assert run("try:\n    import parser\nexcept ImportError:\n    parser = None")["parser"] is None


def test_libraries_see_no_change(run: Run) -> None:
    import collections
    import time

    now = [hasattr(np, name) for name in ("float_", "int", "product")] + [hasattr(time, "clock"), sys.version_info < (3, 12)]
    names = run("import looking, numpy as np\nnp.float_, np.int\nasked = looking.asked(np.zeros(1))")
    assert now == names["looking"].SEEN
    assert names["asked"] == (hasattr(np, "float_"), hasattr(np.zeros(1), "tostring"))
    assert not hasattr(time, "clock")
    assert "__getattr__" not in vars(collections) or sys.version_info < (3, 10)


def test_modules_that_are_gone(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "loaded.py", "value = 1")
    names = run(
        """
        import imp, importlib, os
        import distutils.version
        from distutils.version import LooseVersion
        from distutils import util
        loaded = imp.load_source("loaded_by_imp", os.path.join(os.path.dirname(__file__), "loaded.py"))
        file, path, description = imp.find_module("loaded")
        again = imp.load_module("loaded_again", file, path, description)
        fresh = imp.new_module("fresh")
        by_name = importlib.import_module("imp")
        order = LooseVersion("1.2") < LooseVersion("1.10"), util.strtobool("yes")
        """
    )
    assert names["loaded"].value == names["again"].value == 1
    assert isinstance(names["fresh"], types.ModuleType)
    assert names["by_name"] is names["imp"]
    assert names["order"] == (True, 1)
    if sys.version_info >= (3, 12):
        assert "script.py:2: the module imp no longer exists" in caplog.text
        assert "imp" not in sys.modules


def test_a_module_that_never_was_stays_an_error(run: Run) -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere'"):
        run("import nowhere")
    with pytest.raises(ModuleNotFoundError):
        run("import distutils.nowhere")


def test_methods_that_arrays_lost(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "beside.py", "def raw(array):\n    return array.tostring()\n")
    names = run(
        """
        import numpy as np, threading, unittest
        import beside
        raw = beside.raw(np.array([1, 2], np.uint8))
        a = np.zeros((2, 2)); a.itemset(3, 5.0); a.itemset((0, 1), 2.0); a.itemset(0, 1, 3.0)
        spread = np.array([3, 9]).ptp()
        swapped = np.array([1], np.int16).newbyteorder()[0]
        class Own:
            def tostring(self): return "own"
        own = Own().tostring()
        try:
            [].tostring()
        except AttributeError as error:
            missing = str(error)
        alive = threading.current_thread().isAlive()
        unittest.TestCase().assertEquals(1, 1)
        """
    )
    assert names["raw"] == b"\x01\x02"
    assert names["a"].tolist() == [[0, 3], [0, 5]]
    assert names["spread"] == 6
    assert names["swapped"] == 256
    assert names["own"] == "own"
    assert names["missing"] == "'list' object has no attribute 'tostring'"
    assert names["alive"] is True
    if not hasattr(np.ndarray, "tostring"):
        assert "beside.py:2: .tostring() no longer exists in ndarray, but works here" in caplog.text


def cases() -> list[tuple[str, tuple[Any, ...]]]:
    """Calls of the functions written anew."""
    arrays = np.array([[3, 1], [2, 5]]), [1, 2.5]
    return [
        ("in1d", ([[1, 2], [3, 4]], [2, 3])),
        ("in1d", ([1, 2], [2], True, True)),
        ("msort", (arrays[0],)),
        ("asfarray", ([1, 2],)),
        ("asfarray", ([1, 2], np.float32)),
        ("asfarray", ([1, 2], np.int32)),
        ("find_common_type", ([], [np.int64, np.float32, complex])),
        ("find_common_type", ([np.float32], [np.int64, np.float64])),
        ("find_common_type", (["f4", "f4", "i4"], ["c8"])),
        ("find_common_type", ([np.float32], [complex])),
        ("find_common_type", ([np.int64], [np.float32])),
        ("find_common_type", ([np.int8, np.uint8], [])),
        ("find_common_type", ([np.bool_], [np.int8])),
        ("issctype", (np.int32,)),
        ("issctype", (list,)),
        ("issctype", (1.1,)),
        ("issctype", (np.dtype("str"),)),
        ("obj2sctype", (np.array([1j]),)),
        ("obj2sctype", (dict,)),
        ("obj2sctype", ("string",)),
        ("obj2sctype", (1, list)),
        ("issubsctype", ("S8", str)),
        ("issubsctype", (np.array([1]), np.integer)),
        ("maximum_sctype", (np.uint8,)),
        ("maximum_sctype", ("f2",)),
        ("maximum_sctype", (str,)),
        ("sctype2char", (np.int16,)),
        ("sctype2char", (list,)),
    ]


@pytest.mark.skipif(not hasattr(np, "find_common_type"), reason="NumPy 1.26 is the oracle")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "args"), cases())
def test_functions_written_anew_do_what_numpys_did(name: str, args: tuple[Any, ...]) -> None:
    expected, received = getattr(np, name)(*args), getattr(old, name)(*args)
    np.testing.assert_array_equal(received, expected)
    assert getattr(received, "dtype", None) == getattr(expected, "dtype", None)
    assert type(received) is type(expected)


@pytest.mark.skipif(not hasattr(np, "find_common_type"), reason="NumPy 1.26 is the oracle")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tables_written_anew_hold_what_numpys_did() -> None:
    assert old.sctypes == np.sctypes
    assert old.nbytes[np.float32] == 4
    assert old.nbytes["f8"] == np.nbytes["f8"]
    assert old.cast["int32"](2.7) == np.cast["int32"](2.7) == 2


def test_functions_written_anew_by_hand() -> None:
    assert old.in1d([[1, 2], [3, 4]], [2, 3]).tolist() == [False, True, True, False]
    assert old.msort([[3, 1], [2, 5]]).tolist() == [[2, 1], [3, 5]]
    assert old.asfarray([1]).dtype == np.float64
    assert old.asscalar(np.array([24])) == 24
    assert old.cast[np.float32]([1, 2]).dtype == np.float32
    assert old.find_common_type([np.float32], [np.float64]) == np.float32
    assert math.copysign(1, old.NZERO) == -1


def test_records_from_text(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", "A,B\n1,2.5\n3,4.5\n")
    records = old.recfromcsv(path)
    assert records.a.tolist() == [1, 3]
    assert records.b.tolist() == [2.5, 4.5]


def test_getargspec_refuses_what_it_cannot_say() -> None:
    def function(*, keyword: int) -> None: ...

    with pytest.raises(ValueError, match="keyword-only"):
        python_functions.getargspec(function)


def test_versions_and_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from estimator_bridge.legacy.removed_names import pkg_resources

    write(tmp_path / "withdata" / "__init__.py", "")
    write(tmp_path / "withdata" / "words.txt", "a b")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    assert pkg_resources.resource_string("withdata", "words.txt") == b"a b"
    assert pkg_resources.resource_filename("withdata", "words.txt") == str(tmp_path / "withdata" / "words.txt")
    assert pkg_resources.get_distribution("numpy").version == np.__version__
    assert pkg_resources.parse_version("1.10") > pkg_resources.parse_version("1.9")
    with pytest.raises(pkg_resources.VersionConflict):
        pkg_resources.require("numpy<1")
    with pytest.raises(pkg_resources.DistributionNotFound):
        pkg_resources.get_distribution("nowhere-at-all")
