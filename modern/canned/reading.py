"""What a canned Estimator was made of, read back from its model_fn.

A canned Estimator keeps nothing but its model_fn: a function that closes over the head, the columns, the optimizers and whatever
else it hands on. Those closed-over variables are read here, not the arguments of the constructor: they are there whenever the
Estimator was made and by whichever subclass, they hold what the model_fn really uses (the head in place of n_classes and its
kin), and tensorflow-estimator 2.15.0, the one release that every supported TensorFlow runs, fixes their names.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from estimator_bridge.errors import BridgeError, NotSupportedError

PACKAGE = "tensorflow_estimator.python.estimator.canned"
KINDS = ("baseline", "dnn", "dnn_linear_combined", "kmeans", "linear", "rnn")  # its modules with Estimators


@dataclasses.dataclass(frozen=True)
class Settings:
    """One canned Estimator.

    Attributes:
        kind: the module of tensorflow-estimator that its model_fn is from: ``dnn``, ``linear``, ...
        values: what the model_fn closes over, by name.
        keras: its optimizers are Keras', as those of ``tf.estimator`` in TensorFlow 2 are; else ``tf.compat.v1.train``'s.
    """

    kind: str
    values: Mapping[str, Any]
    keras: bool

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def read(estimator: Any) -> Settings:
    """The settings of a canned Estimator.

    Raises:
        BridgeError: for what is no Estimator.
        NotSupportedError: for an Estimator with a model_fn that is not canned, also where an extender wraps a canned one.
    """
    from tensorflow_estimator.python.estimator import estimator as estimator_lib

    if not isinstance(estimator, estimator_lib.Estimator):
        raise BridgeError(
            "Only an Estimator can be converted.",
            expected="a canned Estimator, such as tf.estimator.DNNClassifier(...)",
            received=f"{type(estimator).__qualname__}: {estimator!r:.80}",
            fix="Make the Estimator with the arguments it was trained with; its columns are in no checkpoint.",
        )
    model_fn = estimator._model_fn
    module = getattr(model_fn, "__module__", None) or ""
    package, _, kind = module.rpartition(".")
    if package != PACKAGE or kind not in KINDS:
        raise NotSupportedError(
            f"The model_fn {getattr(model_fn, '__qualname__', model_fn)!r} is not a canned Estimator's.",
            expected="tf.estimator's Linear, DNN, DNNLinearCombined, Baseline, RNN or KMeans, or a subclass with their model_fn",
            received=f"{type(estimator).__qualname__} with a model_fn from {module or 'nowhere'}",
            fix="Run it with `estimator-bridge run --path modern`, which takes any model_fn.",
        )
    if inspect.ismethod(model_fn):  # of KMeans
        values = {name.lstrip("_"): value for name, value in vars(model_fn.__self__).items()}
    else:
        values = dict(inspect.getclosurevars(model_fn).nonlocals)
    return Settings(kind, values, kind == "rnn" or isinstance(estimator, estimator_lib.EstimatorV2))
