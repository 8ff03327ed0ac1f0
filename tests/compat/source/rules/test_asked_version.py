"""The version that a script reads: each snippet asks in a way that public code does."""

from __future__ import annotations

import pytest

from estimator_bridge.compat.source.reading import read_source
from estimator_bridge.compat.source.rules.asked_version import TENSORFLOW_1, choose_version

TF = "import tensorflow as tf\n"
INSTALLED = "2.21.0"

REFUSES_TF2 = {
    "assert by parts": "assert int(tf.__version__.split('.')[0]) < 2",
    "assert by text": "assert tf.__version__.startswith('1.'), 'TensorFlow 1 is needed'",
    "raise": "if tf.__version__.split('.')[0] != '1':\n    raise Exception('TensorFlow version 1 is needed')",
    "exit": "import sys\nif tf.VERSION >= '2':\n    print('too new')\n    sys.exit(1)",
    "LooseVersion": (
        "from distutils.version import LooseVersion\n"
        "if LooseVersion(tf.__version__) < LooseVersion('2.0'):\n    pass\nelse:\n    raise RuntimeError"
    ),
    "packaging": "from packaging import version\nassert version.parse(tf.__version__) < version.parse('2.0')",
    "a variable": "MAJOR = int(tf.__version__[0])\ndef main():\n    assert MAJOR == 1",
    "numbers": "assert tuple(map(int, tf.__version__.split('.')[:2])) <= (1, 15)",
    "a comprehension": "assert [int(n) for n in tf.version.VERSION.split('.')] < [2, 0]",
    "though it names compat.v1": "tf.compat.v1.logging.set_verbosity('ERROR')\nassert tf.__version__ < '2'",
}
REFUSES_TF1 = {
    "text compared as numbers": "if tf.__version__ < '1.4.0':\n    raise ImportError('Please upgrade')",
    "for TensorFlow 2 only": "assert tf.__version__.startswith('2')",
}
KNOWS_BOTH = {
    "an import": "if tf.__version__ >= '2.0':\n    import tensorflow.compat.v1 as tf",
    "an attribute": "if tf.__version__[0] == '2':\n    tf = tf.compat.v1",
    "an expression": "tfv1 = tf.compat.v1 if tf.__version__ >= '2.0' else tf",
    "beside other tests": "if tf.__version__.startswith('1.15'):\n    a = 1\nif tf.__version__ >= '2':\n    from tensorflow.compat import v1",
}
OTHERWISE = {
    "another name": "if tf.__version__[0] == '2':\n    tf.random.set_seed(1)\nelse:\n    tf.set_random_seed(1)",
    "another library": "if int(tf.__version__.split('.')[0]) < 2:\n    import keras",
}
NO_TEST = {
    "printed": "print(tf.__version__)",
    "the same for both": "from distutils.version import LooseVersion\nassert LooseVersion(tf.__version__) >= LooseVersion('1.0')",
    "of something else": "if tf.__version__ < '2' or unknown():\n    raise ValueError",
    "another module's": "import numpy as np\nassert np.__version__ < '2'",
    "code that must not run": "assert tf.__version__ < '2' and __import__('os').system('false')",
}


def choose(*files: str) -> str | None:
    sources = [read_source((TF + text).encode(), f"{number}.py") for number, text in enumerate(files)]
    choice = choose_version(sources, INSTALLED)
    return choice.version if choice else None


@pytest.mark.parametrize("text", [*REFUSES_TF2.values(), *OTHERWISE.values()], ids=[*REFUSES_TF2, *OTHERWISE])
def test_tensorflow_1s(text: str) -> None:
    assert choose(text) == TENSORFLOW_1


@pytest.mark.parametrize("text", [*REFUSES_TF1.values(), *KNOWS_BOTH.values()], ids=[*REFUSES_TF1, *KNOWS_BOTH])
def test_the_installed_one(text: str) -> None:
    assert choose(text) == INSTALLED


@pytest.mark.parametrize("text", NO_TEST.values(), ids=NO_TEST)
def test_nothing_depends_on_it(text: str) -> None:
    assert choose(text) is None


def test_a_refusal_decides_for_all_files() -> None:
    assert choose(*KNOWS_BOTH.values(), REFUSES_TF2["raise"]) == TENSORFLOW_1


def test_reason_and_place() -> None:
    choice = choose_version([read_source(b"import tensorflow as tf\n\nassert tf.__version__ < '2'\n", "a.py")], INSTALLED)
    assert choice == (TENSORFLOW_1, "the script refuses TensorFlow 2", "a.py:3")
