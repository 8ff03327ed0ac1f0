"""Descriptions of embedding tables: the same parameters, defaults and checks as TensorFlow 2.15's own."""

import importlib.metadata
from collections.abc import Callable

import pytest

Run = Callable[..., str]
NATIVE = importlib.metadata.version("tensorflow").startswith("2.15.")

COMMON = """
    import inspect
    from estimator_bridge import legacy
    legacy.install()
    import tensorflow.compat.v1 as tf
    from tensorflow.python.tpu import tpu_embedding as by_name
    from estimator_bridge.legacy.restored import tpu_embedding as ours
    from estimator_bridge.legacy.restored.tpu_embedding import PARAMETERS, SLOTS

    def outcome(build):
        try:
            return {name: value for name, value in vars(build()).items()}
        except (TypeError, ValueError) as error:
            return type(error)
"""


@pytest.mark.skipif(not NATIVE, reason="compares with the classes that TensorFlow 2.15 has")
def test_everything_is_as_in_tensorflow_2_15(run_python: Run) -> None:
    run_python(
        COMMON,
        """
        def parameters(kind):
            signature = inspect.signature(kind.__init__)
            return [(p.name, p.default) for p in signature.parameters.values() if p.name != "self"]

        natives = {name: kind for name, kind in vars(by_name).items() if inspect.isclass(kind) and not name.startswith("_")}
        assert not set(natives) - set(vars(ours)), set(natives) - set(vars(ours))
        for name, mine in PARAMETERS.items():
            native = natives[name]
            taken = parameters(native)
            assert parameters(mine) == taken, name
            required = [0.5] * sum(default is inspect.Parameter.empty for _, default in taken)
            assert outcome(lambda: mine(*required)) == {
                field: value for field, value in outcome(lambda: native(*required)).items() if hasattr(mine, field) is False
                or field in dict(taken)}, name
            for field in vars(native(*required)):
                assert getattr(mine(*required), field) == getattr(native(*required), field), (name, field)
            for field, _ in taken:
                for value in (-1.0, 0.0, 0.5, 1.0, 2.0, None, False):
                    arguments = dict(zip((f for f, _ in taken), required)) | {field: value}
                    ok = [isinstance(outcome(lambda: kind(**arguments)), dict) for kind in (mine, native)]
                    assert ok[0] == ok[1], (name, field, value, ok)
            clipped = dict(zip((f for f, _ in taken), required)) | {"use_gradient_accumulation": False, "clip_gradient_min": 1.0}
            assert isinstance(outcome(lambda: mine(**clipped)), dict) == isinstance(outcome(lambda: native(**clipped)), dict)
        for name, mine in SLOTS.items():
            assert mine._fields == natives[name]._fields, name
        for name in ("EnqueueData", "RaggedEnqueueData", "FeatureConfig", "TableConfig", "DeviceConfig", "VariablesAndOps"):
            assert getattr(ours, name)._fields == natives[name]._fields, name
        for arguments in ({}, {"combiner": "max"}, {"combiner": None}, {"vocabulary_size": 0}, {"dimension": 2.0},
                          {"initializer": 1}, {"learning_rate": 1.0, "learning_rate_fn": "f"}, {"optimization_parameters": 3}):
            arguments = {"vocabulary_size": 10, "dimension": 2} | arguments
            ok = []
            for module in (ours, by_name):
                try:
                    ok.append(module.TableConfig(**arguments)[3:])
                except ValueError:
                    ok.append(ValueError)
            assert ok[0] == ok[1], arguments
        assert (ours.TRAINING, ours.INFERENCE) == (by_name.TRAINING, by_name.INFERENCE)
        """,
    )


def test_public_names_and_checks(run_python: Run) -> None:
    run_python(
        COMMON,
        """
        import tensorflow as tf2
        for name in ("AdagradParameters", "AdamParameters", "FtrlParameters", "StochasticGradientDescentParameters"):
            assert getattr(tf.tpu.experimental, name) is getattr(tf2.compat.v1.tpu.experimental, name) is getattr(by_name, name)
        adam = PARAMETERS["AdamParameters"](0.1, 0.8, clip_weight_max=2.0)
        assert (adam.learning_rate, adam.beta1, adam.beta2, adam.clip_weight_max) == (0.1, 0.8, 0.999, 2.0)
        assert PARAMETERS["FrequencyEstimatorParameters"](0.1, 1, 2, 3).learning_rate == 1.0
        bad = [("AdamParameters", dict(beta1=1.0)), ("AdagradParameters", dict(initial_accumulator=0)),
               ("FtrlParameters", dict(learning_rate_power=1.0)), ("AdagradParameters", dict(no_such=1)),
               ("AdamParameters", dict(use_gradient_accumulation=False, lazy_adam=False)),
               ("AdagradParameters", dict(use_gradient_accumulation=False, clip_gradient_max=1.0))]
        for name, arguments in bad:
            assert outcome(lambda: PARAMETERS[name](0.1, **arguments)) in (TypeError, ValueError), (name, arguments)
        for arguments in ({"table_id": "t", "max_sequence_length": -1}, {"table_id": "t", "max_sequence_length": 1.5}):
            assert outcome(lambda: ours.FeatureConfig(**arguments)) is ValueError
        assert ours.TableConfig(10, 4).initializer.stddev == 0.5
        with tf.Graph().as_default():
            sparse = ours.get_enqueue_datas_list_from_sparse_tensors_list([{"f": tf.sparse.from_dense([[0, 7]])}])
            ragged = ours.get_enqueue_datas_list_from_ragged_tensors_list([{"f": tf.ragged.constant([[1], [2, 3]])}])
        assert list(sparse[0]) == list(ragged[0]) == ["f"] and sparse[0]["f"].aggregation_weights is None
        """,
    )
