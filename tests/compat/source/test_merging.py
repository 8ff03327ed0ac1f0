"""Functions of other modules that make a network come into the script; all else stays where it is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from estimator_bridge.compat.source.merging import Merged, Modules, merge_all

ROOT = Path("/project")
SCRIPT = """import tensorflow as tf
from net.blocks import build, WIDTH  # the network
from net import heads as H


def model_fn(features, labels, mode):
    net = build(features, WIDTH)
    logits = H.logits(net, 3)
    return tf.estimator.EstimatorSpec(mode, predictions=logits)
"""
BLOCKS = """import tensorflow as tf
from . import sizes

WIDTH = 6
_RATE = 0.3


# builds
def build(x, units):
    return tf.layers.dropout(tf.layers.dense(x, units + sizes.MORE), _RATE)  # wide


def other(x):
    return x * WIDTH
"""
HEADS = """import tensorflow as tf


def logits(x, n):
    return tf.layers.dense(x, n)
"""
FILES = {
    "train.py": SCRIPT,
    "net/__init__.py": "",
    "net/blocks.py": BLOCKS,
    "net/heads.py": HEADS,
    "net/sizes.py": "MORE = 1\n",
}


def merged(files: Mapping[str, str]) -> dict[str, Merged]:
    """Returns the files that change, by their names."""
    modules = Modules({ROOT / name: text for name, text in files.items()}, ROOT)
    return {str(path.relative_to(ROOT)): one for path, one in merge_all(modules).items()}


def test_a_script_gets_the_functions_that_make_layers() -> None:
    found = merged(FILES)["train.py"]
    lines = [line for line in found.text.split("\n") if line]
    assert lines[:6] == [
        "import tensorflow as tf",
        "from net.blocks import WIDTH",
        "# the network",
        "from net import heads as H",
        "from net import sizes",
        "from net.blocks import _RATE",
    ]
    assert "def build(x, units):" in lines
    assert "def heads_logits(x, n):" in lines  # logits is a variable of the model function
    assert "    logits = heads_logits(net, 3)" in lines
    assert "    return tf.layers.dropout(tf.layers.dense(x, units + sizes.MORE), _RATE)  # wide" in lines


def test_each_line_has_its_number_in_the_old_script() -> None:
    found = merged(FILES)["train.py"]
    old = SCRIPT.split("\n")
    for text, number in zip(found.text.split("\n"), found.lines, strict=True):
        if text.startswith(("def model_fn", "    net =")):
            assert old[number - 1] == text


def test_a_module_keeps_what_others_need() -> None:
    rest = merged(FILES)["net/blocks.py"].text
    assert "def build" not in rest
    assert "def other" in rest
    assert "# builds" in rest
    user = "from net.blocks import build\nprint(build)\n"
    assert "net/blocks.py" not in merged({**FILES, "another.py": user})


def test_functions_without_layers_stay_in_their_modules() -> None:
    assert merged({"train.py": SCRIPT, "net/__init__.py": "", "net/blocks.py": "def build(x, n): return x\nWIDTH = 1\n"}) == {}


def test_imports_of_everything_are_followed() -> None:
    script = SCRIPT.replace("from net.blocks import build, WIDTH  # the network", "from net.blocks import *")
    assert "def build(x, units):" in merged({**FILES, "train.py": script})["train.py"].text


def test_what_an_import_of_everything_gives_to_code_that_moves_is_imported() -> None:
    """A function that makes no layers, and a constant, stay in their module."""
    blocks = BLOCKS.replace("from . import sizes", "from .sizes import *").replace(
        "sizes.MORE), _RATE)", "twice(MORE)), _RATE)"
    )
    script = merged(
        {
            **FILES,
            "net/blocks.py": blocks,
            "net/sizes.py": "import tensorflow as tf\n\nMORE = 1\n\n\ndef twice(x):\n    return 2 * x\n",
        }
    )["train.py"].text
    assert "from net.sizes import twice\n" in script
    assert "from net.sizes import MORE\n" in script


def test_an_import_of_which_nothing_is_known_may_make_layers() -> None:
    modules = Modules({ROOT / name: text for name, text in FILES.items()}, ROOT)
    path = ROOT / "train.py"
    unknown = (
        "net.blocks.other",
        "net.blocks.build",
        "elsewhere.network",
        "tensorflow_hub.Module",
        "numpy.sum",
        "os.path.join",
    )
    assert [modules.may_make_layers(path, name) for name in unknown] == [False, True, True, True, False, False]


def test_a_function_that_imports_by_its_modules_place_stays() -> None:
    blocks = BLOCKS.replace("def build(x, units):\n", "def build(x, units):\n    from . import sizes\n\n")
    assert "def build" not in merged({**FILES, "net/blocks.py": blocks})["train.py"].text


def test_a_module_may_have_the_name_of_another_one_in_the_script() -> None:
    """What comes along is named by itself, not below the module that the script calls otherwise."""
    script = "from net import sizes as heads\n" + SCRIPT.replace(
        "from net import heads as H\n", "from net.more import answer\n"
    )
    script = script.replace("H.logits(net, 3)", "answer(net, heads.MORE)")
    more = "from . import heads\n\n\ndef answer(x, n):\n    return heads.logits(x, n)\n"
    found = merged({**FILES, "train.py": script, "net/more.py": more})["train.py"]
    assert "return heads_logits(x, n)" in found.text
    assert "more_heads" not in found.text


@pytest.mark.parametrize("package", [{"net/__init__.py": "def doubled(x):\n    return 2 * x\n"}, {}])
def test_a_name_of_the_package_that_a_module_lies_in(package: dict[str, str]) -> None:
    """It is imported from the package; one that is nowhere, as the module asks for it."""
    blocks = "from . import doubled\n" + BLOCKS.replace("units + sizes.MORE", "doubled(units + sizes.MORE)")
    others = {name: text for name, text in FILES.items() if name != "net/__init__.py"}
    found = merged({**others, **package, "net/blocks.py": blocks})["train.py"]
    assert "def build(x, units):" in found.text
    assert f"from {'net' if package else '.'} import doubled" in found.text.split("\n")
    ast.parse(found.text)


def test_a_module_for_tensorflow_may_have_its_name() -> None:
    """A package with a folder ``tensorflow`` means TensorFlow by that name, and what it gives the script has no name of ``__init__``."""
    given = "import tensorflow as tf\nfrom tensorflow import keras\n\n\ndef more(x):\n    return tf.layers.dense(keras.backend.abs(x), 3)\n"
    files = {"net/__init__.py": "", "net/tensorflow/__init__.py": given}
    script = SCRIPT.replace("from net.blocks import build, WIDTH", "import net.tensorflow as net_tf").replace(
        "build(features, WIDTH)", "net_tf.more(more)"
    )
    found = merged({**files, "train.py": script.replace("    net =", "    more = features\n    net =")})["train.py"]
    assert "from tensorflow import keras" in found.text
    assert "    net = tensorflow_more(more)" in found.text


def test_a_function_that_adds_penalties_comes_along() -> None:
    """Left in its module, nothing would say that the loss misses them."""
    blocks = BLOCKS.replace("return x * WIDTH", "tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, x)")
    script = SCRIPT.replace("build, WIDTH", "build, other, WIDTH").replace("    logits", "    other(net)\n    logits")
    assert "def other(x)" in merged({**FILES, "net/blocks.py": blocks, "train.py": script})["train.py"].text


def test_what_a_package_gives_on_stays_in_its_module() -> None:
    files = {**FILES, "net/__init__.py": "from .blocks import build\n"}
    found = merged({**files, "train.py": SCRIPT.replace("from net.blocks import build, WIDTH", "from net import build, WIDTH")})
    assert "def build(x, units):" in found["train.py"].text
    assert "net/blocks.py" not in found


@pytest.mark.parametrize("place", ["fm.py", "net/fm.py"])
def test_a_script_in_a_folder_that_no_import_can_name(place: str) -> None:
    """It imports its modules by names from ``my-sdk/src``, and goes on to do so."""
    files = {f"my-sdk/src/{name}": text for name, text in FILES.items() if name != "train.py"}
    files["my-sdk/src/net/blocks.py"] = BLOCKS.replace("from . import", "from net import")
    found = merged({**files, f"my-sdk/src/{place}": SCRIPT, "other.py": ""})[f"my-sdk/src/{place}"]
    lines = found.text.split("\n")
    assert "from net import sizes" in lines
    assert not any("my-sdk" in line or ".." in line for line in lines)
    ast.parse(found.text)
    stars = SCRIPT.replace("from net.blocks import build, WIDTH", "from net.blocks import *").replace(
        "from net import heads as H", "import net.heads as H"
    )
    assert "from net import sizes" in merged({**files, f"my-sdk/src/{place}": stars})[f"my-sdk/src/{place}"].text.split("\n")


def test_a_function_may_have_its_modules_name() -> None:
    """In the package the name means the function then, as Python finds it."""
    files = {**FILES, "net/__init__.py": "from .build import build\n", "net/build.py": BLOCKS}
    for given in ("from net import build", "from net.build import build"):
        found = merged({**files, "train.py": SCRIPT.replace("from net.blocks import build, WIDTH", f"{given}\nWIDTH = 6")})
        assert "def build(x, units):" in found["train.py"].text


def test_a_module_keeps_the_names_that_another_one_takes_of_it() -> None:
    """``slim = tf.contrib.slim`` in one module, and ``nets.slim.conv2d`` in another."""
    files = FILES | {"main.py": "import net.blocks\nnet.blocks.slim.conv2d(net.blocks.other(1))\n"}
    modules = Modules({ROOT / name: text for name, text in files.items()}, ROOT)
    assert modules.imported[ROOT / "net" / "blocks.py"] == {"build", "WIDTH", "slim"}


def test_a_module_keeps_what_another_one_names_without_a_call() -> None:
    """It is a hyperparameter, or a value of a dict; what is called comes into the script."""
    named = "from net import heads\nPARTS = {'extractor': heads.logits}\n"
    for more, expected in (({}, set()), ({"main.py": named}, {"logits"})):
        modules = Modules({ROOT / name: text for name, text in (FILES | more).items()}, ROOT)
        assert modules.imported[ROOT / "net" / "heads.py"] == expected
