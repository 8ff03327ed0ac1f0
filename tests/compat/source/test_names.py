"""The meaning of names, compared with Python's own answer if it can give one."""

from __future__ import annotations

import ast
import textwrap

import pytest

from estimator_bridge.compat.source.names import Names

# A snippet whose last line is an expression, and what it means.
MEANINGS = [
    ("import tensorflow as tf\ntf.layers.dense", "tensorflow.layers.dense"),
    ("import tensorflow\ntensorflow.layers", "tensorflow.layers"),
    ("import tensorflow.contrib.slim as slim\nslim.conv2d", "tensorflow.contrib.slim.conv2d"),
    ("import tensorflow.contrib.slim\ntensorflow.contrib.slim.conv2d", "tensorflow.contrib.slim.conv2d"),
    ("from tensorflow.contrib import slim\nslim.conv2d", "tensorflow.contrib.slim.conv2d"),
    ("from tensorflow.contrib import slim as s\ns.conv2d", "tensorflow.contrib.slim.conv2d"),
    ("import tensorflow as tf\nlayers = tf.layers\nlayers.dense", "tensorflow.layers.dense"),
    ("import tensorflow as tf\ntf = tf.compat.v1\ntf.layers", "tensorflow.compat.v1.layers"),
    ("import tensorflow as tf\na = b = tf.layers\nb.dense", "tensorflow.layers.dense"),
    ("import tensorflow as tf\nlayers: object = tf.layers\nlayers.dense", "tensorflow.layers.dense"),
    ("import importlib\ntf = importlib.import_module('tensorflow')\ntf.layers", "tensorflow.layers"),
    ("tf = __import__('tensorflow')\ntf.layers", "tensorflow.layers"),
    ("try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\ntf.layers", "tensorflow.layers"),
    ("import tensorflow as tf\ntf = object()\ntf.layers", None),
    ("import tensorflow as tf\ntf = [1]\ntf.layers", None),
    ("tf = 3\nimport tensorflow as tf\ntf.layers", "tensorflow.layers"),
    ("import tensorflow as tf\nfor tf in []:\n    pass\ntf.layers", None),
    ("from .layers import dense\ndense.x", ".layers.dense.x"),
    ("len", "builtins.len"),
    ("len.x", "builtins.len.x"),
    ("(1).real", None),
]


@pytest.mark.parametrize(("source", "meaning"), MEANINGS)
def test_at_the_end_of_a_module(source: str, meaning: str | None) -> None:
    tree = ast.parse(source)
    names = Names(tree)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert names.resolve(last.value, names.module) == meaning


SCOPES = """
    import tensorflow as tf
    import numpy as np

    def argument(tf):
        return tf.a1

    def local():
        tf = 1
        return tf.a2

    def global_():
        return tf.a3

    def nested():
        import torch as tf
        def inner():
            return tf.a4
        return inner

    class Class:
        tf = 1
        x = tf.a5
        def method(self):
            return tf.a6

    def declared():
        global np
        import jax as np
    listed = [tf.a7 for tf in ()]
    called = lambda tf=tf.a8: tf.a9
    np.a10
    [tf.a11 for x in tf.a12 if tf.a13]

    def default(x=tf.a14):
        def tf(): pass
        return tf.a15

    def later():
        return below.a16
    below = tf.keras
    with open("x") as tf_file:
        tf_file.a17
    (yes := tf.a18)
"""


def test_scopes() -> None:
    names = Names(ast.parse(textwrap.dedent(SCOPES)))
    meanings = {
        chain.attr: names.resolve(chain, place.scope)
        for chain, place in names.nodes(ast.Attribute)
        if chain.attr.startswith("a")
    }
    mine = {"a3", "a6", "a8", "a11", "a12", "a13", "a14", "a18"}
    assert {name for name, meaning in meanings.items() if meaning == f"tensorflow.{name}"} == mine
    assert meanings["a4"] == "torch.a4"
    assert meanings["a10"] == "jax.a10", "the last binding of the module, wherever it stands"
    assert meanings["a16"] == "tensorflow.keras.a16"
    assert all(meanings[name] is None for name in ("a1", "a2", "a5", "a7", "a9", "a15", "a17"))


def test_places() -> None:
    source = """
        import sys
        try:
            guarded1
        except ImportError:
            guarded2
        else:
            open1
        try:
            open2
        except ValueError:
            pass
        if sys.version_info[0] < 3:
            guarded3
        for x in y:
            while z:
                looped
            def f():
                fresh
    """
    names = Names(ast.parse(textwrap.dedent(source)))
    places = {node.id: place for node, place in names.nodes(ast.Name)}
    assert {name for name, place in places.items() if place.guarded and name.startswith(("guarded", "open"))} == {
        "guarded1",
        "guarded2",
        "guarded3",
    }
    assert [type(loop).__name__ for loop in places["looped"].loops] == ["For", "While"]
    assert places["fresh"].loops == ()


def test_star_imports_are_kept_apart() -> None:
    names = Names(ast.parse("from tensorflow import *\nfrom os import path"))
    assert [module for module, _, _ in names.stars] == ["tensorflow"]
    assert [dotted for dotted, _, _ in names.imports] == ["os.path"]
