"""Reads the settings of a canned Estimator back from its model_fn.

A canned Estimator keeps only its model_fn: a function that closes over the head, the columns, the optimizers and the other
settings. These closed-over variables are read here, not the arguments of the constructor. They exist for every subclass, and they
hold what the model_fn really uses, such as the head in place of n_classes. tensorflow-estimator 2.15.0, the only release that the
supported TensorFlow versions use, fixes their names.
"""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from estimator_bridge.errors import BridgeError, NotSupportedError

PACKAGE = "tensorflow_estimator.python.estimator.canned"
KINDS = ("baseline", "dnn", "dnn_linear_combined", "kmeans", "linear", "rnn")  # modules of PACKAGE that define Estimators


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of one canned Estimator.

    Attributes:
        kind: Module of tensorflow-estimator that defines the model_fn: ``dnn``, ``linear``, ...
        values: Name -> value of each variable that the model_fn closes over.
        keras: True if the optimizers come from Keras, as in ``tf.estimator``; False if they come from ``tf.compat.v1.train``.
    """

    kind: str
    values: Mapping[str, Any]
    keras: bool

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def read(estimator: Any) -> Settings:
    """Returns the settings of a canned Estimator.

    Raises:
        BridgeError: if ``estimator`` is not an Estimator.
        NotSupportedError: if its model_fn is not a canned one, or wraps a canned one.
    """
    from tensorflow_estimator.python.estimator import estimator as estimator_lib

    if not isinstance(estimator, estimator_lib.Estimator):
        raise BridgeError(
            "Only an Estimator can be converted to a Keras model.",
            expected="a canned Estimator, such as tf.estimator.DNNClassifier(...)",
            received=f"{type(estimator).__qualname__}: {estimator!r:.80}",
            fix="Build the Estimator with the arguments it was trained with: a checkpoint does not contain feature columns.",
        )
    model_fn = estimator._model_fn
    module = getattr(model_fn, "__module__", None) or ""
    package, _, kind = module.rpartition(".")
    if package != PACKAGE or kind not in KINDS:
        raise NotSupportedError(
            f"The model_fn {getattr(model_fn, '__qualname__', model_fn)!r} does not belong to a canned Estimator.",
            expected="tf.estimator's Linear, DNN, DNNLinearCombined, Baseline, RNN or KMeans, or a subclass with the same model_fn",
            received=f"{type(estimator).__qualname__} with a model_fn from {module or 'an unknown module'}",
            fix="Run it with `estimator-bridge run --path modern`, which supports any model_fn.",
        )
    if inspect.ismethod(model_fn):  # KMeans has a method as model_fn
        values = {name.lstrip("_"): value for name, value in vars(model_fn.__self__).items()}
    else:
        values = dict(inspect.getclosurevars(model_fn).nonlocals)
    return Settings(kind, values, kind == "rnn" or isinstance(estimator, estimator_lib.EstimatorV2))
