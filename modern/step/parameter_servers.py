"""A training step that several trainers run at the same time, without waiting for each other."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.model_graph import v1
from estimator_bridge.modern.graph.optimizers.capture import Update
from estimator_bridge.modern.graph.source_lines import located
from estimator_bridge.modern.graph.variables import assigned
from estimator_bridge.modern.step.transplant import Transplant


class SharedTransplant(Transplant):
    """A transplant that any number of trainers may run.

    Hyperparameters are part of each trainer's step, as they are in a TF1 graph. Keras' optimizers keep them in variables, in which one
    trainer would find the learning rate that another has computed for its own step.

    Args:
        args: Arguments of ``Transplant``.

    Raises:
        NotSupportedError: The step would not do the same if several trainers ran it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._check_counting()
        self._check_local()

    def _with_optimizers(self) -> list[tuple[Update, Any]]:
        updates = super()._with_optimizers()
        for update, optimizer in updates:
            given = {name: value for name, value in update.hyperparameters.items() if name in optimizer._hyper}
            constants = {name: value for name, value in given.items() if name not in update.changing()}
            optimizer._hyper |= {name: functools.partial(tf.constant, value, tf.float32) for name, value in constants.items()}
            optimizer.gradient_aggregator = list  # the pairs as they are, since a trainer is one replica
        return updates

    def _set_hyperparameter(self, optimizer: Any, name: str, value: Tensor) -> None:
        optimizer._hyper[name] = tf.cast(value, tf.float32)

    def _check_counting(self) -> None:
        """Refuses a step that does not count by one, since tickets are global steps."""
        name = self.model.global_step.op.name
        counts = [op for op in self.operations if name in assigned([op])]
        if [op.type for op in counts] == ["AssignAddVariableOp"] and tf.get_static_value(counts[0].inputs[1]) == 1:
            return
        raise NotSupportedError(
            "The train_op does not increase the global step by one, so the number of steps on parameter servers would be unknown.",
            expected="optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step()), once in a step",
            received=", ".join(f"{op.type} {op.name!r}" for op in counts) or "a train_op that does not count",
            fix="Count each step once, or use --path legacy. Write global_step.assign_add(1) in place of "
            "global_step.assign(global_step + 1), as in BERT, which counts two simultaneous steps as one.",
        )

    def _check_local(self) -> None:
        """Refuses a step that writes to local variables, which each trainer has for itself on TF1."""
        local = {variable.op.name: variable for variable in self.model.collection(v1.GraphKeys.LOCAL_VARIABLES)}
        written = sorted(assigned(self.operations) & local.keys())
        if written:
            error = NotSupportedError(
                f"The train_op writes to the local variable {written[0]!r}. On TF1 each worker has its own copy, but on parameter "
                "servers all workers would share one.",
                expected="a train_op that writes global variables",
                fix="Let the train_op not depend on it (summaries may), or use --path legacy.",
            )
            raise located(error, local[written[0]].op)
