"""Names of ``tf.contrib``, ``tf.estimator`` and ``tensorflow.python`` that mean an object with another public name in TensorFlow 1."""

from __future__ import annotations

import re

from estimator_bridge.compat.source.surface import installed_version, load_surface

_CELLS = (
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell", "LSTMStateTuple", "MultiRNNCell",
    "RNNCell", "ResidualWrapper",
)  # fmt: skip
_OF_SLIM = (
    "avg_pool2d", "batch_norm", "conv2d", "conv2d_transpose", "convolution2d", "convolution2d_transpose", "dropout", "flatten", "fully_connected", "l1_regularizer", "l2_regularizer",
    "max_pool2d", "one_hot_encoding", "variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d",
)  # fmt: skip
_DATA = ("Dataset", "FixedLengthRecordDataset", "Iterator", "TFRecordDataset", "TextLineDataset")  # before TensorFlow 1.4
_HOOKS = (
    "CheckpointSaverHook", "CheckpointSaverListener", "FeedFnHook", "FinalOpsHook", "GlobalStepWaiterHook", "LoggingTensorHook",
    "NanLossDuringTrainingError", "NanTensorHook", "ProfilerHook", "SecondOrStepTimer", "SessionRunArgs", "SessionRunContext",
    "SessionRunHook", "SessionRunValues", "StepCounterHook", "StopAtStepHook", "SummarySaverHook",
)  # fmt: skip
_UNCHANGED = {
    "distributions": (
        "Bernoulli", "Beta", "Categorical", "Dirichlet", "DirichletMultinomial", "Distribution", "Exponential", "Gamma", "Laplace",
        "Multinomial", "Normal", "StudentT", "Uniform", "kl_divergence",
    ),
    "signal": (
        "frame", "hamming_window", "hann_window", "inverse_stft", "inverse_stft_window_fn", "linear_to_mel_weight_matrix",
        "mfccs_from_log_mel_spectrograms", "overlap_and_add", "stft",
    ),
}  # fmt: skip
_MOVED = {
    "contrib.eager.executing_eagerly": "executing_eagerly",
    "contrib.framework.argsort": "argsort",
    "contrib.framework.convert_to_tensor_or_sparse_tensor": "convert_to_tensor_or_sparse_tensor",
    "contrib.framework.is_tensor": "is_tensor",
    **{
        f"contrib.framework.nest.{name}": f"nest.{name}"
        for name in ("assert_same_structure", "flatten", "map_structure", "pack_sequence_as")
    },
    "contrib.framework.sort": "sort",
    **{
        f"contrib.lookup.{name}": f"lookup.{name}"
        for name in ("KeyValueTensorInitializer", "TextFileIndex", "TextFileInitializer")
    },
    "contrib.metrics.set_difference": "sets.difference",
    "contrib.metrics.set_intersection": "sets.intersection",
    "contrib.metrics.set_size": "sets.size",
    "contrib.metrics.set_union": "sets.union",
    "contrib.nn.conv1d_transpose": "nn.conv1d_transpose",
    "contrib.stateless.stateless_random_normal": "random.stateless_normal",
    "contrib.stateless.stateless_random_uniform": "random.stateless_uniform",
    "contrib.stateless.stateless_truncated_normal": "random.stateless_truncated_normal",
    "contrib.util.constant_value": "get_static_value",
    "contrib.util.make_ndarray": "make_ndarray",
    "contrib.util.make_tensor_proto": "make_tensor_proto",
}
SAME_NAMES = {
    **{f"contrib.{module}.{name}": f"{module}.{name}" for module, names in _UNCHANGED.items() for name in names},
    **_MOVED,
    **{f"contrib.data.{name}": f"data.{name}" for name in _DATA},
    **{f"contrib.rnn.{name}": f"nn.rnn_cell.{name}" for name in _CELLS},
    **{f"contrib.rnn.{name}": f"nn.{name}" for name in ("static_rnn", "static_bidirectional_rnn", "static_state_saving_rnn")},
    **{f"contrib.slim.{name}": f"contrib.layers.{name}" for name in _OF_SLIM},
    **{f"contrib.framework.{name}": f"train.{name}" for name in ("get_global_step", "get_or_create_global_step")},
    **{f"estimator.{name}": f"train.{name}" for name in _HOOKS},
}
"""Name below ``tf``: the other name of the same object."""
_FILES = {
    "": (
        "framework.constant_op", "framework.dtypes", "framework.ops", "framework.tensor_shape", "ops.array_ops", "ops.check_ops",
        "ops.clip_ops", "ops.control_flow_ops", "ops.init_ops", "ops.linalg_ops", "ops.math_ops", "ops.parsing_ops", "ops.random_ops",
        "ops.state_ops", "ops.tensor_array_ops", "ops.variable_scope",
    ),
    "data.": ("data.ops.dataset_ops", "data.ops.readers"),
    "errors.": ("framework.errors",),
    "estimator.": (
        "estimator.canned.dnn", "estimator.canned.dnn_linear_combined", "estimator.canned.linear", "estimator.estimator",
        "estimator.estimator_lib", "estimator.exporter", "estimator.model_fn", "estimator.run_config", "estimator.training",
    ),
    "estimator.export.": ("estimator.export.export", "estimator.export.export_lib", "estimator.export.export_output"),
    "estimator.inputs.": ("estimator.inputs.inputs", "estimator.inputs.numpy_io", "estimator.inputs.pandas_io"),
    "estimator.tpu.": ("estimator.tpu.tpu_config", "estimator.tpu.tpu_estimator", "tpu.tpu_config", "tpu.tpu_estimator"),
    "tpu.": ("tpu.tpu_optimizer",),
    "feature_column.": ("feature_column.feature_column_lib",),
    "gfile.": ("platform.gfile",),
    "layers.": ("layers.convolutional", "layers.core", "layers.layers", "layers.normalization", "layers.pooling"),
    "logging.": ("platform.tf_logging",),
    "losses.": ("ops.losses.losses", "ops.losses.losses_impl"),
    "metrics.": ("ops.metrics", "ops.metrics_impl"),
    "nest.": ("util.nest",),
    "nn.": ("ops.embedding_ops", "ops.nn", "ops.nn_impl", "ops.nn_ops", "ops.rnn"),
    "nn.rnn_cell.": ("ops.rnn_cell", "ops.rnn_cell_impl"),
    "saved_model.": ("saved_model.signature_constants", "saved_model.tag_constants"),
    "summary.": ("summary.summary", "summary"),
    "train.": (
        "training.adagrad", "training.adam", "training.basic_session_run_hooks", "training.ftrl", "training.gradient_descent",
        "training.momentum", "training.moving_averages", "training.optimizer", "training.rmsprop", "training.saver",
        "training.session_run_hook", "training.training", "training.training_util",
    ),
}  # fmt: skip
NAMESPACES = {f"tensorflow.python.{file}": f"tensorflow.{place}" for place, files in _FILES.items() for file in files}
"""File of TensorFlow 1: the namespace with its functions and classes."""
_IN_CONTRIB = re.compile(r"tensorflow\.contrib\.(crf|framework|layers|lookup|metrics|rnn|seq2seq|training)\.python\..*\.(\w+)$")
"""Names in the files of a package of contrib, which the package has, too."""


def public_name(name: str) -> str:
    """Returns the name in TensorFlow 1's public namespace of what a name below ``tensorflow`` means; the name itself if there is none.

    Example:
        >>> public_name("tensorflow.contrib.rnn.GRUCell"), public_name("tensorflow.nn.relu")
        ('tensorflow.nn.rnn_cell.GRUCell', 'tensorflow.nn.relu')
        >>> public_name("tensorflow.contrib.data.Dataset.range"), public_name("tensorflow.python.ops.math_ops.cast")
        ('tensorflow.data.Dataset.range', 'tensorflow.cast')
        >>> public_name("tensorflow.contrib.layers.python.layers.initializers.xavier_initializer")
        'tensorflow.contrib.layers.xavier_initializer'
    """
    if found := _IN_CONTRIB.match(name):
        return public_name(f"tensorflow.contrib.{found[1]}.{found[2]}")
    if name == "tensorflow.python.ops.variable_scope.variable":  # a function that makes a Variable
        return "tensorflow.Variable"
    if name.startswith("tensorflow.python."):
        file = next((one for one in NAMESPACES if name.startswith(f"{one}.")), name)
        public = name.replace(f"{file}.", NAMESPACES.get(file, ""), 1)
        return public if load_surface(installed_version()).has(public) else name
    below = name.removeprefix("tensorflow.")
    owner, _, method = below.rpartition(".")
    if below in SAME_NAMES:
        return f"tensorflow.{SAME_NAMES[below]}"
    return f"tensorflow.{SAME_NAMES[owner]}.{method}" if owner in SAME_NAMES else name
