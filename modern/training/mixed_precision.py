"""Mixed precision: bfloat16 for the operations that TensorFlow's graph optimizer chooses for oneDNN's kernels, and a log of them."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.training.experimental import mixed_precision_global_state

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.distribution.strategies import Distribution, check_one_replica
from estimator_bridge.modern.graph.fragments import all_nodes
from estimator_bridge.modern.step.transplant import Transplant

logging = tf.compat.v1.logging

_PASS = "auto_mixed_precision_onednn_bfloat16"


@contextlib.contextmanager
def mixed_precision(distribution: Distribution, enabled: bool) -> Iterator[list[Callback]]:
    """While active, new functions compute in bfloat16 wherever TensorFlow considers it safe; variables stay float32.

    bfloat16 has the exponents of float32, so gradients vanish no more often than in float32, and losses need no scaling.

    Args:
        distribution: Distribution of the training.
        enabled: False to change nothing.

    Yields:
        Callbacks that log which operations compute in bfloat16.

    Raises:
        NotSupportedError: There are devices other than CPUs, or several replicas.
    """
    if not enabled:
        yield []
        return
    _check(distribution)
    before = tf.config.optimizer.get_experimental_options().get(_PASS, False)
    tf.config.optimizer.set_experimental_options({_PASS: True})
    try:
        with contextlib.closing(_PrecisionLog()) as log:
            yield [log]
    finally:
        tf.config.optimizer.set_experimental_options({_PASS: before})


class UnscaledTransplant(Transplant):
    """A transplant whose script sets no precision of its own.

    Raises:
        NotSupportedError: The script asked TensorFlow for float16 and a scaled loss.
    """

    def _import(self) -> None:
        if mixed_precision_global_state.is_mixed_precision_graph_rewrite_enabled():
            raise NotSupportedError(
                "The script calls enable_mixed_precision_graph_rewrite, which is for float16.",
                expected="with --mixed-precision: a script that sets no precision of its own",
                fix="Leave out --mixed-precision, or remove the call.",
            )
        super()._import()


class _PrecisionLog(Callback):
    """Logs the precision of the first steps' graphs, as TensorFlow optimised them."""

    _is_active = False

    def begin(self, transplant: Transplant, step: int) -> None:
        context.context().enable_graph_collection()
        self._is_active = True

    def after(self, progress: Progress) -> bool:
        if self._is_active:
            _log(context.context().export_run_metadata())
            self.close()
        return False

    def close(self) -> None:
        """Stops collecting graphs."""
        if self._is_active:
            context.context().disable_graph_collection()
        self._is_active = False


def _check(distribution: Distribution) -> None:
    accelerators = {device.device_type for device in tf.config.list_logical_devices()} - {"CPU"}
    if accelerators:
        raise NotSupportedError(
            "Mixed precision works only on CPUs.",
            expected="no other devices",
            received=f"--mixed-precision with a {min(accelerators)}",
            fix="Leave out --mixed-precision, or hide the device (for GPUs: CUDA_VISIBLE_DEVICES=-1).",
        )
    check_one_replica(distribution.strategy, "Mixed precision works", "--mixed-precision")


def _log(metadata: Any) -> None:
    nodes = [node for ran in metadata.function_graphs for node in all_nodes(ran.post_optimization_graph)]
    rounded = Counter(node.op for node in nodes if node.attr["T"].type == tf.bfloat16.as_datatype_enum)
    if not rounded:
        logging.warn("Mixed precision changes nothing: TensorFlow found no operation to compute in bfloat16 on this CPU.")
        return
    logging.warn(
        "Mixed precision: bfloat16, with 8 significant bits, in %d of the %d operations of a step's optimised graph (%s). "
        "Results are approximate; variables stay float32.",
        rounded.total(),
        len(nodes),
        ", ".join(sorted(rounded)),
    )
