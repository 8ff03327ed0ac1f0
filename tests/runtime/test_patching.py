"""Replaced attributes come back, and the table of replaced names agrees with the code and with every supported TensorFlow."""

from __future__ import annotations

import ast
import importlib
import math
import pkgutil
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import estimator_bridge
from estimator_bridge.runtime.patching import CHECKED, path_of, preceded, replace, replaced
from tests.runtime.patched_names import PATCHED, PatchedNames

_FOLDERS = [
    Path(estimator_bridge.__file__).parent,
    *(Path(estimator_bridge.__file__).parents[2] / name for name in ("legacy", "modern", "compat")),
]


class _Base:
    def method(self) -> str:
        return "base"


class _Derived(_Base):
    @staticmethod
    def function() -> str:
        return "static"


def test_an_attribute_of_a_module_is_restored() -> None:
    before = math.pi
    with replaced(math, pi=3):
        assert math.pi == 3
    assert math.pi == before


def test_an_inherited_method_is_restored_to_the_inherited_one() -> None:
    with replaced(_Derived, method=lambda self: "replaced"):
        assert _Derived().method() == "replaced"
        assert _Base().method() == "base"
    assert _Derived().method() == "base"
    assert "method" not in vars(_Derived)


def test_a_static_method_stays_one() -> None:
    with replaced(_Derived, function=staticmethod(lambda: "replaced")):
        assert _Derived().function() == "replaced"
    assert _Derived().function() == "static"
    assert isinstance(vars(_Derived)["function"], staticmethod)


def test_defaults_of_a_function_are_restored() -> None:
    def function(value: int = 1) -> int:
        return value

    with replaced(function, __defaults__=(2,)):
        assert function() == 2
    assert function() == 1


def test_all_attributes_are_restored_after_an_error() -> None:
    before = (math.pi, math.e)
    with pytest.raises(ValueError, match="inside"), replaced(math, pi=3, e=2):
        raise ValueError("inside")
    assert (math.pi, math.e) == before


def test_the_first_attribute_is_restored_if_the_second_does_not_exist() -> None:
    before = math.pi
    with pytest.raises(AttributeError, match="no_such_name"), replaced(math, pi=3, no_such_name=1):
        pass
    assert math.pi == before


def test_replace_returns_the_way_back() -> None:
    before = math.pi
    restore = replace(math, "pi", 3)
    assert math.pi == 3
    restore()
    assert math.pi == before


def test_a_name_of_tensorflow_that_the_table_does_not_list_is_refused() -> None:
    module = types.ModuleType("tensorflow.python.some_module")
    module.name = 1  # type: ignore[attr-defined]
    with pytest.raises(LookupError, match=r"tensorflow\.python\.some_module\.name"), replaced(module, name=2):
        pass
    assert module.name == 1


def test_a_missing_row_ends_no_training_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHECKED)
    module = types.ModuleType("tensorflow.python.some_module")
    module.name = 1  # type: ignore[attr-defined]
    with replaced(module, name=2):
        assert module.name == 2


def test_an_object_goes_by_the_path_of_its_class() -> None:
    assert path_of(_Derived()) == f"{__name__}._Derived"


@pytest.mark.parametrize("row", PATCHED, ids=lambda row: f"{row.owner}.{row.names[0]}")
def test_this_tensorflow_has_each_name(row: PatchedNames) -> None:
    from estimator_bridge import legacy

    legacy.install()
    owners = list(_owners(row))
    assert owners
    for name in row.names:
        assert any(hasattr(owner, name) for owner in owners), name


def _owners(row: PatchedNames) -> Iterator[object]:
    """The owners that a path means; for a pattern, those by which the code finds them."""
    import keras
    import tensorflow as tf
    import tf_keras

    patterns = {
        "tensorflow*": (tf.compat.v1, tf.compat.v1.train),
        "tensorflow*.compat.v1": (tf.compat.v1, tf.compat.v1.compat.v1, tf.compat.v2.compat.v1),
        "tensorflow*tf2": (tf.__internal__.tf2,),
        "tensorflow.python.ops*": (importlib.import_module(tf.compat.v1.resource_variables_enabled.__module__),),
        "tensorflow.python.*training_ops": (importlib.import_module("tensorflow.python.ops.gen_training_ops"),),
        "tensorflow.python.training.basic_session_run_hooks.*": (tf.compat.v1.train.CheckpointSaverHook,),
        "tensorflow_estimator.python.estimator.tpu.tpu_estimator.*Estimator*": (_tpu_estimator(),),
        "tf_keras.*.training.Model": (tf_keras.Model,),
        "*keras.*.legacy_cells.LayerRNNCell": (tf.compat.v1.nn.rnn_cell.BasicLSTMCell.__base__,),
        "keras.src.*.Model": (keras.Model,),
        "tf_keras.*.base_layer.Layer": (tf_keras.layers.Layer,),
        "tf_keras.*.optimizer*.*Optimizer*": (tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer),
    }
    if "*" in row.owner:
        yield from patterns[row.owner]
    else:
        parent = row.owner.rpartition(".")[0] or row.owner
        importlib.import_module(parent if parent.rpartition(".")[2].islower() else parent.rpartition(".")[0])
        yield pkgutil.resolve_name(row.owner)


def _tpu_estimator() -> object:
    import tensorflow as tf

    run_config = tf.compat.v1.estimator.tpu.RunConfig()
    return tf.compat.v1.estimator.tpu.TPUEstimator(lambda features, labels, mode: None, config=run_config, use_tpu=False)


def test_each_listed_name_is_replaced_somewhere() -> None:
    used = {word for folder in _FOLDERS for file in folder.rglob("*.py") for word in _words_of_patches(file)}
    assert {name for row in PATCHED for name in row.names} <= used


def _words_of_patches(file: Path) -> Iterator[str]:
    source = file.read_text(encoding="utf-8")
    if "estimator_bridge.runtime.patching" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_row_of_a_name_is_found_by_pattern() -> None:
    namespace = types.ModuleType("tensorflow._api.v2.compat.v1")
    namespace.disable_v2_behavior = namespace.minimize = 1  # type: ignore[attr-defined]
    with replaced(namespace, disable_v2_behavior=2):
        assert namespace.disable_v2_behavior == 2
    with pytest.raises(LookupError, match=r"compat\.v1\.minimize"), replaced(namespace, minimize=2):
        pass


def test_a_function_that_precedes_a_method_sees_its_arguments_and_may_refuse() -> None:
    calls: list[tuple[object, ...]] = []

    def check(*arguments: object) -> None:
        calls.append(arguments)
        if arguments[1:] == ("no",):
            raise ValueError("refused")

    class Owner:
        def method(self, word: str) -> str:
            return word

    owner = Owner()
    with preceded(Owner, method=check):
        assert owner.method("yes") == "yes"
        with pytest.raises(ValueError, match="refused"):
            owner.method("no")
    assert owner.method("no") == "no"
    assert calls == [(owner, "yes"), (owner, "no")]
