"""The place in the input at which a training goes on, whatever the number of workers before and after.

Each step takes the next batches of one order. So the number of steps says which batches were used, and a file beside the checkpoints
says where the count began and by which seed the input was shuffled.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.lib.io import file_io

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.distribution.input_sharding import takes_context
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.graph.input_pipeline import InputPipeline
from estimator_bridge.runtime.dataset_sharding import Definition, definition, without_order

FILE = "input_position.json"
"""File in the model_dir."""
_LIMIT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class InputPosition:
    """Beginning and order of the input of a training.

    Attributes:
        seed: Seed of the input_fn's random numbers.
        first_step: Global step before the first batch of the input.
        batches: Number of batches that all workers together take for a step.
    """

    seed: int
    first_step: int
    batches: int

    def used(self, step: int) -> int:
        """Returns the number of batches that were used before a global step.

        Example:
            >>> InputPosition(seed=1, first_step=100, batches=4).used(150)
            200
        """
        return (step - self.first_step) * self.batches

    def rest(self, dataset: tf.data.Dataset, step: int, distribution: Distribution) -> tf.data.Dataset:
        """Returns the batches that this worker takes from a global step on.

        Args:
            dataset: All batches, the same in each worker.
            step: Global step.
            distribution: This worker's number, and how many batches of a step each worker takes.
        """
        takes = distribution.step_batches
        start = sum(takes[: distribution.worker])
        end = start + takes[distribution.worker]
        remaining = dataset.skip(self.used(step))
        if len(takes) == 1:
            return remaining

        def is_own(number: Any, _: Any) -> Any:
            place = number % self.batches
            return (place >= start) & (place < end)

        return remaining.enumerate().filter(is_own).map(lambda _, batch: batch)


def common_position(model_dir: str, step: int, distribution: Distribution) -> InputPosition:
    """Reads the position of the input, or begins one at a step if the training has none. All workers must call it.

    Args:
        model_dir: Folder of the checkpoints.
        step: Global step of the latest checkpoint.
        distribution: Strategy, with the number of batches of a step.

    Raises:
        BridgeError: The file is broken, or its training took another number of batches.
    """
    problem: Exception | None = None
    position = InputPosition(secrets.randbelow(_LIMIT - 1) + 1, step, sum(distribution.step_batches))
    if distribution.worker == 0:
        try:
            position = _known(tf.io.gfile.join(model_dir, FILE), position)
        except (tf.errors.OpError, BridgeError) as error:
            problem = error
    row = tf.constant([position.seed, position.first_step, problem is not None], tf.int64)
    seed, first_step, is_broken = distribution.gather(row)[0].numpy().tolist()
    if is_broken:
        raise problem or BridgeError("The chief cannot begin this training.", fix="Read the chief's log.")
    return dataclasses.replace(position, seed=seed, first_step=first_step)


def keep_position(model_dir: str, position: InputPosition, distribution: Distribution) -> None:
    """Writes a position beside the checkpoints, unless it is there; only the chief does so."""
    path = tf.io.gfile.join(model_dir, FILE)
    if distribution.worker == 0 and not tf.io.gfile.exists(path):
        tf.io.gfile.makedirs(model_dir)
        file_io.atomic_write_string_to_file(path, json.dumps(dataclasses.asdict(position)) + "\n", overwrite=True)


def _known(path: str, new: InputPosition) -> InputPosition:
    if not tf.io.gfile.exists(path):
        return new
    with tf.io.gfile.GFile(path, "rb") as file:
        text = file.read().decode(errors="replace")
    try:
        fields: Mapping[str, Any] = json.loads(text)
        known = InputPosition(**{name: fields[name] for name in vars(new)})
    except (ValueError, TypeError, KeyError):
        known = InputPosition(0, 0, 0)
    if not all(type(value) is int for value in vars(known).values()) or not 0 < known.seed <= _LIMIT or known.first_step < 0:
        raise BridgeError(
            f"{path} does not say where the input goes on.",
            expected=json.dumps(dataclasses.asdict(new)),
            received=text[:200],
            fix="Restore the file; or remove it, and the input begins with its first batch.",
        )
    if known.first_step > new.first_step:
        raise BridgeError(
            "The training began at a later step than that of its latest checkpoint.",
            expected=f"a checkpoint of step {known.first_step} or later, as {path} says",
            received=f"step {new.first_step}",
            fix="Restore the checkpoints; or remove the file, and the input begins with its first batch.",
        )
    if known.batches != new.batches:
        raise BridgeError(
            f"The training takes {known.batches} batches for each step, and this plan takes {new.batches}.",
            expected=f"micro = {known.batches}, as {path} says",
            received=f"micro = {new.batches}",
            fix="Correct the plan; or remove the file, and the input begins with its first batch.",
        )
    return known


def check_whole(pipeline: InputPipeline, input_fn: Callable[..., Any], distribution: Distribution) -> None:
    """Refuses an input that has no order which all workers can count. All workers must call it.

    Args:
        pipeline: Pipeline of the input_fn.
        input_fn: The script's function.
        distribution: Strategy, with the number of workers.

    Raises:
        NotSupportedError: The script divides its input itself, or its order changes from run to run.
    """
    if takes_context(input_fn):
        raise _refused("takes an input_context, by which it divides its data", "Leave out input_context.")
    if pipeline.queue_runners or not pipeline.datasets:
        raise _refused("returns tensors instead of a tf.data.Dataset", "Return a Dataset.")
    datasets = pipeline.datasets.values()
    own = tf.constant(list(map(int, definition(datasets))), tf.int64)
    every = [Definition(*row) for row in distribution.gather(own).numpy().tolist()]
    if any(one.shards for one in every):
        raise _refused("shards its dataset by itself", "Leave out dataset.shard.")
    if any(one.generated or one.python for one in every):
        raise _refused(
            "reads its data by Python (a generator, tf.py_func), whose order nobody sees", "Use operations of TensorFlow."
        )
    if len({one.digest for one in every}) > 1:
        raise _refused("gives the workers different datasets", "Return the same dataset in each task.")
    for name in without_order(datasets):
        raise _refused(
            f"reads its data in an order that differs from run to run ({name})",
            "Set sloppy=False or deterministic=True there.",
        )


def _refused(what: str, fix: str) -> NotSupportedError:
    return NotSupportedError(
        f"The input_fn {what}, so nobody can count which batches were used when the number of workers changes.",
        expected="an input_fn that returns the whole tf.data.Dataset in a fixed order",
        fix=f"{fix} Or train without [elastic] and shares.",
    )
