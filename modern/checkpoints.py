"""Name-based checkpoints of a transplanted model: what the legacy path saves, either path resumes from."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.checkpoint import checkpoint_management

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern import optimizers
from estimator_bridge.modern.capture import Update
from estimator_bridge.modern.transplant import Transplant


@dataclasses.dataclass(frozen=True)
class Entry:
    """One tensor of a checkpoint: a whole variable, or one slice of a partitioned one.

    Attributes:
        key: the name of its operation in the graph.
        name: its TF1 name in a checkpoint, that of the whole variable for a slice.
        slice_spec: "" or TF's notation of full shape and extents.
        dtype: as saved.
        variable: whose value it is.
    """

    key: str
    name: str
    slice_spec: str
    dtype: tf.DType
    variable: Any

    @classmethod
    def of(cls, template: Any, variable: Any) -> Entry:
        """The entry under which TF1's Saver would keep ``template``, a variable of the graph."""
        info = template._save_slice_info
        name, spec = (info.full_name, info.spec) if info else (template.op.name, "")
        return cls(template.op.name, name, spec, template.dtype.base_dtype, variable)

    def read(self) -> Any:
        """The value to save."""
        return self.variable.read_value()

    def write(self, value: Any) -> None:
        """Takes a value that was restored."""
        self.variable.assign(value)


def entries(transplant: Transplant) -> list[Entry]:
    """Everything that a TF1 Saver would save of the same graph, slots and beta powers included."""
    store = transplant.store
    plain = [
        Entry.of(template, store[template])
        for template in transplant.model.collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
        if template in store
    ]
    slots = [entry for update, optimizer in transplant.updates for entry in _slots(transplant, update, optimizer)]
    return list({entry.key: entry for entry in [*plain, *slots]}.values())  # an optimizer may apply twice in a step


def save(items: Sequence[Entry], prefix: str) -> None:
    """Writes ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``; both appear under their names only when complete."""
    values = [tf.cast(entry.read(), entry.dtype) for entry in items]
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=[entry.name for entry in items],
        shape_and_slices=[entry.slice_spec for entry in items],
        tensors=values,
    )


def restore(items: Sequence[Entry], prefix: str) -> None:
    """Assigns every entry from a checkpoint.

    Raises:
        BridgeError: when the checkpoint lacks some of them; nothing is assigned then.
    """
    reader = tf.train.load_checkpoint(prefix)
    missing = sorted({entry.name for entry in items if not reader.has_tensor(entry.name)})
    if missing:
        raise BridgeError(
            f"The checkpoint {prefix} lacks {len(missing)} of the model's variables.",
            expected=", ".join(missing[:5]) + (", ..." if len(missing) > 5 else ""),
            received=f"{len(reader.get_variable_to_shape_map())} variables",
            fix="Use the model_dir of the same model, or an empty one.",
        )
    values = tf.raw_ops.RestoreV2(
        prefix=prefix,
        tensor_names=[entry.name for entry in items],
        shape_and_slices=[entry.slice_spec for entry in items],
        dtypes=[entry.dtype for entry in items],
    )
    for entry, value in zip(items, values, strict=True):
        entry.write(value)


def initialise(items: Sequence[Entry], values: Mapping[str, Any]) -> None:
    """Assigns what the graph's own initialisers gave, so that Keras slots start where TF1's would."""
    for entry in items:
        entry.write(values[entry.key])


def _slots(transplant: Transplant, update: Update, optimizer: Any) -> Iterator[Entry]:
    rule = optimizers.RULES[type(update.optimizer).__name__]
    for _, variable in update.pairs:
        for old, new in rule.slots.items():
            template = update.optimizer.get_slot(variable, old)
            if template is not None:
                yield Entry.of(template, optimizer.get_slot(transplant.store[variable], new))
    for name, template in update.powers().items():
        yield Entry.of(template, optimizer.powers[name])


class CheckpointFolder:
    """The checkpoints of a model_dir: saves new ones, deletes those that ``keep_checkpoint_max`` no longer wants.

    Args:
        items: what to save.
        config: a RunConfig: model_dir, keep_checkpoint_max, keep_checkpoint_every_n_hours.
    """

    def __init__(self, items: Sequence[Entry], config: Any) -> None:
        self._items = items
        self._folder = config.model_dir
        self._keep = config.keep_checkpoint_max or None  # TF1: 0 and None keep all
        self._keep_seconds = (config.keep_checkpoint_every_n_hours or float("inf")) * 3600
        self._next_kept = time.time() + self._keep_seconds
        state = tf.train.get_checkpoint_state(self._folder)
        paths = [path for path in state.all_model_checkpoint_paths if tf.io.gfile.exists(path + ".index")] if state else []
        self._saved = [(path, tf.io.gfile.stat(path + ".index").mtime_nsec / 1e9) for path in paths]

    def save(self, step: int) -> str:
        """Writes ``model.ckpt-STEP``, then the ``checkpoint`` file that names it, then deletes what is too old.

        Returns:
            The new checkpoint's prefix.
        """
        tf.io.gfile.makedirs(self._folder)
        prefix = f"{self._folder}/model.ckpt-{step}"
        save(self._items, prefix)
        self._saved = [(path, at) for path, at in self._saved if path != prefix] + [(prefix, time.time())]
        dropped = self._saved[: -self._keep] if self._keep else []
        self._saved = self._saved[len(dropped) :]
        checkpoint_management.update_checkpoint_state_internal(
            self._folder, prefix, [path for path, _ in self._saved], save_relative_paths=True
        )
        for path, at in dropped:
            if at > self._next_kept:
                self._next_kept += self._keep_seconds
            else:
                checkpoint_management.remove_checkpoint(path)
        return prefix
