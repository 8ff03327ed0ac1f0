"""The source files of TensorFlow 1.15's contrib packages, by which scripts import as well as by the packages' own names."""

from __future__ import annotations

# Folder below tensorflow.contrib: the files in it.
_FILES = {
    "cluster_resolver.python.training": (
        "cluster_resolver gce_cluster_resolver kubernetes_cluster_resolver slurm_cluster_resolver "
        "tfconfig_cluster_resolver tpu_cluster_resolver"
    ),
    "crf.python.ops": "crf",
    "data.python.ops": (
        "batching counter enumerate_ops error_ops get_single_element grouping interleave_ops iterator_ops parsing_ops "
        "prefetching_ops random_ops readers resampling scan_ops shuffle_ops sliding threadpool unique writers"
    ),
    "distribute.python": (
        "collective_all_reduce_strategy mirrored_strategy monitor one_device_strategy parameter_server_strategy tpu_strategy"
    ),
    "estimator.python.estimator": (
        "boosted_trees dnn_with_layer_annotations early_stopping export exporter extenders head hooks logit_fns "
        "multi_head replicate_model_fn rnn saved_model_estimator"
    ),
    "feature_column.python.feature_column": "sequence_feature_column",
    "framework.python.framework": "checkpoint_utils experimental graph_util tensor_util",
    "framework.python.ops": "arg_scope audio_ops checkpoint_ops ops prettyprint_ops script_ops sort_ops variables",
    "image.python.ops": (
        "dense_image_warp distort_image_ops image_ops interpolate_spline single_image_random_dot_stereograms sparse_image_warp"
    ),
    "layers.python.layers": (
        "embedding_ops encoders feature_column feature_column_ops initializers layers normalization optimizers "
        "regularizers rev_block_lib summaries target_column utils"
    ),
    "layers.python.ops": "bucketization_op sparse_feature_cross_op sparse_ops",
    "learn.python.learn": (
        "basic_session_run_hooks evaluable experiment export_strategy graph_actions learn_runner learn_runner_lib "
        "metric_spec models monitored_session monitors session_run_hook summary_writer_cache trainable"
    ),
    "learn.python.learn.estimators": (
        "composable_model constants debug dnn dnn_linear_combined dynamic_rnn_estimator estimator head kmeans linear "
        "logistic_regressor metric_key model_fn prediction_key rnn_common run_config state_saving_rnn_estimator svm "
        "tensor_signature"
    ),
    "learn.python.learn.learn_io": "dask_io data_feeder generator_io graph_io numpy_io pandas_io",
    "learn.python.learn.ops": "embeddings_ops losses_ops seq2seq_ops",
    "learn.python.learn.preprocessing": "categorical categorical_vocabulary text",
    "learn.python.learn.utils": "export gc input_fn_utils inspect_checkpoint saved_model_export_utils",
    "lookup": "lookup_ops",
    "losses.python.losses": "loss_ops",
    "losses.python.metric_learning": "metric_loss_ops",
    "metrics.python.metrics": "classification",
    "metrics.python.ops": "confusion_matrix_ops histogram_ops metric_ops set_ops",
    "opt.python.training": (
        "adam_gs_optimizer adamax addsign agn_optimizer drop_stale_gradient_optimizer elastic_average_optimizer "
        "external_optimizer ggt lars_optimizer lazy_adam_gs_optimizer lazy_adam_optimizer matrix_functions "
        "model_average_optimizer moving_average_optimizer multitask_optimizer_wrapper nadam_optimizer powersign "
        "reg_adagrad_optimizer shampoo sign_decay variable_clipping_optimizer weight_decay_optimizers"
    ),
    "predictor": "contrib_estimator_predictor core_estimator_predictor predictor predictor_factories saved_model_predictor",
    "rnn.python.ops": "core_rnn_cell fused_rnn_cell gru_ops lstm_ops rnn rnn_cell",
    "saved_model.python.saved_model": "keras_saved_model reader",
    "seq2seq.python.ops": "attention_wrapper basic_decoder beam_search_decoder beam_search_ops decoder helper loss sampler",
    "slim": "nets",
    "slim.python.slim": "evaluation learning model_analyzer queues summaries",
    "slim.python.slim.data": (
        "data_decoder data_provider dataset dataset_data_provider parallel_reader prefetch_queue tfexample_decoder"
    ),
    "slim.python.slim.nets": (
        "alexnet inception inception_v1 inception_v2 inception_v3 overfeat resnet_utils resnet_v1 resnet_v2 vgg"
    ),
    "summary": "summary",
    "tpu.python.ops": "tpu_ops",
    "tpu.python.tpu": (
        "async_checkpoint bfloat16 datasets device_assignment error_handling feature_column functional keras_support "
        "keras_tpu_variables session_support tensor_tracer topology tpu tpu_config tpu_context tpu_embedding "
        "tpu_embedding_gradient tpu_estimator tpu_feed tpu_function tpu_optimizer tpu_sharding tpu_system_metadata "
        "training_loop util"
    ),
    "training.python.training": (
        "bucket_ops device_setter evaluation feeding_queue_runner hparam resample sampling_ops "
        "sequence_queueing_state_saver training tuner"
    ),
    "util": "loader",
}

_MODULES = {
    ".".join(parts[:length])
    for folder, files in _FILES.items()
    for file in files.split()
    for parts in [[*folder.split("."), file]]
    for length in range(2, len(parts) + 1)
}


def is_module(*path: str) -> bool:
    """Whether TensorFlow 1.15 had such a module below ``tensorflow.contrib``.

    Example:
        >>> is_module("layers", "python", "layers", "regularizers"), is_module("layers", "regularizers")
        (True, False)
    """
    return ".".join(path) in _MODULES
