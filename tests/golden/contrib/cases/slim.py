"""Cases of tf.contrib.slim: that it is contrib.layers and contrib.framework, and the rest of it at work."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from record import floats

slim = tf.contrib.slim

OF_LAYERS = """
    OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES RevBlock apply_regularization avg_pool2d avg_pool3d batch_norm
    bias_add conv1d conv2d conv2d_in_plane conv2d_transpose conv3d conv3d_transpose convolution
    convolution1d convolution2d convolution2d_in_plane convolution2d_transpose convolution3d convolution3d_transpose
    dense_to_sparse dropout elu embed_sequence embedding_lookup_unique flatten fully_connected group_norm
    images_to_sequence instance_norm l1_l2_regularizer l1_regularizer l2_regularizer layer_norm
    legacy_fully_connected legacy_linear legacy_relu linear max_pool2d max_pool3d maxout one_hot_encoding
    optimize_loss recompute_grad relu relu6 repeat rev_block safe_embedding_lookup_sparse scale_gradient
    separable_conv2d separable_convolution2d sequence_to_images softmax spatial_softmax stack sum_regularizer
    summarize_activation summarize_activations summarize_collection summarize_tensor summarize_tensors unit_norm
    variance_scaling_initializer xavier_initializer xavier_initializer_conv2d
"""
OF_FRAMEWORK = """
    VariableDeviceChooser add_arg_scope add_model_variable arg_scope arg_scoped_arguments assert_global_step
    assert_or_get_global_step assign_from_checkpoint assign_from_checkpoint_fn assign_from_values
    assign_from_values_fn create_global_step current_arg_scope filter_variables get_global_step get_local_variables
    get_model_variables get_or_create_global_step get_trainable_variables get_unique_variable get_variable_full_name
    get_variables get_variables_by_name get_variables_by_suffix get_variables_to_restore global_variable
    has_arg_scope local_variable model_variable variable
"""


def same_as_layers_and_framework():
    homes = ((tf.contrib.layers, OF_LAYERS), (tf.contrib.framework, OF_FRAMEWORK))
    return {name: getattr(slim, name) is getattr(home, name) for home, names in homes for name in names.split()}


def rarely_used_ones_same_as_layers():
    return [getattr(slim, name) is getattr(tf.contrib.layers, name) for name in ("GDN", "bow_encoder", "gdn")]


def modules():
    return [
        slim.losses.softmax_cross_entropy is tf.contrib.losses.softmax_cross_entropy,
        slim.metrics.streaming_accuracy is tf.contrib.metrics.streaming_accuracy,
        slim.initializers.xavier_initializer is tf.contrib.layers.xavier_initializer,
        slim.regularizers.l2_regularizer is tf.contrib.layers.l2_regularizer,
        slim.optimizers.optimize_loss is tf.contrib.layers.optimize_loss,
        slim.normalization.instance_norm is tf.contrib.layers.instance_norm,
        slim.summaries.add_scalar_summary.__name__,
        slim.learning.create_train_op.__name__,
        slim.evaluation.evaluate_once.__name__,
        slim.queues.QueueRunners.__name__,
        slim.utils.smart_cond(True, lambda: 1, lambda: 2),
    ]


def network():
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.1)):
        key = slim.arg_scope_func_key(slim.conv2d)
        net = slim.repeat(floats(1, 4, 4, 2), 2, slim.conv2d, 3, [2, 2], scope="conv")
        net = slim.pool(net, [2, 2], "MAX", stride=2)
        net = slim.stack(slim.flatten(net), slim.fully_connected, [3, 2], scope="fc")
    return [net, slim.losses.get_total_loss(), key == slim.arg_scope_func_key(slim.conv2d)]


def summaries():
    slim.fully_connected(floats(2, 3), 2)
    made = [slim.summarize_weights(), slim.summarize_biases(), slim.summarize_variables()]
    made.append([slim.summaries.add_scalar_summary(tf.constant(2.0), "two", prefix="pre")])
    made.append(slim.summaries.add_scalar_summaries([tf.constant(3.0, name="three")]))
    made.append([slim.summaries.add_histogram_summary(tf.constant([1.0, 2.0]), "histogram")])
    made.append([slim.summaries.add_zero_fraction_summary(tf.constant([0.0, 2.0]), "zeros")])
    return [[summary.name for summary in group] for group in made]


def adaptive_clipping():
    clip = slim.adaptive_clipping_fn(std_factor=1.0, decay=0.5, static_max_norm=0.7, report_summary=True, name="clipping")
    return clip([(floats(2), tf.get_variable("weights", [2]))])


def bucketize():
    return slim.bucketize(tf.constant([-1.0, 0.5, 3.0]), [0.0, 1.0])


def train_op_and_clipping():
    weights = tf.get_variable("weights", [2])
    slim.losses.add_loss(tf.reduce_sum(weights**2))
    train_op = slim.learning.create_train_op(
        slim.losses.get_total_loss(),
        tf.train.GradientDescentOptimizer(0.25),
        clip_gradient_norm=0.5,
        gradient_multipliers={weights: 2.0},
    )
    return {"run": train_op, "step": slim.get_or_create_global_step()}


def training_and_evaluation():
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default():
        weights = tf.get_variable("weights", initializer=tf.constant([1.0, 2.0]))
        train_op = slim.learning.create_train_op(tf.reduce_sum(weights**2), tf.train.GradientDescentOptimizer(0.25))
        loss = slim.learning.train(train_op, folder, number_of_steps=3, save_summaries_secs=0, trace_every_n_steps=None)
    path = tf.train.latest_checkpoint(folder)
    with tf.Graph().as_default():
        weights = tf.get_variable("weights", [2])
        slim.get_or_create_global_step()
        names, updates = slim.metrics.aggregate_metric_map({"mean": slim.metrics.streaming_mean(weights)})
        value = slim.evaluation.evaluate_once(
            "", path, folder, num_evals=2, eval_op=list(updates.values()), final_op=list(names.values())
        )
    return {"loss": loss, "path": os.path.basename(path), "value": value, "list": slim.evaluation.checkpoints_iterator.__name__}


def analysed_variables():
    slim.fully_connected(floats(2, 3), 2)
    return list(slim.model_analyzer.analyze_vars(tf.global_variables()))


def examples():
    path = os.path.join(tempfile.mkdtemp(), "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(3):
            feature = {
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[7])),
                "values": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0])),
                "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"text"])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    decoder = slim.tfexample_decoder.TFExampleDecoder(
        {
            "label": tf.FixedLenFeature([], tf.int64),
            "values": tf.FixedLenFeature([2], tf.float32),
            "text": tf.FixedLenFeature([], tf.string),
        },
        {
            "label": slim.tfexample_decoder.Tensor("label"),
            "values": slim.tfexample_decoder.Tensor("values", shape=[2, 1]),
            "text": slim.tfexample_decoder.Tensor("text"),
        },
    )
    dataset = slim.dataset.Dataset(path, tf.TFRecordReader, decoder, 3, {"label": "a class"}, num_classes=9)
    provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=None)
    items = provider.get(["label", "values", "text"])
    queue = slim.prefetch_queue.prefetch_queue({"label": items[0]}, capacity=2)
    tf.get_default_graph().clear_collection(tf.GraphKeys.SUMMARIES)  # how full a queue is hangs on its threads
    return {
        "items": items,
        "names": sorted(provider.list_items()),
        "count": provider.num_samples(),
        "prefetched": queue.dequeue(),
        "classes": issubclass(slim.dataset_data_provider.DatasetDataProvider, slim.data_provider.DataProvider),
        "decoder": issubclass(slim.tfexample_decoder.TFExampleDecoder, slim.data_decoder.DataDecoder),
        "reader": slim.parallel_reader.ParallelReader.__name__,
    }


def nets():
    from tensorflow.contrib.slim.nets import inception, resnet_v1, resnet_v2, vgg

    with slim.arg_scope(vgg.vgg_arg_scope()):
        vgg.vgg_a(tf.zeros([1, 224, 224, 3]), 3, scope="vgg")
    with slim.arg_scope(resnet_v1.resnet_arg_scope()):
        blocks = [resnet_v1.resnet_v1_block("block", base_depth=1, num_units=2, stride=2)]
        resnet_v1.resnet_v1(tf.zeros([1, 8, 8, 3]), blocks, 3, scope="one")
        blocks = [resnet_v2.resnet_v2_block("block", base_depth=1, num_units=2, stride=2)]
        resnet_v2.resnet_v2(tf.zeros([1, 8, 8, 3]), blocks, 3, scope="two")
    with tf.Graph().as_default(), slim.arg_scope(inception.inception_v3_arg_scope()):
        logits, ends = inception.inception_v3(tf.zeros([1, 299, 299, 3]), 3, depth_multiplier=0.1, is_training=False)
        variables = [[variable.name, variable.shape.as_list()] for variable in tf.global_variables()]
    described = [[variable.name, variable.shape.as_list()] for variable in tf.global_variables()]
    return [_no_state(described), variables[:5], len(variables), logits.shape.as_list(), sorted(ends)]


def _no_state(described):
    """The graph is left empty, so that no large weights are recorded."""
    tf.get_default_graph().clear_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    for key in tf.get_default_graph().get_all_collection_keys():
        tf.get_default_graph().clear_collection(key)
    return described


def numpy_of_variables():
    weights = tf.get_variable("weights", [2], trainable=False, initializer=tf.zeros_initializer())
    function = slim.assign_from_values_fn({"weights": np.array([1.0, 2.0], np.float32)})
    with tf.Session() as session:
        function(session)
        return session.run(weights)
