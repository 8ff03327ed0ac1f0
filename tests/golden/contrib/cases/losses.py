"""Cases of tf.contrib.losses."""

import tensorflow as tf
from record import floats

losses = tf.contrib.losses


def _labels():
    return tf.constant([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def regression():
    predictions, labels = floats(2, 3), floats(2, 3)
    weights = tf.constant([[0.5], [2.0]])
    return [
        losses.absolute_difference(predictions, labels),
        losses.absolute_difference(predictions, labels, weights=0.3, scope="named"),
        losses.mean_squared_error(predictions, labels),
        losses.mean_squared_error(predictions, labels, weights=weights),
        losses.mean_squared_error(predictions, labels, weights=tf.constant([1.0, 0.0])),
        losses.mean_pairwise_squared_error(predictions, labels),
        losses.mean_pairwise_squared_error(predictions, labels, weights=tf.constant([1.0, 0.5])),
        losses.cosine_distance(predictions, labels, axis=1),
        losses.cosine_distance(predictions, labels, dim=1, weights=0.5),
        losses.get_total_loss(),
    ]


def classification():
    logits, labels = floats(2, 3), _labels()
    return [
        losses.softmax_cross_entropy(logits, labels),
        losses.softmax_cross_entropy(logits, labels, weights=tf.constant([1.0, 3.0]), label_smoothing=0.2, scope="named"),
        losses.sparse_softmax_cross_entropy(logits, tf.constant([2, 0], tf.int64)),
        losses.sparse_softmax_cross_entropy(logits, tf.constant([[2], [0]], tf.int64), weights=tf.constant([0.5, 1.0])),
        losses.sigmoid_cross_entropy(logits, labels),
        losses.sigmoid_cross_entropy(logits, labels, weights=tf.constant([0.5, 1.0]), label_smoothing=0.1),
        losses.log_loss(tf.sigmoid(logits), labels),
        losses.log_loss(tf.sigmoid(logits), labels, weights=2.0, epsilon=1e-3),
        losses.hinge_loss(logits, labels),
    ]


def collections():
    tf.get_variable("weights", [2], regularizer=tf.contrib.layers.l2_regularizer(0.1))
    losses.add_loss(floats())
    losses.add_loss(floats(), loss_collection="mine")
    with tf.variable_scope("inside"):
        losses.mean_squared_error(floats(2), floats(2))
    weighted = losses.compute_weighted_loss(floats(2, 3), weights=tf.constant([0.5, 1.0]))
    return {
        "weighted": weighted,
        "plain": losses.compute_weighted_loss(floats(3), scope="named"),
        "all": [loss.name for loss in losses.get_losses()],
        "inside": [loss.name for loss in losses.get_losses("inside")],
        "mine": [loss.name for loss in losses.get_losses(loss_collection="mine")],
        "regularization": [tf.identity(loss) for loss in losses.get_regularization_losses()],
        "total": losses.get_total_loss(name="everything"),
        "without": losses.get_total_loss(add_regularization_losses=False),
    }


def refusals():
    calls = [
        lambda: losses.mean_squared_error(floats(2, 3), floats(3, 2)),
        lambda: losses.softmax_cross_entropy(floats(2, 3), floats(2, 2)),
        lambda: losses.compute_weighted_loss(floats(2), weights=None),
        lambda: losses.cosine_distance(floats(2, 3), floats(2, 3)),
        losses.get_total_loss,
    ]
    return [_raised(call) for call in calls]


def metric_learning():
    learning = losses.metric_learning
    embeddings, positive = tf.nn.l2_normalize(floats(4, 3), 1), tf.nn.l2_normalize(floats(4, 3), 1)
    labels = tf.constant([0, 1, 0, 1])
    sparse = [tf.SparseTensor([[0]], tf.constant([label], tf.int64), [3]) for label in (0, 1, 0, 2)]
    return [
        learning.contrastive_loss(tf.cast(labels, tf.float32), embeddings, positive, margin=0.5),
        learning.triplet_semihard_loss(labels, embeddings, margin=0.5),
        learning.npairs_loss(labels, embeddings, positive, reg_lambda=0.1),
        learning.npairs_loss_multilabel(sparse, embeddings, positive),
        learning.lifted_struct_loss(labels, embeddings),
    ]


def _raised(call):
    try:
        call()
    except ValueError as error:
        return type(error).__name__
    return "nothing raised"
