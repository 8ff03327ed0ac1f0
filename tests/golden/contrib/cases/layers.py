"""Cases of tf.contrib.layers."""

import numpy as np
import tensorflow as tf
from record import floats

layers = tf.contrib.layers
arg_scope = tf.contrib.framework.arg_scope


def fully_connected():
    net = floats(2, 3)
    return [
        layers.fully_connected(net, 4),
        layers.fully_connected(net, 4, activation_fn=None, biases_initializer=None),
        layers.fully_connected(floats(2, 2, 3), 2, tf.tanh, weights_regularizer=layers.l2_regularizer(0.1), scope="named"),
        layers.fully_connected(
            net,
            2,
            normalizer_fn=layers.batch_norm,
            normalizer_params={"scale": True, "is_training": True},
            variables_collections=["mine"],
            outputs_collections="outputs",
        ),
        layers.fully_connected(net, 2, trainable=False, scope="fixed"),
        layers.fully_connected(net, 2, trainable=False, reuse=True, scope="fixed"),
    ]


def linear_relu_and_kin():
    net = floats(2, 3)
    return [
        layers.linear(net, 2),
        layers.relu(net, 2),
        layers.relu6(net, 2, scope="six"),
        layers.elu(net, 2),
        layers.relu(net, 2),
    ]


def legacy_fully_connected():
    net = floats(2, 3)
    penalty = layers.l1_regularizer(0.1)
    with tf.variable_scope("weights_only"):
        second = layers.legacy_fully_connected(net, 2, bias_init=None, weight_regularizer=penalty)
    with tf.variable_scope("named"):
        third = layers.legacy_linear(net, 2)
    with tf.variable_scope("rectified"):
        return [layers.legacy_fully_connected(net, 4, name="first"), second, third, layers.legacy_relu(net, 2)]


def convolutions():
    image = floats(1, 4, 4, 2)
    return [
        layers.conv2d(image, 2, 3),
        layers.conv2d(image, 2, [2, 3], stride=2, padding="VALID", activation_fn=None, scope="strided"),
        layers.conv2d(image, 2, 2, rate=2, normalizer_fn=layers.batch_norm, scope="dilated"),
        layers.convolution2d(image, 2, 1, weights_regularizer=layers.l2_regularizer(0.5), biases_initializer=None),
        layers.conv1d(floats(1, 4, 2), 2, 3),
        layers.convolution1d(floats(1, 4, 2), 2, 3, stride=2),
        layers.conv3d(floats(1, 2, 2, 3, 1), 2, 2),
        layers.convolution3d(floats(1, 2, 2, 3, 1), 1, 2, padding="VALID"),
        layers.convolution(image, 2, [2, 2], stride=2),
    ]


def transposed_convolutions():
    image = floats(1, 2, 3, 2)
    return [
        layers.conv2d_transpose(image, 2, 3, stride=2),
        layers.convolution2d_transpose(image, 2, [2, 2], stride=1, padding="VALID", activation_fn=None, scope="plain"),
        layers.conv2d_transpose(image, 1, 3, normalizer_fn=layers.batch_norm, weights_regularizer=layers.l2_regularizer(0.5)),
        layers.conv3d_transpose(floats(1, 1, 2, 2, 1), 2, 2, stride=2),
        layers.convolution3d_transpose(floats(1, 1, 2, 2, 1), 1, 2),
    ]


def separable_convolutions():
    image = floats(1, 4, 4, 2)
    return [
        layers.separable_conv2d(image, 3, 3, depth_multiplier=2),
        layers.separable_conv2d(image, None, 3, depth_multiplier=1, stride=2, scope="depthwise"),
        layers.separable_convolution2d(
            image,
            2,
            2,
            1,
            rate=2,
            weights_regularizer=layers.l2_regularizer(0.1),
            pointwise_initializer=layers.xavier_initializer(),
            activation_fn=None,
        ),
        layers.conv2d_in_plane(floats(1, 4, 4, 1), [2, 1]),
        layers.convolution2d_in_plane(floats(1, 4, 4, 1), [1, 2], activation_fn=tf.nn.relu),
    ]


def pooling():
    image = floats(1, 4, 4, 2)
    volume = floats(1, 4, 4, 2, 1)
    return [
        layers.max_pool2d(image, 2),
        layers.max_pool2d(image, [3, 3], stride=1, padding="SAME", outputs_collections="pooled"),
        layers.avg_pool2d(image, [2, 2], stride=2),
        layers.avg_pool2d(image, 3, padding="SAME", scope="named"),
        layers.max_pool3d(volume, 2),
        layers.avg_pool3d(volume, [2, 2, 1], stride=1),
    ]


def flatten_dropout_and_one_hot():
    net = floats(2, 3, 2)
    return [
        layers.flatten(net, outputs_collections="flat"),
        layers.dropout(net, 0.6, seed=3),
        layers.dropout(net, is_training=False),
        layers.dropout(net, 0.5, noise_shape=[2, 1, 2], seed=4),
        layers.one_hot_encoding(tf.constant([0, 2, 1]), 3),
        layers.one_hot_encoding(tf.constant([[0], [1]]), 2, on_value=5.0, off_value=-1.0),
        layers.softmax(floats(2, 2, 3)),
        layers.repeat(floats(2, 3), 2, layers.fully_connected, 3, scope="fc"),
        layers.stack(floats(2, 3), layers.fully_connected, [4, 2], scope="stacked"),
        layers.unit_norm(floats(2, 3), 1),
        layers.maxout(floats(2, 4), 2),
        layers.bias_add(floats(2, 3), activation_fn=tf.nn.relu, regularizer=layers.l2_regularizer(0.1)),
    ]


def batch_norm_in_training():
    layers.batch_norm(floats(4, 3), scale=True, decay=0.9)
    layers.batch_norm(floats(2, 2, 2, 3), is_training=True, zero_debias_moving_mean=True, scope="debiased")
    return {"run": tf.get_collection(tf.GraphKeys.UPDATE_OPS)}


def batch_norm():
    net, image = floats(4, 3), floats(2, 2, 2, 3)
    return [
        layers.batch_norm(net),
        layers.batch_norm(net, center=False, scale=True, epsilon=0.1, updates_collections=None),
        layers.batch_norm(net, is_training=False, scale=True, activation_fn=tf.nn.relu, scope="inference"),
        layers.batch_norm(image, fused=True, scale=True, param_regularizers={"gamma": layers.l2_regularizer(0.1)}),
        layers.batch_norm(image, fused=False, scale=True, trainable=False),
        layers.batch_norm(image, is_training=False, fused=True, scope="fused_inference"),
        layers.batch_norm(image, data_format="NCHW", fused=False),
        layers.batch_norm(
            net, is_training=tf.constant(True), batch_weights=tf.constant([1.0, 2, 0, 1]), fused=False, scope="weighted"
        ),
        layers.batch_norm(net, renorm=True, renorm_clipping={"rmax": 2.0, "rmin": 0.5, "dmax": 1.0}, scope="renorm"),
        layers.batch_norm(
            net,
            param_initializers={"beta": tf.constant_initializer(0.5), "moving_variance": tf.constant_initializer(3.0)},
            variables_collections={"beta": ["betas"]},
            outputs_collections=["normalized"],
            scope="given",
        ),
    ]


def batch_norm_of_placeholder_mode():
    net = floats(4, 3)
    training = tf.placeholder_with_default(False, [])
    return [
        layers.batch_norm(net, is_training=training),
        layers.batch_norm(floats(2, 2, 2, 3), is_training=training, fused=True),
    ]


def other_normalizations():
    image = floats(2, 2, 2, 4)
    return [
        layers.layer_norm(floats(2, 3)),
        layers.layer_norm(
            image, center=False, begin_norm_axis=2, begin_params_axis=-1, activation_fn=tf.tanh, scope="some_axes"
        ),
        layers.instance_norm(image),
        layers.instance_norm(image, scale=False, data_format="NCHW", epsilon=0.1, scope="channels_first"),
        layers.group_norm(image, groups=2),
        layers.group_norm(image, groups=2, center=False, channels_axis=-1, reduction_axes=(-3, -2), mean_close_to_zero=True),
    ]


def divisive_normalization():
    layer = layers.GDN(inverse=False, name="divisive")
    return [
        layer(floats(1, 2, 2, 2)),
        [variable.name for variable in layer.variables],
        layers.gdn(floats(1, 2, 2, 2)),
        layers.gdn(floats(1, 2, 2, 2), inverse=True, beta_min=0.01, gamma_init=0.2),
    ]


def regularizers():
    weights = floats(2, 3)
    both = layers.sum_regularizer([layers.l1_regularizer(0.1), layers.l2_regularizer(0.2)])
    tf.get_variable("with_penalty", [2], regularizer=layers.l1_l2_regularizer(0.1, 0.3, scope="both"))
    return [
        layers.l1_regularizer(0.5)(weights),
        layers.l2_regularizer(0.5)(weights),
        layers.l1_l2_regularizer(0.3, 0.6)(weights),
        layers.l1_l2_regularizer()(weights),
        both(weights),
        layers.l2_regularizer(0.0)(weights),
        layers.apply_regularization(layers.l2_regularizer(0.5), [weights, floats(2)]),
        layers.sum_regularizer([]),
    ]


def regularizers_refuse():
    return [_raised(lambda: layers.l1_regularizer(1)), _raised(lambda: layers.l2_regularizer(-0.1))]


def initializers():
    shapes = {"square": [4, 4], "kernel": [3, 3, 2, 4], "vector": [5]}
    made = {
        "xavier": layers.xavier_initializer(seed=1),
        "xavier_normal": layers.xavier_initializer(uniform=False, seed=2),
        "xavier_conv": layers.xavier_initializer_conv2d(seed=3),
        "variance": layers.variance_scaling_initializer(seed=4),
        "variance_avg": layers.variance_scaling_initializer(factor=1.0, mode="FAN_AVG", uniform=True, seed=5),
        "variance_out": layers.variance_scaling_initializer(factor=3.0, mode="FAN_OUT", seed=6),
    }
    return {name + key: make(shape) for name, make in made.items() for key, shape in shapes.items()}


def initializers_refuse():
    return [
        _raised(lambda: layers.variance_scaling_initializer(mode="FAN_ALL")),
        _raised(lambda: layers.variance_scaling_initializer(dtype=tf.int32)),
    ]


def optimize_loss():
    tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", [2, 2], initializer=tf.constant_initializer(0.5))
    loss = tf.reduce_sum(tf.matmul(floats(3, 2), weights) ** 2)
    return {"run": layers.optimize_loss(loss, tf.train.get_global_step(), learning_rate=0.1, optimizer="SGD")}


def optimize_loss_with_everything():
    step = tf.train.get_or_create_global_step()
    first = tf.get_variable("first", [2, 2])
    second = tf.get_variable("second", [2])
    loss = tf.reduce_sum(tf.matmul(floats(3, 2), first) ** 2) + tf.reduce_sum(second**2)
    train_op = layers.optimize_loss(
        loss,
        step,
        learning_rate=tf.constant(0.1),
        optimizer=lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
        gradient_multipliers={second: 0.5},
        clip_gradients=1.5,
        learning_rate_decay_fn=lambda rate, global_step: tf.train.exponential_decay(rate, global_step, 2, 0.5),
        update_ops=[tf.assign_add(tf.get_variable("updates", [], trainable=False, initializer=tf.zeros_initializer()), 1.0)],
        variables=[first, second],
        summaries=["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"],
        colocate_gradients_with_ops=True,
    )
    return {"run": train_op}


def optimize_loss_by_name():
    step = tf.train.get_or_create_global_step()
    names = sorted(layers.OPTIMIZER_CLS_NAMES)
    ops = []
    for name in names:
        weights = tf.get_variable("of_" + name, [2])
        loss = tf.reduce_sum((weights - 1) ** 2)
        increment = name == "Adam"
        ops.append(layers.optimize_loss(loss, step, 0.1, name, variables=[weights], name=name, increment_global_step=increment))
    return {"run": ops, "names": names, "summaries": layers.OPTIMIZER_SUMMARIES}


def optimize_loss_clips_adaptively():
    step = tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", [2])
    train_op = layers.optimize_loss(
        tf.reduce_sum(weights**2),
        step,
        None,
        tf.train.GradientDescentOptimizer(0.1),
        clip_gradients=tf.contrib.slim.adaptive_clipping_fn(1.0, 0.5, 0.7, step, report_summary=True),
        gradient_noise_scale=None,
        increment_global_step=False,
    )
    return {"run": train_op}


def optimize_loss_with_noise():
    """The noise has no seed of its own: the gradient of a constant direction stays recognisable without it."""
    weights = tf.get_variable("weights", [2])
    train_op = layers.optimize_loss(tf.reduce_sum(weights), None, 0.0, "SGD", gradient_noise_scale=0.1, summaries=[])
    return [train_op, weights]


def optimize_loss_refuses():
    loss = tf.reduce_sum(tf.get_variable("weights", [2]))
    return [
        _raised(lambda: layers.optimize_loss(loss, None, 0.1, "Nadam")),
        _raised(lambda: layers.optimize_loss(loss, None, -1.0, "SGD")),
        _raised(lambda: layers.optimize_loss(loss, None, "fast", "SGD")),
        _raised(lambda: layers.optimize_loss(loss, None, 0.1, "SGD", summaries=["norms"])),
        _raised(lambda: layers.optimize_loss(loss, None, 0.1, "SGD", gradient_multipliers=[1.0])),
        _raised(lambda: layers.optimize_loss(tf.constant(1.0), None, 0.1, "SGD", variables=[])),
    ]


def embed_sequence():
    ids = tf.constant([[0, 2, 2], [3, 1, 0]])
    first = layers.embed_sequence(ids, 4, 2, scope="words")
    return [
        first,
        layers.embed_sequence(ids, 4, 2, scope="words", reuse=True),
        layers.embed_sequence(ids, scope="words", reuse=True, unique=True),
        layers.embed_sequence(
            ids, 4, 3, unique=True, initializer=tf.ones_initializer(), regularizer=layers.l2_regularizer(0.1)
        ),
        layers.embed_sequence(tf.cast(ids, tf.int64), 5, 1, trainable=False),
        _raised(lambda: layers.embed_sequence(ids)),
    ]


def embedding_lookup_unique():
    table = tf.get_variable("table", [5, 2])
    parts = tf.get_variable("parts", [5, 2], partitioner=tf.fixed_size_partitioner(2))
    ids = tf.constant([[4, 0, 4], [1, 1, 2]])
    return [
        layers.embedding_lookup_unique(table, ids),
        layers.embedding_lookup_unique(parts, ids, partition_strategy="div", name="unique"),
        layers.embedding_lookup_unique(table, tf.constant([3, 3], tf.int64)),
        layers.embedding_lookup_unique(table, tf.constant(2)),
    ]


def bow_encoder():
    ids = tf.constant([[1, 2, 0], [0, 0, 0]])
    sparse = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [3, 1, 2], [3, 3])
    return [
        layers.bow_encoder(ids, 4, 2),
        layers.bow_encoder(ids, 4, 2, sparse_lookup=False, scope="dense", regularizer=layers.l1_regularizer(0.1)),
        layers.bow_encoder(sparse, 4, 3, trainable=False),
        _raised(lambda: layers.bow_encoder(sparse, 4, 2, sparse_lookup=False)),
        _raised(lambda: layers.bow_encoder(ids, 0, 2)),
    ]


def safe_embedding_lookup_sparse():
    table = tf.get_variable("table", [6, 2])
    parts = tf.get_variable("parts", [6, 2], partitioner=tf.fixed_size_partitioner(3))
    indices = [[0, 0], [0, 1], [1, 0], [3, 2]]
    ids = tf.SparseTensor(indices, tf.constant([1, 5, -1, 2], tf.int64), [4, 3])
    weights = tf.SparseTensor(indices, tf.constant([1.0, 0.5, 2.0, -1.0]), [4, 3])
    return [
        layers.safe_embedding_lookup_sparse(table, ids),
        layers.safe_embedding_lookup_sparse([table], ids, weights, combiner="sum"),
        layers.safe_embedding_lookup_sparse(parts, ids, weights, combiner="sqrtn", default_id=3),
        layers.safe_embedding_lookup_sparse(parts, ids, combiner="mean", partition_strategy="mod", max_norm=0.5),
    ]


def summaries():
    scalar, vector = tf.constant(2.5, name="scalar"), tf.constant([1.0, 2.0], name="vector")
    made = [layers.summarize_tensor(scalar), layers.summarize_tensor(vector, tag="tagged")]
    made += layers.summarize_tensors(
        [scalar, vector], lambda tensor: tf.summary.scalar("mean/" + tensor.op.name, tf.reduce_mean(tensor))
    )
    layers.fully_connected(floats(2, 3), 2, outputs_collections="activations")
    tf.add_to_collection("activations", tf.nn.relu(vector, name="Relu"))
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, tf.nn.relu(vector, name="activation"))
    made += layers.summarize_collection("activations", name_filter=".*elu", summarizer=layers.summarize_activation)
    layers.summarize_activations()
    return [tensor.name for tensor in made if tensor is not None]


def summaries_of_variables():
    layers.fully_connected(floats(2, 3), 2)
    weights = layers.summaries.summarize_weights()
    biases = layers.summaries.summarize_biases()
    variables = layers.summaries.summarize_variables()
    return [[tensor.name for tensor in made] for made in (weights, biases, variables)]


def spatial_softmax():
    return [
        layers.spatial_softmax(floats(1, 3, 3, 2)),
        layers.spatial_softmax(floats(1, 2, 2, 2), 2.0, trainable=False, name="fixed"),
    ]


def sequences_of_images():
    sequence = layers.images_to_sequence(floats(4, 2, 3, 2))
    return [
        sequence,
        layers.sequence_to_images(sequence, 2),
        layers.dense_to_sparse(tf.constant([[1, 0], [2, 3]]), eos_token=0),
    ]


def scale_gradient():
    return [layers.scale_gradient(floats(2, 3), tf.constant(0.25))]


def reversible_block():
    def inside(net):
        return layers.fully_connected(net, 2, tf.tanh, scope="inside")

    block = layers.rev_block(floats(2, 2), floats(2, 2), inside, inside, num_layers=2)
    other = layers.RevBlock(inside, inside, num_layers=1, name="as_layer")
    return [block, other.forward(floats(2, 2), floats(2, 2))]


def recompute_grad():
    @layers.recompute_grad
    def inside(net):
        return layers.fully_connected(net, 2, tf.tanh, scope="inside")

    @layers.recompute_grad(use_data_dep=True, tupleize_grads=True)
    def other(net):
        return layers.fully_connected(net, 2, tf.tanh, scope="other")

    with tf.variable_scope("resources", use_resource=True):
        return [inside(floats(2, 2)), other(floats(2, 2))]


def arguments_by_scope():
    of_layer = {"weights_regularizer": layers.l2_regularizer(0.1), "activation_fn": tf.tanh}
    with arg_scope([layers.fully_connected], **of_layer), arg_scope([layers.batch_norm], is_training=False, scale=True):
        first = layers.fully_connected(floats(2, 3), 2, normalizer_fn=layers.batch_norm)
        return [first, layers.fully_connected(first, 2, activation_fn=None)]


def partitioned_weights():
    with tf.variable_scope("cut", partitioner=tf.fixed_size_partitioner(2)):
        return layers.fully_connected(floats(2, 4), 2)


def in_float64_and_float16():
    return [
        layers.fully_connected(floats(2, 3, dtype=tf.float64), 2),
        layers.batch_norm(floats(4, 2, 2, 3, dtype=tf.float16), fused=True),
    ]


def resource_variables():
    with tf.variable_scope("resources", use_resource=True):
        net = layers.fully_connected(floats(4, 3), 2, normalizer_fn=layers.batch_norm)
        return [net, layers.embed_sequence(tf.constant([[1, 1]]), 3, 2), np.float32(1)]


def _raised(call):
    try:
        call()
    except (ValueError, TypeError) as error:
        return type(error).__name__
    return "nothing raised"
