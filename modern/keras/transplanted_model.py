"""A transplant as a tf_keras.Model, which ``fit`` trains and tf.train.Checkpoint saves under TF1's names."""

from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint.models import named_graph
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.step.transplant import Transplant

Tensor = Any
_HOW_TO_RUN = ("steps_per_execution", "run_eagerly", "jit_compile")


class TransplantedModel(tf_keras.Model):
    """A transplant that ``fit`` trains; build it under the strategy's scope.

    ``fit`` takes a dataset of the flat tuples that ``ModelGraph.pipeline.dataset()`` yields. ``tf.train.Checkpoint(model=model,
    optimizer=model.optimizer)`` saves and restores the tensors that a TF1 Saver would, under TF1's names. Hyperparameters are not
    saved, since they are the script's.

    Args:
        transplant: Training step; its variables keep their TF1 names.

    Attributes:
        optimizer: State of all of the script's optimizers: slots and beta powers by their TF1 names.
    """

    def __init__(self, transplant: Transplant) -> None:
        super().__init__(autocast=False)  # types are the graph's
        self.transplant = transplant
        own = {id(variable) for variable in transplant.store.by_name.values()}
        saved = {named_graph.label(one.name, one.slice_spec): transplant.settled[one.variable] for one in transplant.saved()}
        setattr(self, named_graph.VARIABLES, {label: variable for label, variable in saved.items() if id(variable) in own})
        self.optimizer = OptimizerState({label: variable for label, variable in saved.items() if id(variable) not in own})
        self.compile()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles the model with ``steps_per_execution``, ``run_eagerly`` and ``jit_compile``.

        Raises:
            NotSupportedError: There is an optimizer, a loss or a metric, but the model_fn has its own.
        """
        given = [*args, *(name for name in kwargs if name not in _HOW_TO_RUN)]
        if given:
            raise NotSupportedError(
                "The model_fn has its own loss, optimizer and metrics.",
                expected=", ".join(_HOW_TO_RUN),
                received=", ".join(map(str, given)),
                fix="Leave them out, or change the model_fn.",
            )
        state = self.optimizer
        super().compile(**kwargs)
        self.optimizer = state  # instead of the one that Keras makes by default

    def call(self, inputs: Any) -> Any:
        """Not available, since the training graph computes only a loss; predictions come from the graph of PREDICT mode."""
        raise NotSupportedError(
            "A transplanted training graph has no forward pass of its own.",
            fix="Use fit() here and Estimator.predict for predictions.",
        )

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Runs one step on one replica and returns ``{"loss": scalar}``."""
        return {"loss": self.transplant.step(data)[0]}


class OptimizerState(tf.__internal__.tracking.AutoTrackable):
    """The slots and beta powers of a transplant, tracked by name in one namespace for all of a script's optimizers.

    Args:
        variables: Name -> variable.
    """

    def __init__(self, variables: dict[str, Any]) -> None:
        super().__init__()
        for name, variable in variables.items():
            self._track_trackable(variable, name)
