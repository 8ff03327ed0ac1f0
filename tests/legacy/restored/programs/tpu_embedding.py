"""Descriptions of embedding tables; a function a program."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

from estimator_bridge import legacy

legacy.install()
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_embedding as by_name

ours: Any = importlib.import_module("estimator_bridge.legacy.restored.tpu_embedding")
PARAMETERS, SLOTS = ours.PARAMETERS, ours.SLOTS


def outcome(build: Any) -> Any:
    try:
        return dict(vars(build()).items())
    except (TypeError, ValueError) as error:
        return type(error)


def parameters(kind: Any) -> Any:
    signature = inspect.signature(kind.__init__)
    return [(p.name, p.default) for p in signature.parameters.values() if p.name != "self"]


def everything_is_as_in_tensorflow_2_15() -> None:
    natives: dict[str, Any] = {
        name: kind for name, kind in vars(by_name).items() if inspect.isclass(kind) and not name.startswith("_")
    }
    assert not set(natives) - set(vars(ours)), set(natives) - set(vars(ours))
    for name, mine in PARAMETERS.items():
        native = natives[name]
        taken = parameters(native)
        assert parameters(mine) == taken, name
        required = [0.5] * sum(default is inspect.Parameter.empty for _, default in taken)
        assert outcome(lambda: mine(*required)) == {
            field: value
            for field, value in outcome(lambda: native(*required)).items()
            if hasattr(mine, field) is False or field in dict(taken)
        }, name
        for field in vars(native(*required)):
            assert getattr(mine(*required), field) == getattr(native(*required), field), (name, field)
        for field, _ in taken:
            for value in (-1.0, 0.0, 0.5, 1.0, 2.0, None, False):
                arguments = dict(zip((f for f, _ in taken), required, strict=False)) | {field: value}
                ok = [isinstance(outcome(lambda: kind(**arguments)), dict) for kind in (mine, native)]
                assert ok[0] == ok[1], (name, field, value, ok)
        clipped = dict(zip((f for f, _ in taken), required, strict=False)) | {
            "use_gradient_accumulation": False,
            "clip_gradient_min": 1.0,
        }
        assert isinstance(outcome(lambda: mine(**clipped)), dict) == isinstance(outcome(lambda: native(**clipped)), dict)
    for name, mine in SLOTS.items():
        assert mine._fields == natives[name]._fields, name
    for name in ("EnqueueData", "RaggedEnqueueData", "FeatureConfig", "TableConfig", "DeviceConfig", "VariablesAndOps"):
        assert getattr(ours, name)._fields == natives[name]._fields, name
    assert (ours.TRAINING, ours.INFERENCE) == (by_name.TRAINING, by_name.INFERENCE)
    table_configs_take_the_same()


def table_configs_take_the_same() -> None:
    for given in (
        {},
        {"combiner": "max"},
        {"combiner": None},
        {"vocabulary_size": 0},
        {"dimension": 2.0},
        {"initializer": 1},
        {"learning_rate": 1.0, "learning_rate_fn": "f"},
        {"optimization_parameters": 3},
    ):
        arguments: dict[str, Any] = {"vocabulary_size": 10, "dimension": 2} | given
        ok = []
        for module in (ours, by_name):
            try:
                ok.append(module.TableConfig(**arguments)[3:])
            except ValueError:
                ok.append(ValueError)
        assert ok[0] == ok[1], arguments


def public_names_and_checks() -> None:
    import tensorflow as tf2

    for name in ("AdagradParameters", "AdamParameters", "FtrlParameters", "StochasticGradientDescentParameters"):
        assert getattr(tf.tpu.experimental, name) is getattr(tf2.compat.v1.tpu.experimental, name) is getattr(by_name, name)
    adam = PARAMETERS["AdamParameters"](0.1, 0.8, clip_weight_max=2.0)
    assert (adam.learning_rate, adam.beta1, adam.beta2, adam.clip_weight_max) == (0.1, 0.8, 0.999, 2.0)
    assert PARAMETERS["FrequencyEstimatorParameters"](0.1, 1, 2, 3).learning_rate == 1.0
    bad: list[tuple[str, dict[str, Any]]] = [
        ("AdamParameters", {"beta1": 1.0}),
        ("AdagradParameters", {"initial_accumulator": 0}),
        ("FtrlParameters", {"learning_rate_power": 1.0}),
        ("AdagradParameters", {"no_such": 1}),
        ("AdamParameters", {"use_gradient_accumulation": False, "lazy_adam": False}),
        ("AdagradParameters", {"use_gradient_accumulation": False, "clip_gradient_max": 1.0}),
    ]
    for name, arguments in bad:
        assert outcome(lambda: PARAMETERS[name](0.1, **arguments)) in (TypeError, ValueError), (name, arguments)
    for length in (-1, 1.5):
        assert outcome(lambda: ours.FeatureConfig(table_id="t", max_sequence_length=length)) is ValueError
    assert ours.TableConfig(10, 4).initializer.stddev == 0.5
    with tf.Graph().as_default():
        sparse = ours.get_enqueue_datas_list_from_sparse_tensors_list([{"f": tf.sparse.from_dense([[0, 7]])}])
        ragged = ours.get_enqueue_datas_list_from_ragged_tensors_list([{"f": tf.ragged.constant([[1], [2, 3]])}])
    assert list(sparse[0]) == list(ragged[0]) == ["f"] and sparse[0]["f"].aggregation_weights is None


if __name__ == "__main__":
    globals()[sys.argv[1]]()
