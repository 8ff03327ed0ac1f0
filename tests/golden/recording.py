"""Record what an Estimator does on TensorFlow 1.15: the generators of this folder share it.

Python 3.7 and TensorFlow 1.15 only. The Estimator's own `train` and `evaluate` do the work; a hook reads the batch and the
loss in the same `session.run` as the training step, so nothing about the run changes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

import numpy as np
import pkg_resources
import tensorflow as tf

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"

# One thread: a sum that is split over threads is rounded differently, and on a machine with other cores split differently.
FLAGS_OF_EVERY_RUN = ["--num_threads=1"]


def load_example(name: str) -> ModuleType:
    """The example's train.py as a module, its flags parsed."""
    sys.path.insert(0, str(EXAMPLES / name))
    module = importlib.import_module("train")
    module.FLAGS([name, *FLAGS_OF_EVERY_RUN])
    return module


class Recording:
    """An Estimator whose training is recorded; it differs from the given one in nothing else."""

    def __init__(self, estimator: tf.estimator.Estimator) -> None:
        self.batches: list[dict[str, np.ndarray]] = []
        self.losses: list[np.float32] = []
        self.fetches: dict[str, Any] = {}
        self._model_fn: Callable[..., Any] = estimator.model_fn
        self.estimator = tf.estimator.Estimator(self._recorded_model_fn, config=estimator.config)

    def _recorded_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> Any:
        spec = self._model_fn(features=features, labels=labels, mode=mode, config=config)
        batch = {"features/" + key: tensor for key, tensor in features.items()}
        self.fetches = {"batch": dict(batch, labels=labels), "loss": spec.loss}
        return spec

    def train(self, input_fn: Callable[[], Any], steps: int) -> None:
        """Train for so many steps, recording each step's batch and loss."""
        self.estimator.train(input_fn, steps=steps, hooks=[_RecordingHook(self)])

    def variables(self, checkpoint: str) -> dict[str, np.ndarray]:
        """The model's variables in a checkpoint, by name, without the optimizers' slots."""
        reader = tf.train.load_checkpoint(checkpoint)
        names = sorted(reader.get_variable_to_shape_map())
        # A slot is named after its variable, with one part more; no variable of these models is named after another.
        slots = {name for name in names if any(name.startswith(other + "/") for other in names)}
        return {name: reader.get_tensor(name) for name in names if name not in slots}


class _RecordingHook(tf.estimator.SessionRunHook):
    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def before_run(self, run_context: Any) -> tf.estimator.SessionRunArgs:
        del run_context
        return tf.estimator.SessionRunArgs(self._recording.fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_context
        self._recording.batches.append(run_values.results["batch"])
        self._recording.losses.append(run_values.results["loss"])


def narrowest(values: np.ndarray) -> np.ndarray:
    """The same values in the smallest type that holds each of them exactly."""
    if values.dtype == object:
        return values.astype("S")
    candidates = {"f": [np.float16], "i": [np.uint8, np.int16, np.int32]}.get(values.dtype.kind, [])
    for dtype in candidates:
        narrowed = values.astype(dtype)
        if np.array_equal(narrowed.astype(values.dtype), values):
            return narrowed
    return values


def stacked(batches: list[dict[str, np.ndarray]]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The batches stacked by key, step first, as narrow as they go, and each one's original type."""
    whole = {key: np.stack([batch[key] for batch in batches]) for key in sorted(batches[0])}
    dtypes = {key: "bytes" if values.dtype == object else values.dtype.name for key, values in whole.items()}
    return {key: narrowest(values) for key, values in whole.items()}, dtypes


def write_json(path: Path, value: Any) -> None:
    """JSON whose floats are written with repr, so that reading them gives the same bits."""
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def exact(metrics: dict[str, Any]) -> dict[str, Any]:
    """Metrics as Python numbers; float32 to float64 loses nothing."""
    return {key: value.item() for key, value in metrics.items()}


def own_flags(example: ModuleType) -> set[str]:
    """The names of the flags that the example itself defines, but for where it writes."""
    flags = example.FLAGS.flags_by_module_dict()["train"]
    return {flag.name for flag in flags} - {"model_dir"}


def record(
    out: Path,
    example: ModuleType,
    make_estimator: Callable[[str], tf.estimator.Estimator],
    train_input_fn: Callable[[], Any],
    eval_input_fn: Callable[[], Any],
    steps: int,
    packages: list[str],
) -> None:
    """Train for so many steps from a fresh start and write everything about it to the folder `out`."""
    with tempfile.TemporaryDirectory() as model_dir:
        recording = Recording(make_estimator(model_dir))
        recording.train(train_input_fn, steps)
        initial, final = (str(Path(model_dir) / "model.ckpt-{}".format(step)) for step in (0, steps))
        batches, dtypes = stacked(recording.batches)

        if out.exists():
            shutil.rmtree(str(out))
        (out / "initial").mkdir(parents=True)
        for path in sorted(Path(model_dir).glob("model.ckpt-0.*")):
            if path.suffix != ".meta":  # the graph: large, and whoever restores by name has his own
                shutil.copy(str(path), str(out / "initial"))
        (out / "initial" / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-0"\n')
        np.savez_compressed(str(out / "batches.npz"), **batches)
        np.savez_compressed(str(out / "final.npz"), **recording.variables(final))
        write_json(out / "losses.json", [loss.item() for loss in recording.losses])
        write_json(
            out / "metrics.json",
            {
                "initial": exact(recording.estimator.evaluate(eval_input_fn, checkpoint_path=initial, name="initial")),
                "final": exact(recording.estimator.evaluate(eval_input_fn, checkpoint_path=final, name="final")),
            },
        )
        write_json(
            out / "metadata.json",
            {
                "python": platform.python_version(),
                "tensorflow": tf.__version__,
                "packages": {name: pkg_resources.get_distribution(name).version for name in ["numpy", *packages]},
                "machine": platform.machine(),
                "steps": steps,
                "flags": {key: flag.value for key, flag in sorted(example.FLAGS.__flags.items()) if key in own_flags(example)},
                "dtypes": dtypes,
            },
        )


def differences(expected: Path, received: Path) -> list[str]:
    """The names of the files that are not the same, byte for byte, or that only one of the two folders has."""
    names = sorted({str(path.relative_to(root)) for root in (expected, received) for path in root.rglob("*") if path.is_file()})
    return [
        name
        for name in names
        if not ((expected / name).is_file() and (received / name).is_file())
        or (expected / name).read_bytes() != (received / name).read_bytes()
    ]


def main(name: str, generate: Callable[[Path, int], None]) -> int:
    """The generators' command line."""
    parser = argparse.ArgumentParser(description="Record the golden run of examples/{}.".format(name))
    parser.add_argument("--out", type=Path, default=HERE / name, help="folder to write (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=50, help="training steps (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a new recording is not the one in --out")
    arguments = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.ERROR)
    if not arguments.check:
        generate(arguments.out, arguments.steps)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch) / name, arguments.steps)
        different = differences(arguments.out, Path(scratch) / name)
    print("\n".join("differs: " + name for name in different) or "the same, byte for byte")
    return 1 if different else 0
