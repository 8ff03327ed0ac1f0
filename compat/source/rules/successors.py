"""Replacements of public names of TensorFlow 1.15.5 that ``tf`` lacks even under the runner; not those of ``tf.contrib``."""

from estimator_bridge.compat.source.surface import prefixes

_TREES = "ydf (ydf.GradientBoostedTreesLearner)"
_STATISTICS = "tf.profiler.Profiler"

# A name below tensorflow, and the replacement for it and for all names below it.
SUCCESSORS: dict[str, str] = {
    "data.experimental.MapVectorizationOptions": "tf.data.Options without it, which changes no result",
    "data.experimental.StatsAggregator": _STATISTICS,
    "data.experimental.StatsOptions": _STATISTICS,
    "data.experimental.bytes_produced_stats": _STATISTICS,
    "data.experimental.latency_stats": _STATISTICS,
    "estimator.BoostedTreesClassifier": _TREES,
    "estimator.BoostedTreesEstimator": _TREES,
    "estimator.BoostedTreesRegressor": _TREES,
    "keras.experimental.LinearCosineDecay": "tf.train.linear_cosine_decay",
    "keras.experimental.NoisyLinearCosineDecay": "tf.train.noisy_linear_cosine_decay",
    "keras.experimental.PeepholeLSTMCell": "tf.nn.rnn_cell.LSTMCell with use_peepholes=True",
    "keras.experimental.export_saved_model": "tf.keras.models.save_model with save_format='tf'",
    "keras.experimental.load_from_saved_model": "tf.keras.models.load_model",
    "keras.mixed_precision.experimental": "tf.compat.v2.keras.mixed_precision",
    "keras.utils.HDF5Matrix": "a dataset of h5py, which fit takes as it is",
    "keras.utils.multi_gpu_model": "tf.distribute.MirroredStrategy",
    "keras.wrappers": "SciKeras (scikeras.wrappers)",
    "python.estimator.canned.boosted_trees": _TREES,
    "python.keras.engine.network": "tf.keras.Model",
    "python.keras.utils.multi_gpu_model": "tf.distribute.MirroredStrategy",
    "python.keras.utils.multi_gpu_utils": "tf.distribute.MirroredStrategy",
    "python.keras.wrappers": "SciKeras (scikeras.wrappers)",
}


def successor(name: str) -> str:
    """Returns a sentence that names the replacement.

    Args:
        name: Dotted name, e.g. ``tensorflow.keras.utils.multi_gpu_model``.

    Returns:
        The sentence; empty if no replacement is known.

    Example:
        >>> successor("tensorflow.keras.wrappers.scikit_learn.KerasClassifier")
        'Use SciKeras (scikeras.wrappers).'
        >>> successor("tensorflow.nowhere")
        ''
    """
    below = name.partition(".")[2]
    found = next((SUCCESSORS[prefix] for prefix in reversed(prefixes(below)) if prefix in SUCCESSORS), None)
    return f"Use {found}." if found else ""
