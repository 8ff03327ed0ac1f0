"""The statements in which a name of ``tf.contrib`` is refused; TensorFlow is not loaded."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.legacy.contrib.namespace import Namespace, imported
from estimator_bridge.legacy.contrib.refusal import ContribAttributeError, ContribError, ContribImportError

CONTRIB = Namespace()


def run(folder: Path, source: str) -> dict[str, Any]:
    """Executes a file and returns its names."""
    file = folder / "script.py"
    file.write_text(source, encoding="utf-8")
    return execute(source, str(file))


def execute(source: str, file: str) -> dict[str, Any]:
    """Executes code that imports ``tf.contrib``, which it also finds as ``contrib``."""
    names: dict[str, Any] = {"__builtins__": {**vars(builtins), "__import__": import_}, "contrib": CONTRIB}
    exec(compile(source, file, "exec"), names)
    return names


def import_(name: str, _globals: Any, _locals: Any, fromlist: Sequence[str] | None, _level: int) -> Any:
    module = imported(CONTRIB, name.split(".")[1:], fromlist or (), sys._getframe(1))
    return module if fromlist else CONTRIB


IMPORTED = [
    "import contrib.tensorrt",
    "import contrib.tensorrt as trt",
    "from contrib import tensorrt as trt",
    "from contrib import tensorrt, eager, bayesflow",
    "from contrib.tensorrt.python import trt_convert",
    "import contrib.eager.python.tfe as tfe",
    "tfb = contrib.bayesflow",
    "def build():\n    import contrib.tensorrt as trt\n    return trt\nbuild()",
    "try:\n    import contrib.tensorrt as trt\nexcept KeyError:\n    pass",
    "try:\n    from contrib import eager\nexcept AttributeError:\n    pass",
    "try:\n    import contrib.tensorrt as trt\nfinally:\n    pass",
    "try:\n    def build():\n        import contrib.tensorrt\nexcept ImportError:\n    pass\nbuild()",
    "try:\n    raise ImportError\nexcept ImportError:\n    import contrib.tensorrt as trt",
]


@pytest.mark.parametrize("source", IMPORTED)
def test_packages_and_files_of_tensorflow_1_can_be_imported(source: str, tmp_path: Path) -> None:
    run(tmp_path, source)


# Statements that use an import, each with the symbol and the line that the error names.
USES = [
    ("import contrib.tensorrt as trt\n\ntrt.create_inference_graph()", "tensorrt.create_inference_graph", 3),
    ("import contrib.tensorrt\ncontrib.tensorrt.create_inference_graph()", "tensorrt.create_inference_graph", 2),
    ("from contrib.tensorrt.python import trt_convert as t\nt.convert()", "tensorrt.python.trt_convert.convert", 2),
    ("from contrib import eager as tfe\ntfe.metrics.Mean()", "eager.metrics.Mean", 2),
    ("tfd = contrib.distributions\nclass A(tfd.Logistic): pass", "distributions.Logistic", 2),
    ("contrib.eager.metrics", "eager.metrics", 1),
    ("from contrib import eager\ngetattr(eager, 'metrics')", "eager.metrics", 2),
    ("x = 1\ngetattr(contrib, 'eager')", "eager", 2),
    ("contrib.nowhere.at.all", "nowhere.at.all", 1),
    ("contrib.layers.python.nowhere", "layers.python.nowhere", 1),
]


@pytest.mark.parametrize(("source", "symbol", "line"), USES)
def test_their_use_is_refused(source: str, symbol: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(ContribAttributeError) as raised:
        run(tmp_path, source)

    assert f"received: tf.contrib.{symbol} at {tmp_path / 'script.py'}:{line}\n" in str(raised.value)


NAMES = [
    ("from contrib.eager import Network", "eager.Network"),
    ("from contrib.eager import *", "eager.*"),
    ("from contrib.tensorrt.python.trt_convert import convert", "tensorrt.python.trt_convert.convert"),
    ("from contrib import nowhere", "nowhere"),
    ("import contrib.nowhere", "nowhere"),
    ("import contrib.eager.nowhere", "eager.nowhere"),
    ("from contrib.eager.nowhere import x", "eager.nowhere.x"),
]


@pytest.mark.parametrize(("source", "symbol"), NAMES)
def test_names_and_unknown_packages_are_refused_where_they_are_imported(source: str, symbol: str, tmp_path: Path) -> None:
    with pytest.raises(ContribImportError) as raised:
        run(tmp_path, source)

    assert f"received: tf.contrib.{symbol} at {tmp_path / 'script.py'}:1\n" in str(raised.value)


def test_a_star_import_says_that_it_brings_only_offered_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Any other name is a NameError later, which does not mention contrib."""
    assert "layers" in run(tmp_path, "\nfrom contrib import *")
    said = "import * takes only the restored names of tf.contrib; a name that is missing later is not restored"
    assert caplog.messages == [f"{tmp_path / 'script.py'}:2: {said}"]


LOOKS = [
    "try:\n    from contrib import tensorrt\nexcept ImportError:\n    other = True",
    "try:\n    import contrib.tensorrt as trt\nexcept ModuleNotFoundError:\n    other = True",
    "try:\n    import contrib.tensorrt\nexcept (ImportError, AttributeError):\n    other = True",
    "try:\n    from contrib.tensorrt.python import trt_convert\nexcept Exception:\n    other = True",
    "try:\n    import contrib.tensorrt\nexcept:\n    other = True",
    "try:\n    from contrib.eager import Network\nexcept ModuleNotFoundError:\n    other = True",
    "try:\n    if True:\n        for _ in [1]:\n            import contrib.eager\nexcept ImportError:\n    other = True",
    "try:\n    tfe = contrib.eager\nexcept AttributeError:\n    other = True",
    "if not hasattr(contrib, 'eager'):\n    other = True",
    "other = getattr(contrib, 'eager', True)",
    "from contrib import eager\nother = not hasattr(contrib, 'eager')",
]


@pytest.mark.parametrize("source", LOOKS)
def test_a_script_that_checks_first_takes_its_other_branch(source: str, tmp_path: Path) -> None:
    assert run(tmp_path, source)["other"]


def test_code_without_a_file_imports_as_before() -> None:
    names = execute("try:\n    import contrib.tensorrt as trt\nexcept ImportError:\n    trt = None", "<string>")

    assert names["trt"].__name__ == "tensorflow.contrib.tensorrt"


def test_a_name_that_never_existed_is_not_called_removed(tmp_path: Path) -> None:
    with pytest.raises(ContribImportError, match=r"There is no tf\.contrib\.nowhere: TensorFlow 1\.15 had none\."):
        run(tmp_path, "import contrib.nowhere.at.all")


def test_one_error_is_both() -> None:
    assert issubclass(ContribError, Exception)
    assert issubclass(ContribAttributeError, AttributeError)
    assert issubclass(ContribImportError, ModuleNotFoundError)
