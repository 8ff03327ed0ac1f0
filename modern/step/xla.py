"""XLA for the gradients of a transplanted step: choice of the compiled operations, and refusals."""

import contextlib
import functools
import re
from collections.abc import Collection, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import kernels

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.distribution.strategies import check_one_replica
from estimator_bridge.modern.graph.fragments import Fragment, Operation, is_copied, refused, upstream
from estimator_bridge.modern.graph.side_effects import Effect, Effects
from estimator_bridge.modern.graph.stages import Stage
from estimator_bridge.modern.graph.variables import VariableStore, assigned
from estimator_bridge.modern.step.transplant import Transplant

logging = tf.compat.v1.logging


class CompiledTransplant(Transplant):
    """A transplant whose gradients XLA computes, from the first operation that it can compile.

    XLA does not compile the optimizers' updates, the watched tensors, operations on strings or without an XLA kernel, and all
    operations for which these wait.

    Raises:
        NotSupportedError: XLA cannot compile the loss itself, or there are several replicas.
    """

    def _import(self) -> None:
        check_one_replica(tf.distribute.get_strategy(), "XLA compiles steps", "--jit-compile")
        super()._import()
        effects = Effects(self.model.graph)
        variables = VariableStore(self.model.variables(), {}, shared=self.variables)
        compiled: set[Operation] = set()
        stages: list[tuple[Stage, Any]] = []
        for stage, run in self._stages:
            if not stage.updates and stages:  # e.g., counting the step
                stages.append((stage, run))
                continue
            outside, inside = self._parts(stage, effects)
            stages += [
                (outside, variables.function(outside.fragment)),
                (inside, variables.function(inside.fragment, compiled=True)),
            ]
            compiled |= inside.operations
        self._stages = stages
        if self.model.spec.loss.op not in compiled:
            raise _loss_waits(self.model.spec.loss.op, self.operations, effects)
        _tell(compiled & self.operations, self.operations, effects)

    def _parts(self, stage: Stage, effects: Effects) -> tuple[Stage, Stage]:
        """Splits a stage in two: operations outside of XLA, and then those that XLA compiles."""
        ops = stage.operations
        outside = upstream([op for op in ops if not _can_compile(op, effects)], lambda op: op not in ops)
        inside = ops - outside
        outputs = stage.fragment.outputs
        crossing = [tensor for op in inside for tensor in op.inputs if tensor.op in outside and not is_copied(tensor.op)]
        compiled = Fragment.cut(inside, [tensor for tensor in outputs if tensor.op in inside])
        _refuse_changes(assigned(outside) & {handle.op.name for handle in compiled.handles})
        kept = {tensor.name: tensor for tensor in (*outputs, *crossing) if tensor.op in outside}
        before = Stage(Fragment.cut(outside, list(kept.values())), (), frozenset(outside))
        return before, Stage(compiled, stage.updates, inside)


@contextlib.contextmanager
def refusals(enabled: bool) -> Iterator[None]:
    """While active, replaces XLA's errors, which it raises when it compiles for the first batch of a shape.

    Args:
        enabled: True if --jit-compile asked for XLA; if the script did, its errors stay TensorFlow's.

    Raises:
        NotSupportedError: XLA cannot compile the step.
    """
    try:
        yield
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
        if not enabled or ("tf2xla" not in error.message and "compile-time constant" not in error.message):
            raise
        lines = error.message.splitlines()
        raise NotSupportedError(
            "XLA cannot compile the training step.",
            expected="operations whose result shapes follow from the shapes of the batch",
            received=next((line for line in lines if re.search("must be|nsupported|No registered", line)), ""),
            fix="Leave out --jit-compile, or give batches a fixed size (drop_remainder=True) if shapes are missing.",
        ) from error


def _can_compile(op: Operation, effects: Effects) -> bool:
    strings = any(tensor.dtype == tf.string for tensor in (*op.inputs, *op.outputs))
    return not strings and effects.kinds(op) <= _kinds_with_kernel()


@functools.cache
def _kinds_with_kernel() -> frozenset[str]:
    """Compiles a small function, since TensorFlow registers XLA's kernels only then, and returns the operations that have one."""
    tf.function(lambda: tf.constant(0.0) + 1.0, jit_compile=True)()
    device = "XLA_GPU_JIT" if tf.config.list_logical_devices("GPU") else "XLA_CPU_JIT"
    return frozenset(kernel.op for kernel in kernels.get_all_registered_kernels().kernel if kernel.device_type == device)


def _loss_waits(loss: Operation, ops: Collection[Operation], effects: Effects) -> NotSupportedError:
    without = sorted((op for op in ops if not _can_compile(op, effects)), key=lambda op: op._id)
    after = next((op for op in without if loss in upstream([op], lambda one: one not in ops)), loss)
    return refused(
        after,
        f"XLA cannot compile the loss, which {after.type} {after.name!r} waits for.",
        expected="a train_op in which only operations with an XLA kernel wait for the loss",
        fix="Leave out --jit-compile.",
    )


def _refuse_changes(names: Collection[str]) -> None:
    if names:
        raise NotSupportedError(
            f"The variable {min(names)!r} changes before an operation that XLA cannot compile, and is read after that operation.",
            expected="variables that change after the gradients",
            fix="Leave out --jit-compile.",
        )


def _tell(compiled: Collection[Operation], ops: Collection[Operation], effects: Effects) -> None:
    without = sorted({op.type for op in ops if not _can_compile(op, effects)})
    logging.warn(
        "XLA compiles %d of the %d operations of a step%s. It adds and multiplies in another order, so results differ by rounding.",
        len(compiled),
        len(ops),
        f"; it has no kernel for {', '.join(without)}" if without else "",
    )
    drawing = [op.name for op in compiled if effects.of(op) is Effect.DRAW]
    if drawing:
        logging.warn("XLA draws its own random numbers, which no seed repeats: %s.", ", ".join(sorted(drawing)))
