"""``modern.canned``: a canned Estimator as a Keras model."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned import clustering
from estimator_bridge.modern.canned.columns import Inputs
from estimator_bridge.modern.canned.columns.embedding import CombinedEmbedding
from estimator_bridge.modern.canned.heads.base import Head
from estimator_bridge.modern.canned.heads.reading import layer
from estimator_bridge.modern.canned.model import BaselineModel, CannedModel
from estimator_bridge.modern.canned.networks import PARTS, NetworkPart
from estimator_bridge.modern.canned.optimizers import make_optimizer, restore_optimizer
from estimator_bridge.modern.canned.reading import Settings, read
from estimator_bridge.modern.canned.weights import Saved, find_checkpoint, take_over

Model = Any  # tf_keras.Model


def canned(estimator: Any, checkpoint_path: str | None = None, optimizer: Any = None) -> Model:
    """Converts a canned Estimator and its checkpoint to a Keras model that predicts, evaluates and trains in the same way.

    The model is functional, except for Baseline and KMeans, which have no fixed inputs. It has an ``Input`` for each feature,
    preprocessing layers in place of the feature columns, Keras' own layers in between, and the head's predictions as outputs.
    ``model.predict`` returns the keys of ``Estimator.predict`` (a MultiHead's as ``head/key``). ``model.evaluate`` with
    ``return_dict=True`` returns the keys of ``Estimator.evaluate`` except ``global_step``, which is ``model.optimizer.iterations``.
    Batches are those of the input_fn: a dict of features, which includes the weight column, and labels.

    Args:
        estimator: Linear, DNN, DNNLinearCombined, Baseline, RNN or KMeans, from ``tf.estimator`` or ``tf.compat.v1.estimator``.
        checkpoint_path: Checkpoint with the weights (default: the latest checkpoint in the Estimator's model_dir).
        optimizer: tf_keras optimizer to compile with, in place of the Estimator's own.

    Returns:
        A compiled ``tf_keras.Model``. The Estimator's own optimizer continues with its hyperparameters, slots and global step;
        another optimizer starts without state.

    Raises:
        BridgeError: if there is no checkpoint, or if it belongs to another model.
        NotSupportedError: if a part has no Keras counterpart: another model_fn, a custom head, an optimizer. The error names it.

    Example:
        >>> import tempfile
        >>> from estimator_bridge import legacy, modern
        >>> legacy.install()
        >>> import tensorflow as tf
        >>> features = {"size": [[1.0], [2.0], [3.0]]}
        >>> def input_fn():
        ...     return tf.data.Dataset.from_tensors((features, [[2.0], [4.0], [6.0]])).repeat(20)
        >>> size = tf.feature_column.numeric_column("size")
        >>> estimator = tf.estimator.LinearRegressor([size], tempfile.mkdtemp())
        >>> estimator = estimator.train(input_fn)
        >>> model = modern.canned(estimator)
        >>> predicted = model.predict(tf.data.Dataset.from_tensors(features), verbose=0)
        >>> expected = [row["predictions"][0] for row in estimator.predict(lambda: tf.data.Dataset.from_tensors(features))]
        >>> bool(max(abs(predicted["predictions"][:, 0] - expected)) < 1e-6)
        True
    """
    settings = read(estimator)
    checkpoint = find_checkpoint(estimator, checkpoint_path)
    if settings.kind == "kmeans":
        return clustering.model(settings, checkpoint)
    head = layer(settings["head"])
    if settings.kind == "baseline":
        model = BaselineModel(head)
        parts = [NetworkPart(None, [Saved(model.bias, ("baseline/bias",))], settings["optimizer"], 0.3)]
    else:
        model, parts = _functional(settings, head)
    names = take_over([weight for part in parts for weight in part.weights], checkpoint)
    _freeze_untrained(model, names)
    model.compile(optimizer or make_optimizer(settings, parts, model.trainable_variables))
    if optimizer is None:
        restore_optimizer(checkpoint, model.optimizer, model.trainable_variables, names)
    model.optimizer.iterations.assign(tf.train.load_variable(checkpoint, "global_step"))
    return model


def _freeze_untrained(model: Model, names: Mapping[Any, str]) -> None:
    """Freezes variables of ``shared_embeddings`` at a checkpoint's root, which ``tf.estimator``'s Estimators never train."""
    for one in model.layers:
        if isinstance(one, CombinedEmbedding) and "/" not in names[one.embeddings.ref()] and one.trainable:
            one.trainable = False
            tf.compat.v1.logging.warn(
                "%s is frozen in the Keras model: this Estimator does not train shared_embeddings.", one.name
            )


def _functional(settings: Settings, head: Head) -> tuple[Model, list[NetworkPart]]:
    columns = [value for name, value in settings.values.items() if name.endswith("feature_columns")]
    inputs = Inputs([column for some in columns for column in some or ()])
    parts = PARTS[settings.kind](settings, inputs, head.units)
    logits = parts[0].logits if len(parts) == 1 else tf_keras.layers.Add()([part.logits for part in parts])
    mask = parts[0].mask
    return CannedModel(inputs.keras, head(logits if mask is None else [logits, mask])), parts
