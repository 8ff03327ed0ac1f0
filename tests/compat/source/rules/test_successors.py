"""Replacements of public names of TensorFlow 1.15.5 that are gone."""

from __future__ import annotations

import re

import pytest

from estimator_bridge.compat.source.removed_names.contrib import REPLACEMENTS
from estimator_bridge.compat.source.rules.successors import SUCCESSORS, successor
from estimator_bridge.compat.source.surface import canonical, load_surface
from tests.compat.source.reading import findings

VERSIONS = ["2.15.1", "2.21.0"]

# The public names below tf in TensorFlow 1.15.5's own generated modules, tf.contrib and tf.raw_ops left out, that no listed version has.
GONE = [
    "data.experimental.MapVectorizationOptions",
    "data.experimental.StatsAggregator",
    "data.experimental.StatsOptions",
    "data.experimental.bytes_produced_stats",
    "data.experimental.latency_stats",
    "estimator.BoostedTreesClassifier",
    "estimator.BoostedTreesEstimator",
    "estimator.BoostedTreesRegressor",
    "keras.experimental.LinearCosineDecay",
    "keras.experimental.NoisyLinearCosineDecay",
    "keras.experimental.PeepholeLSTMCell",
    "keras.experimental.export_saved_model",
    "keras.experimental.load_from_saved_model",
    "keras.experimental.terminate_keras_multiprocessing_pools",
    "keras.mixed_precision.experimental",
    "keras.utils.HDF5Matrix",
    "keras.utils.convert_all_kernels_in_model",
    "keras.utils.multi_gpu_model",
    "keras.wrappers",
    "lite.experimental.get_potentially_supported_ops",
    "lite.experimental.nn",
]
WITHOUT = {
    "keras.experimental.terminate_keras_multiprocessing_pools",
    "keras.utils.convert_all_kernels_in_model",
    "lite.experimental.get_potentially_supported_ops",
    "lite.experimental.nn",
}
# Spellings of packages that nobody maintains any more, or whose authors advise another one.
DEAD = [
    "addons",
    "compression",
    "constrained optimization",
    "constrained_optimization",
    "tensorflow decision forests",
    "tensorflow i/o",
    "tensorflow_decision_forests",
    "tensorflow_gan",
    "tensorflow_io",
    "tf-gan",
    "tfa.",
    "tfc.",
    "tfco.",
    "tfdf.",
    "tfgan.",
    "tfio.",
]


@pytest.mark.parametrize("version", VERSIONS)
def test_they_are_gone(version: str) -> None:
    surface = load_surface(version)
    assert [name for name in {*GONE, *SUCCESSORS} if surface.has(f"tensorflow.{name}")] == []


def test_each_has_a_successor_or_is_known_to_have_none() -> None:
    assert {name for name in GONE if not successor(f"tensorflow.{name}")} == WITHOUT
    assert {name for name in SUCCESSORS if not name.startswith("python.")} <= set(GONE)


@pytest.mark.parametrize("table", [SUCCESSORS, REPLACEMENTS])
def test_no_advice_names_a_dead_package(table: dict[str, str]) -> None:
    assert [(name, dead) for name, advice in table.items() for dead in DEAD if dead in advice.lower()] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_named_is_there(version: str) -> None:
    surface = load_surface(version)
    named = {name for phrase in SUCCESSORS.values() for name in re.findall(r"(?<![\w.])tf(?:\.\w+)+", phrase)}
    assert len(named) > 5
    assert [name for name in named if not surface.has(canonical(name.replace("tf.", "tensorflow.", 1)))] == []


def test_check_says_it() -> None:
    (finding,) = findings("from tensorflow.keras.wrappers.scikit_learn import KerasClassifier\n")
    assert finding.message.startswith("tf.keras.wrappers is not in TensorFlow ")
    assert finding.message.endswith(". Use SciKeras (scikeras.wrappers).")
