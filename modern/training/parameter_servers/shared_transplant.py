"""A transplant whose variables are on parameter servers, for any number of trainers."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Tensor, refused
from estimator_bridge.modern.graph.model_graph import v1
from estimator_bridge.modern.graph.optimizers.capture import Update
from estimator_bridge.modern.graph.savers import SavedTensor
from estimator_bridge.modern.graph.variables import assigned
from estimator_bridge.modern.step.checkpoints import save_by_device
from estimator_bridge.modern.step.initial_values import OnlyBySessionError, device_values
from estimator_bridge.modern.step.shared_folders import folder_of, is_shared
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
        self._check_synchronous()
        self._check_local()

    @property
    def trainers(self) -> int:
        """Number of the chief and the workers."""
        return int(getattr(tf.distribute.get_strategy().extended, "_num_workers", 0)) + 1

    @property
    def _servers(self) -> list[str]:
        """Devices of the parameter servers; without a cluster, this process."""
        servers = int(getattr(tf.distribute.get_strategy().extended, "_num_ps", 0))
        return [f"/job:ps/replica:0/task:{index}/device:CPU:0" for index in range(servers)] or ["/device:CPU:0"]

    def _initial_values(self) -> Mapping[str, Any]:
        try:
            return device_values(self.model, self._servers)
        except OnlyBySessionError as reason:
            v1.logging.info("The chief's memory must hold all initial values several times over, since %s.", reason)
            return super()._initial_values()

    def save(self, saved: Sequence[SavedTensor], prefix: str) -> None:
        """Writes a checkpoint with a data file of each parameter server, or with one of this process if they do not share its folder.

        Training waits meanwhile, so all values are of the same moment.
        """
        self.pause()
        if is_shared(folder_of(prefix), sorted({self.settled[one.variable].device for one in saved})):
            save_by_device(self.settled, saved, prefix)
        else:
            super().save(saved, prefix)

    def pause(self) -> None:
        """Waits until no worker trains, so that what a saver and its listeners read is of one step."""
        if self.interrupt:
            self.interrupt()

    def _with_optimizers(self) -> list[tuple[Update, Any]]:
        updates = super()._with_optimizers()
        for update, optimizer in updates:
            for name in optimizer._hyper.keys() & (update.hyperparameters.keys() - update.changing().keys()):
                optimizer._hyper[name] = functools.partial(tf.constant, update.hyperparameters[name], tf.float32)
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
            raise refused(
                local[written[0]].op,
                f"The train_op writes to the local variable {written[0]!r}. On TF1 each worker has its own copy, but on parameter "
                "servers all workers would share one.",
                expected="a train_op that writes global variables",
                fix="Let the train_op not depend on it (summaries may), or use --path legacy.",
            )

    def begin_step(self, batch: Sequence[Tensor]) -> dict[str, Tensor]:
        """Runs a step on one replica up to its gradients. Returns the tensors so far by their names in the graph."""
        known = {placeholder.name: tensor for placeholder, tensor in zip(self.model.batch, batch, strict=True)}
        self._run_stage(0, known)
        return known

    def end_step(self, known: dict[str, Tensor], gradients: Sequence[Tensor]) -> dict[str, Tensor]:
        """Applies gradients, in the order of ``gradients``, and runs the rest of a step. Returns the tensors of the whole step."""
        known = known | {tensor.name: gradient for tensor, gradient in zip(self.gradients, gradients, strict=True)}
        for update, optimizer in self.updates:
            self._apply(update, optimizer, known, None)
        for stage in range(1, len(self._stages)):
            self._run_stage(stage, known)
        return known

    @property
    def gradients(self) -> list[Tensor]:
        """The gradients of a step in the graph: values, indices and dense shape of sparse ones."""
        return [tensor for update, _ in self.updates for tensor in update.gradients()]

    def _run_stage(self, number: int, known: dict[str, Tensor]) -> None:
        stage, run = self._stages[number]
        outputs = run([known[tensor.name] for tensor in stage.fragment.inputs])
        known.update(zip((tensor.name for tensor in stage.fragment.outputs), outputs, strict=True))

    def _check_synchronous(self) -> None:
        """Refuses a synchronous step whose gradients do not all come before its updates."""
        if self.model.synchronous and any(stage.updates for stage, _ in self._stages[1:]):
            raise NotSupportedError(
                "Some gradients of the step wait for other updates of it, so they cannot be averaged together.",
                expected="with SyncReplicasOptimizer: one optimizer, or several that do not wait for each other",
                fix="Use --path legacy for this script.",
            )
