"""What stops a script, and what only looks as if it would."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_bridge.compat.source.forecast import judge_script
from estimator_bridge.compat.source.reached import ReachedCode
from estimator_bridge.compat.source.reading import read_source
from estimator_bridge.compat.source.rules.modern_limits import calls_an_estimator, judge_for_modern
from estimator_bridge.compat.source.verdicts import Verdict
from tests.compat.source.reading import judge
from tests.running import write

TF = "import tensorflow as tf\n"
TRAINS = "tf.estimator.Estimator(model_fn).train(input_fn)\n"

# A script, and the symbols that stop it on the legacy path.
STOPS = {
    "a missing name": (f"{TF}tf.train.Nothing", ["tf.train.Nothing"]),
    "in a function that is called": (f"{TF}def main():\n    tf.train.Nothing\nmain()", ["tf.train.Nothing"]),
    "in a function that a flag names": (
        f"{TF}def small():\n    tf.train.Nothing\nprint(globals()['small'])",
        ["tf.train.Nothing"],
    ),
    "in a method of a class that is used": (
        f"{TF}class A(tf.train.SessionRunHook):\n    def begin(self):\n        tf.train.Nothing\nA()",
        ["tf.train.Nothing"],
    ),
    "in a method that is called": (f"{TF}class A:\n    def f(self):\n        tf.train.Nothing\nA().f()", ["tf.train.Nothing"]),
    "a prediction": (
        f"{TF}def model_fn(mode):\n    if mode == tf.estimator.ModeKeys.PREDICT:\n        tf.train.Nothing\nmodel_fn(1).predict()",
        ["tf.train.Nothing"],
    ),
    "in main, which tf.app.run calls": (f"{TF}def main(argv):\n    tf.train.Nothing\ntf.app.run()", ["tf.train.Nothing"]),
    "in main, which absl's app.run calls": (
        f"{TF}from absl import app\ndef main(argv):\n    tf.train.Nothing\nif __name__ == '__main__':\n    app.run()",
        ["tf.train.Nothing"],
    ),
    "a compiled library": (f"{TF}ops = tf.load_op_library('./ops.so')", ["tf.load_op_library"]),
    "boosted trees": (f"{TF}tf.estimator.BoostedTreesClassifier", ["tf.estimator.BoostedTreesClassifier"]),
    "boosted trees of contrib": (f"{TF}tf.contrib.boosted_trees.x", ["tf.contrib.boosted_trees.x"]),
    "a TPU": (f"{TF}tf.contrib.tpu.TPUEstimator(use_tpu=True)", ["use_tpu=True"]),
    "a package that is not there": ("import no_such_package.part", ["import no_such_package"]),
    "a module that is gone": ("import imghdr\nimghdr.what('a.png')", ["imghdr"]),
    "a name of Python 2": ("print(unicode('a'))", ["unicode"]),
}
RUNS = {
    "a function that nobody calls": f"{TF}def unused():\n    tf.train.Nothing",
    "a class that nobody uses": f"{TF}class Unused:\n    def f(self):\n        tf.train.Nothing",
    "a prediction that nobody asks for": (
        f"{TF}def model_fn(mode):\n    if mode == tf.estimator.ModeKeys.PREDICT:\n        tf.train.Nothing\nmodel_fn(1)"
    ),
    "a method that nobody calls": f"{TF}class A(object):\n    def unused(self):\n        tf.train.Nothing\nA()",
    "a library that is optional": f"{TF}try:\n    tf.load_op_library('./ops.so')\nexcept Exception:\n    pass",
    "a TPU, if there is one": f"{TF}import sys\nif sys.argv[1] == 'tpu':\n    tf.estimator.tpu.TPUEstimator(use_tpu=True)",
    "a package that is optional": "try:\n    import no_such_package\nexcept ImportError:\n    pass",
    "a module that is gone, and not used": "import imghdr",
    "a part of a step": f"{TF}periods = 3\ntf.estimator.Estimator(model_fn).train(input_fn, steps=100 / periods)",
    "several GPUs for one": "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0,1'",
    "an import of everything": "from tensorflow.keras.layers import *",
}


def stops(script: Path, path: str = "legacy") -> list[str]:
    reports = judge_script(judge(), script, path)
    return [one.symbol for report in reports for one in report.findings if one.verdict is Verdict.HUMAN]


@pytest.mark.parametrize(("source", "symbols"), STOPS.values(), ids=STOPS)
def test_what_stops_a_script(source: str, symbols: list[str], tmp_path: Path) -> None:
    assert set(symbols) <= set(stops(write(tmp_path / "train.py", source)))


@pytest.mark.parametrize("source", RUNS.values(), ids=RUNS)
def test_what_does_not_stop_a_script(source: str, tmp_path: Path) -> None:
    assert stops(write(tmp_path / "train.py", source)) == []


def test_own_modules_are_judged_as_far_as_they_are_reached(tmp_path: Path) -> None:
    write(tmp_path / "nets" / "__init__.py", "")
    write(tmp_path / "nets" / "models.py", f"{TF}def used():\n    tf.train.Nothing\ndef unused():\n    tf.train.Nowhere\n")
    write(tmp_path / "parser.py", f"{TF}if __name__ == '__main__':\n    tf.train.Never\n")
    script = write(tmp_path / "train.py", "import parser\nfrom nets.models import used\nused()\n")
    assert stops(script) == ["tf.train.Nothing"]


def test_a_module_that_only_an_unused_function_imports(tmp_path: Path) -> None:
    write(tmp_path / "later.py", "import no_such_package\n")
    script = write(tmp_path / "train.py", "def unused():\n    import later\n")
    assert stops(script) == []
    assert stops(write(tmp_path / "train.py", "def used():\n    import later\nused()\n")) == ["import no_such_package"]


@pytest.mark.parametrize(
    ("module", "name", "symbols"),
    [
        ("def my_model_fn():\n    pass\n", "model_fn", ["from model import model_fn"]),
        ("from elsewhere import *\n", "model_fn", []),
        ("def __getattr__(name):\n    return 1\n", "model_fn", []),
        ("globals()['model_fn'] = 1\n", "model_fn", []),
        ("def make():\n    global model_fn\n    model_fn = 1\n", "model_fn", []),
        ("import os as model_fn\n", "model_fn", []),
        ("with open('a') as model_fn:\n    pass\n", "model_fn", []),
        ("def my_model_fn():\n    pass\n", "__doc__", []),
    ],
)
def test_a_name_that_an_own_module_has_not(module: str, name: str, symbols: list[str], tmp_path: Path) -> None:
    write(tmp_path / "elsewhere.py", "")
    write(tmp_path / "model.py", module)
    assert stops(write(tmp_path / "train.py", f"from model import {name}\n")) == symbols


def test_a_submodule_is_no_missing_name(tmp_path: Path) -> None:
    write(tmp_path / "nets" / "__init__.py", "")
    write(tmp_path / "nets" / "small.py", "")
    assert stops(write(tmp_path / "train.py", "from nets import small\n")) == []


def test_python_2_in_any_own_module_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "helper.py", "def unused():\n    print 'a'\n")
    assert stops(write(tmp_path / "train.py", "import helper\n")) == ["print statement"]


@pytest.mark.parametrize(
    ("source", "symbols"),
    [
        (f"{TF}with tf.Session() as session:\n    session.run(tf.constant(1))", ["tf.estimator"]),
        (f"{TF}{TRAINS}tf.train.ProfilerHook(save_steps=1)", ["tf.train.ProfilerHook"]),
        (f"{TF}{TRAINS}tf.train.Saver(write_version=tf.train.SaverDef.V1)", ["tf.train.SaverDef.V1"]),
        (f"{TF}{TRAINS}", []),
        (f"{TF}tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)", []),
    ],
)
def test_the_modern_path(source: str, symbols: list[str], tmp_path: Path) -> None:
    script = write(tmp_path / "train.py", source)
    assert [one for one in stops(script, "modern") if one not in stops(script)] == symbols


def test_an_estimator_of_contrib_learn_is_for_the_legacy_path() -> None:
    source = read_source(f"{TF}tf.contrib.learn.Estimator(model_fn).fit(x, y)".encode(), "train.py")
    assert [one.symbol for one in judge_for_modern(source)] == ["tf.contrib.learn.Estimator"]
    assert not calls_an_estimator([source], ReachedCode([source]))
