"""Says what to use instead of the symbols of ``tf.contrib`` that are not restored."""

from __future__ import annotations

_UNKNOWN = "no known successor"

# Replacements of packages and symbols below tf.contrib; the longest name that matches decides.
REPLACEMENTS: dict[str, str] = {
    "all_reduce": "tf.distribute's cross-device operations (tf.distribute.NcclAllReduce)",
    "autograph": "tf.autograph",
    "batching": "tf.nondifferentiable_batch_function",
    "bayesflow": "TensorFlow Probability (tfp.mcmc, tfp.monte_carlo)",
    "bigtable": "the client library google-cloud-bigtable, in tf.data.Dataset.from_generator",
    "boosted_trees": "ydf (ydf.GradientBoostedTreesLearner)",
    "checkpoint": "tf.train.Checkpoint and tf.train.CheckpointManager",
    "cloud": "the client libraries google-cloud-bigquery and google-cloud-storage, in tf.data.Dataset.from_generator",
    "cluster_resolver": "tf.distribute.cluster_resolver",
    "cmake": "TensorFlow's Bazel build",
    "coder": _UNKNOWN,
    "compiler": "tf.function(jit_compile=True), or tf.xla.experimental",
    "compiler.jit": "tf.xla.experimental.jit_scope",
    "compiler.xla.compile": "tf.xla.experimental.compile",
    "constrained_optimization": "a loss with multipliers of your own, which a second optimizer of tf.train raises: no maintained package continues it",
    "copy_graph": "tf.graph_util.import_graph_def of the graph's definition",
    "crf": "tf.contrib.crf.crf_log_norm or crf_decode, which run here and need none of the cells",
    "cudnn_rnn": "tf.keras.layers.LSTM and GRU, which use cuDNN where they can",
    "cudnn_rnn.CudnnGRU": "tf.compat.v1.keras.layers.CuDNNGRU",
    "cudnn_rnn.CudnnLSTM": "tf.compat.v1.keras.layers.CuDNNLSTM",
    "data": "tf.data and tf.data.experimental",
    "decision_trees": "ydf (Yggdrasil Decision Forests)",
    "deprecated": "tf.summary (scalar, histogram, audio, image, merge, merge_all)",
    "distribute": "tf.distribute",
    "distribute.Monitor": "tf.train.MonitoredTrainingSession",
    "distribute.MultiWorkerAllReduce": "tf.distribute.MultiWorkerMirroredStrategy",
    "distribute.TPUStrategy": "tf.distribute.TPUStrategy",
    "distribute.initialize_tpu_system": "tf.tpu.experimental.initialize_tpu_system",
    "distributions": "TensorFlow Probability (tfp.distributions), with tf.compat.v1.distributions for the basic ones",
    "eager": "TensorFlow 2's own names, which are eager",
    "eager.Network": "tf.keras.Model",
    "eager.Saver": "tf.train.Checkpoint",
    "eager.defun": "tf.function",
    "eager.implicit_gradients": "tf.GradientTape",
    "estimator": "tf.estimator, where heads are classes such as tf.estimator.MultiLabelHead",
    "estimator.TowerOptimizer": "tf.distribute.MirroredStrategy as train_distribute of the RunConfig",
    "estimator.replicate_model_fn": "tf.distribute.MirroredStrategy as train_distribute of the RunConfig",
    "estimator.boosted_trees_classifier_train_in_memory": "ydf (ydf.GradientBoostedTreesLearner)",
    "estimator.boosted_trees_regressor_train_in_memory": "ydf (ydf.GradientBoostedTreesLearner)",
    "estimator.RNNClassifier": "tf.estimator.experimental.RNNClassifier",
    "estimator.RNNEstimator": "tf.estimator.experimental.RNNEstimator",
    "factorization": "tf.compat.v1.estimator.experimental.KMeans, or scikit-learn",
    "factorization.KMeansClustering": "tf.compat.v1.estimator.experimental.KMeans, where random_seed is called seed",
    "feature_column": "tf.feature_column, and for sequence_input_layer tf.keras.experimental.SequenceFeatures",
    "ffmpeg": "tf.audio.decode_wav for WAV files, or PyAV (av) in tf.py_function",
    "framework": "tf_slim, or the same name in tf or tf.train",
    "fused_conv": "tf.nn.conv2d, tf.nn.bias_add and tf.nn.relu, which grappler fuses",
    "gan": "a model_fn whose train_op runs an optimizer of tf.train for each network: no maintained package continues its estimators",
    "graph_editor": "tf.graph_util.import_graph_def with input_map",
    "grid_rnn": "tf.keras.layers.RNN over a cell of your own",
    "hadoop": "PySpark (SparkContext.sequenceFile), in tf.data.Dataset.from_generator",
    "hooks": "tf.train.ProfilerHook",
    "ignite": "Apache Ignite's Python client, in tf.data.Dataset.from_generator",
    "image": "tf.image, or SciPy in tf.py_function, through which no gradient flows",
    "input_pipeline": "tf.data",
    "integrate": "TensorFlow Probability (tfp.math.ode)",
    "kafka": "the client library confluent-kafka, in tf.data.Dataset.from_generator",
    "keras": "tf.keras",
    "kernel_methods": "tf.keras.layers.experimental.RandomFourierFeatures",
    "kinesis": "the client library boto3, in tf.data.Dataset.from_generator",
    "labeled_tensor": "tf.Tensor with axes numbered, or xarray",
    "layers": "tf_slim, tf.layers or tf.keras.layers, and for columns tf.feature_column",
    "layers.crossed_column": "tf.feature_column.crossed_column, which hashes as this did with hash_key=0xDECAFCAFFE and not as without",
    "layers.real_valued_column": "tf.feature_column.numeric_column",
    "layers.sparse_column_with_hash_bucket": "tf.feature_column.categorical_column_with_hash_bucket",
    "learn": "tf.estimator, whose Estimators have train where these have fit",
    "learn.DNNClassifier": "tf.estimator.DNNClassifier: columns of tf.feature_column, train instead of fit",
    "learn.DNNLinearCombinedClassifier": "tf.estimator.DNNLinearCombinedClassifier",
    "learn.Estimator": "tf.estimator.Estimator: model_fn returns an EstimatorSpec, train instead of fit",
    "learn.KMeansClustering": "tf.compat.v1.estimator.experimental.KMeans, where random_seed is called seed",
    "learn.LinearClassifier": "tf.estimator.LinearClassifier: columns of tf.feature_column, train instead of fit",
    "learn.ModelFnOps": "tf.estimator.EstimatorSpec",
    "learn.SKCompat": "tf.estimator.inputs.numpy_input_fn with tf.estimator.Estimator",
    "learn.SVM": "scikit-learn's LinearSVC, or tf.estimator.LinearClassifier",
    "learn.datasets": "tf.keras.datasets, tensorflow_datasets or scikit-learn's datasets",
    "learn.datasets.mnist": "tensorflow.examples.tutorials.mnist.input_data, which reads local files",
    "learn.monitors": "hooks: tf.train.SessionRunHook and its subclasses; tf.estimator.experimental.stop_if_no_decrease_hook",
    "learn.preprocessing": "tf.keras.layers.TextVectorization, or scikit-learn",
    "learn.read_batch_features": "tf.data.experimental.make_batched_features_dataset",
    "legacy_seq2seq": "tf.contrib.seq2seq.sequence_loss for losses, and for decoders a tf.while_loop over the cell",
    "libsvm": "scikit-learn's load_svmlight_file",
    "lite": "tf.lite",
    "linear_optimizer": "tf.compat.v1.estimator.experimental.LinearSDCA",
    "lookup": "tf.lookup",
    "losses": "tf.losses",
    "memory_stats": "tf.config.experimental.get_memory_info",
    "meta_graph_transform": "tf.graph_util",
    "metrics": "tf.metrics",
    "mixed_precision": "tf.mixed_precision and tf.train.experimental.enable_mixed_precision_graph_rewrite",
    "model_pruning": "the TensorFlow Model Optimization Toolkit (tensorflow_model_optimization.sparsity)",
    "nccl": "tf.distribute.NcclAllReduce",
    "nearest_neighbor": "ScaNN (scann)",
    "nn": "tf.nn",
    "opt": "tf.train's optimizers or tf.keras.optimizers",
    "opt.ScipyOptimizerInterface": "scipy.optimize.minimize, or tfp.optimizer",
    "opt.ElasticAverageOptimizer": "tf.train.SyncReplicasOptimizer, or a tf.distribute strategy",
    "opt.ModelAverageOptimizer": "tf.contrib.opt.MovingAverageOptimizer, which averages over steps instead of workers",
    "optimizer_v2": "tf.train's optimizers of the same names",
    "periodic_resample": "tf.nn.depth_to_space",
    "predictor": "a function of tf.saved_model.load(folder).signatures",
    "proto": "tf.io.decode_proto and tf.io.encode_proto",
    "quantization": "tf.quantization",
    "quantize": "the TensorFlow Model Optimization Toolkit (tensorflow_model_optimization.quantization)",
    "receptive_field": "the receptive_field package",
    "recurrent": "tf.keras.layers.RNN",
    "reduce_slice_ops": "tf.math.segment_sum, segment_max and the like",
    "remote_fused_graph": _UNKNOWN,
    "resampler": "tf.gather_nd for the four nearest pixels, and their weighted mean",
    "rnn": "tf.nn.rnn_cell, or tf.keras.layers.RNN over a cell of your own",
    "rpc": "grpc in tf.py_function",
    "saved_model": "tf.keras.models.load_model and tf.keras.Model.save",
    "seq2seq": "a tf.while_loop over the cell, with tf.keras.layers.Attention or AdditiveAttention: no library continues its decoders",
    "session_bundle": "tf.saved_model",
    "signal": "tf.signal",
    "slim": "tf_slim",
    "slim.nets": "tf_slim.nets, or tf.keras.applications",
    "solvers": "tf.linalg, e.g. tf.linalg.experimental.conjugate_gradient",
    "sparsemax": "tf.sort, tf.cumsum and tf.maximum, in a few lines of your own",
    "specs": "tf.keras.Sequential",
    "staging": "tf.data.experimental.prefetch_to_device",
    "stat_summarizer": "tf.profiler",
    "stateless": "tf.random.stateless_normal, stateless_uniform and the like",
    "summary": "tf.summary of TensorFlow 2",
    "summary.create_db_writer": "tf.contrib.summary.create_file_writer",
    "tensor_forest": "ydf (ydf.RandomForestLearner)",
    "tensorboard": "the tensorboard package (tensorboard.plugins.projector)",
    "tensorboard.plugins.projector": "tensorboard.plugins.projector",
    "tensorrt": "tf.experimental.tensorrt.Converter",
    "testing": "tf.train.summary_iterator and tf.test",
    "text": "TensorFlow Text (tensorflow_text), or tf.keras.preprocessing.sequence.skipgrams",
    "tfprof": "tf.profiler",
    "timeseries": "TensorFlow Probability (tfp.sts)",
    "tpu": "tf.tpu, or tf.distribute.TPUStrategy",
    "tpu.AsyncCheckpointSaverHook": "tf.train.CheckpointSaverHook",
    "tpu.DeviceAssignment": "tf.tpu.experimental.DeviceAssignment",
    "tpu.TPUDistributionStrategy": "tf.distribute.TPUStrategy",
    "tpu.Topology": "tf.tpu.experimental.Topology",
    "tpu.device_assignment": "tf.tpu.experimental.DeviceAssignment.build",
    "tpu.export_estimator_savedmodel": "TPUEstimator.export_saved_model",
    "tpu.keras_to_tpu_model": "tf.distribute.TPUStrategy around the model",
    "tpu.profiler": "tf.profiler",
    "training": "tf.train, tf.data or tf_slim",
    "training.batch_sequences_with_states": "tf.data, with the state in stateful layers of Keras",
    "training.bucket_by_sequence_length": "tf.data.experimental.bucket_by_sequence_length",
    "util": "tf, or tf.io",
}


def successor(symbol: str) -> str:
    """Returns the replacement of a symbol, as a phrase.

    Args:
        symbol: Full name, e.g. ``tf.contrib.layers.l2_regularizer``; folders of a source file, e.g. ``python.layers``, are ignored.

    Example:
        >>> successor("tf.contrib.eager.Network")
        'tf.keras.Model'
        >>> successor("tf.contrib.learn.python.learn.monitors.ValidationMonitor")[:27]
        'hooks: tf.train.SessionRunH'
    """
    package, *parts = symbol.split(".")[2:] or [""]
    names = parts
    if parts[:1] == ["python"]:
        names = [part for part in parts[1:] if f"{package}.{part}" in REPLACEMENTS][:1] or parts[-1:]
    prefixes = (".".join([package, *names][:length]) for length in range(len(names) + 1, 0, -1))
    return next((REPLACEMENTS[prefix] for prefix in prefixes if prefix in REPLACEMENTS), _UNKNOWN)


def replacement(symbol: str) -> str:
    """Returns advice on a symbol that is not restored, as a sentence.

    Args:
        symbol: Full name, e.g. ``tf.contrib.layers.l2_regularizer``.

    Example:
        >>> replacement("tf.contrib.distributions.MultivariateNormalDiag")
        'Use TensorFlow Probability (tfp.distributions), with tf.compat.v1.distributions for the basic ones.'
        >>> replacement("tf.contrib.resampler.resampler")
        'Use tf.gather_nd for the four nearest pixels, and their weighted mean.'
    """
    found = successor(symbol)
    return "Remove it from the script: nothing replaces it." if found == _UNKNOWN else f"Use {found}."
