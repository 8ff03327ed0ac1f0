"""Objects of a model function become functions if each use of them is known; else the script stays as it is."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from estimator_bridge.compat.source.objects import unfolded

SCRIPT = """
class Net(Base):
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return tf.layers.dense(x, self.n)


def model_fn(features, labels, mode):
    net = Net(3)
    y = net(features)
    return tf.estimator.EstimatorSpec(mode, loss=y)
"""
PLAIN = SCRIPT.replace("(Base)", "")


def check_noop(text: str, imported: Sequence[str] = ()) -> None:
    """Asserts that a script stays as it is."""
    assert unfolded(text, imported).text == text


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT,
        PLAIN.replace("self.n = n", "register(self)"),
        PLAIN.replace("y = net(features)", "y = apply(net, features)"),
        PLAIN.replace("tf.layers.dense(x, self.n)", "tf.layers.dense(x, self.unknown)"),
        PLAIN.replace("    def __call__", "    @property\n    def __call__"),
        PLAIN.replace("tf.layers.dense(x, self.n)", "x * self.n"),
        PLAIN.replace("y = net(features)", "net_n = net(features)"),
        PLAIN.replace("self.n = n", "def keep():\n            self.n = n\n        keep()"),
    ],
    ids=[
        "unknown base",
        "bare self",
        "passed on",
        "unknown attribute",
        "decorated",
        "no layers",
        "taken name",
        "kept by a closure",
    ],
)
def test_an_object_with_a_use_that_is_not_known_stays(text: str) -> None:
    check_noop(text)


def test_attributes_are_variables_and_methods_are_functions() -> None:
    found = unfolded(PLAIN)
    assert (set(found.functions), set(found.variables)) == ({"net_init", "net_call"}, {"net_n"})
    assert "class" not in found.text
    ast.parse(found.text)
    assert len(found.lines) == found.text.count("\n") + 1


METHOD = """
class Trainer:
    def head(self, net):
        return tf.layers.dense(net, self.size)

    def _model_fn(self, features, labels, mode):
        return tf.estimator.EstimatorSpec(mode, loss=self.head(features))

    def run(self):
        return tf.estimator.Estimator(model_fn=self._model_fn)
"""


KEEPING = METHOD.replace(
    "        return tf.layers.dense(net, self.size)",
    "        self.net = net\n        return tf.layers.dense(self.net, self.size)",
)
"""A method that keeps a value, which only the methods of the model function read."""


def test_what_only_a_model_function_keeps_and_reads_is_a_variable() -> None:
    found = unfolded(KEEPING)
    assert "        def head_of_Trainer(net):\n            net_of_Trainer = net\n" in found.text
    assert "tf.layers.dense(net_of_Trainer, outer.size)" in found.text
    assert found.variables == {"net_of_Trainer"}
    other = unfolded(KEEPING.replace("self.net", "self.kept")).text
    assert "kept = net\n" in other
    check_noop(KEEPING, imported=["Trainer"])


def test_a_method_that_no_estimator_gets_here_is_a_model_function_of_others() -> None:
    alone = METHOD.partition("    def run")[0]
    assert "def _model_fn(self):\n        outer = self\n" in unfolded(alone).text
    check_noop(alone, imported=["Trainer"])


def test_a_method_becomes_a_function_that_returns_the_model_function() -> None:
    text = unfolded(METHOD).text
    assert "tf.estimator.Estimator(model_fn=self._model_fn())" in text
    assert "loss=head_of_Trainer(features)" in text
    assert "tf.layers.dense(net, outer.size)" in text


@pytest.mark.parametrize(
    "text",
    [
        METHOD.replace("self.head(features)", "self.network(features)"),
        KEEPING + "        return self.net\n",
        KEEPING + "        return vars(self)\n",
        KEEPING.replace("class Trainer:", "class Trainer(Runner):"),
        KEEPING.replace("self.net = net", "self.net = noted(self, net)"),
        KEEPING + "\nprint(hasattr(trainer, 'net'))\n",
        METHOD.replace("model_fn=self._model_fn", "model_fn=wrapped(self._model_fn)"),
        METHOD.replace("    def run(self):", "class Runner(Trainer):\n    def run(self):"),
        METHOD.replace("model_fn=self._model_fn", "model_fn=other._model_fn"),
    ],
    ids=[
        "may make layers",
        "read elsewhere",
        "seen as a whole",
        "read by a base",
        "given to others",
        "asked by name",
        "passed on",
        "of a derived class",
        "of another object",
    ],
)
def test_a_method_with_a_use_that_is_not_known_stays(text: str) -> None:
    check_noop(text)


@pytest.mark.parametrize("text", [METHOD, PLAIN], ids=["method", "object"])
def test_a_source_with_tabs_stays_one_that_python_reads(text: str) -> None:
    ast.parse(unfolded(text.replace("    ", "\t")).text)


DERIVED = """
class Ranker(tf.estimator.Estimator):
    # ranks
    def __init__(self, params, size):
        self.size = size

        def model_fn(features, labels, mode, params):
            return tf.estimator.EstimatorSpec(mode, loss=self.net(features))

        super().__init__(model_fn=model_fn, params=params)

    def net(self, x):
        return tf.layers.dense(x, self.size + self.params.more)


ranker = Ranker(HParams(more=1), 3)
"""


def test_a_class_of_estimators_is_a_function_that_returns_one() -> None:
    text = unfolded(DERIVED).text
    ast.parse(text)

    assert "def Ranker(params, size):" in text
    assert "return tf.layers.dense(x, size_of_Ranker + params_of_Ranker.more)" in text
    assert "    params_of_Ranker = params\n    return tf" in text
    assert "return tf.estimator.Estimator(model_fn=model_fn, params=params)" in text
    assert "# ranks" in text
    assert "self" not in text
    assert "class" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ranker = Ranker(", "ranker = isinstance(x, Ranker) or Ranker("),
        ("(HParams(more=1), 3)", "(HParams(more=1), 3)\nprint(ranker.size)"),
        ("self.size + self", "self.width + self"),
        ("self.size = size\n", "self.size = register(self)\n"),
        ("        return tf.layers", "        self.size = 4\n        return tf.layers"),
        ("params=params)\n", "params=params)\n        self.done = True\n"),
        ("    def net(", "    def export(self):\n        pass\n\n    def net("),
        ("    # ranks", "    kind = 'ranker'"),
        ("return tf.layers", "name = '''\n'''\n        return tf.layers"),
        ("    def net(", "    @staticmethod\n    def net("),
        ("def model_fn(features", "size_of_Ranker = 3\n        def model_fn(features"),
        ("return tf.layers.dense(x, ", "return tf.layers.dense(x, size * "),
        ("self.size = size\n", "self._size = self.size = size\n"),
        ("params=params)\n", "params=dict(params))\n"),
        ("return tf.layers.dense(x, ", "super().close()\n        return tf.layers.dense(x, "),
        ("ranker = Ranker(HParams(more=1), 3)", "ranker = Ranker(HParams(more=1), 3)\nranker.net(x)"),
    ],
    ids=[
        *(
            "asked for",
            "read from outside",
            "not its own",
            "passed on",
            "set later",
            "set behind the base",
            "never called",
        ),
        *("attribute of the class", "text of several lines", "decorated", "taken name", "global with the name of an argument"),
        *("two names that become one", "params that would be made twice", "another super", "method called from outside"),
    ],
)
def test_a_class_of_estimators_with_a_use_that_is_not_known_stays(old: str, new: str) -> None:
    assert old in DERIVED
    check_noop(DERIVED.replace(old, new))


def test_a_class_of_estimators_that_another_module_imports_stays() -> None:
    assert unfolded(DERIVED, {"Ranker"}).text == DERIVED
