"""Read a golden recording. NumPy alone is needed; the checkpoint is for whoever restores it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Golden:
    """What an example did on TensorFlow 1.15.5, step by step.

    Attributes:
        features: each feature's batches, the step first.
        labels: the labels' batches, the step first.
        losses: each step's loss, before that step's update.
        variables: the model's variables after the last step, by TensorFlow 1 name, slots left out.
        metrics: what `evaluate` gave on the test split, under "initial" and "final".
        metadata: versions, and the example's flags.
        checkpoint_dir: a model_dir with the checkpoint of step 0, slots included. Copy it, never train in it.
    """

    features: dict[str, np.ndarray]
    labels: np.ndarray
    losses: np.ndarray
    variables: dict[str, np.ndarray]
    metrics: dict[str, dict[str, float]]
    metadata: dict[str, Any]
    checkpoint_dir: Path


def load(name: str) -> Golden:
    """The recording of the example of this name, every batch in the type that the example fed."""
    folder = HERE / name
    metadata = _read_json(folder / "metadata.json")
    batches = {key: values.astype(_dtype(metadata["dtypes"][key])) for key, values in _read_npz(folder / "batches.npz").items()}
    return Golden(
        features={key[len("features/") :]: values for key, values in batches.items() if key.startswith("features/")},
        labels=batches["labels"],
        losses=np.array(_read_json(folder / "losses.json")),
        variables=_read_npz(folder / "final.npz"),
        metrics=_read_json(folder / "metrics.json"),
        metadata=metadata,
        checkpoint_dir=folder / "initial",
    )


def _dtype(name: str) -> np.dtype:
    return np.dtype(object if name == "bytes" else name)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as arrays:
        return dict(arrays)
