"""Keras models of the cells in tests/golden/rnn, which TensorFlow 1.15.5 trained."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

GOLDEN = Path(__file__).parents[3] / "golden" / "rnn"
FAMILIES = {"legacy": "tf_keras", "new": "tf_keras", "keras3": "keras"}  # and the library that has it
RATE = 0.05
# In the order of the scopes in the golden: class, units, arguments. Nothing but sizes and reset_after tells one from another.
LAYERS: dict[str, tuple[tuple[str, int, dict[str, Any]], ...]] = {
    "basic_lstm": (("LSTM", 2, {}),),
    "basic_rnn": (("SimpleRNN", 9, {}),),
    "block": (("LSTM", 4, {}),),
    "cudnn_gru": (("GRU", 8, {"reset_after": True}),),
    "cudnn_lstm": (("LSTM", 7, {}),),
    "fused": (("LSTM", 10, {}),),
    "gru": (("GRU", 5, {"reset_after": False}),),
    "gru_block": (("GRU", 6, {"reset_after": False}),),
    "lstm": (("LSTM", 3, {}),),
    "stacked": (("LSTM", 11, {"return_sequences": True}), ("LSTM", 12, {})),
}


class Side(NamedTuple):
    """A Keras model with its optimizer, and a checkpoint of both."""

    model: Any
    optimizer: Any
    checkpoint: tf.train.Checkpoint
    prefix: str


def side(family: str, folder: Path, layers: Any = None, optimizer: Any = None) -> Side:
    """Untrained."""
    library = importlib.import_module(FAMILIES[family])
    model = _model(library, (layers or LAYERS).values())
    namespace = library.optimizers.legacy if family == "legacy" else library.optimizers
    made = optimizer(namespace) if optimizer else namespace.Adam(RATE, epsilon=1e-8)
    if family == "legacy":
        made._create_all_weights(model.trainable_variables)
    else:
        made.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=made)
    return Side(model, made, checkpoint, checkpoint.save(str(folder / family / "like")))


def _model(library: Any, chains: Any) -> Any:
    """A subclassed model, built without a call: functional ones take a second a layer to trace."""

    class Model(library.Model):
        def __init__(self) -> None:
            super().__init__()
            self.rnns, self.lengths = [], [len(chain) for chain in chains]
            for chain in chains:
                inputs = 3
                for kind, units, arguments in chain:
                    layer = getattr(library.layers, kind)(units, **arguments)
                    layer.build((None, 5, inputs))
                    self.rnns.append(layer)
                    inputs = units

        def call(self, inputs: Any) -> list[Any]:
            layers = iter(self.rnns)
            return [functools.reduce(lambda x, _: next(layers)(x), range(length), inputs) for length in self.lengths]

    return Model()


def outputs(model: Any, x: np.ndarray) -> list[np.ndarray]:
    return [output.numpy() for output in model.call(x)]


def train(keras: Side, x: np.ndarray, steps: int) -> None:
    """Builds the same model as the golden's generator."""
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_mean((output - 0.3) ** 2) for output in keras.model.call(x)])
        variables = keras.model.trainable_variables
        keras.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
