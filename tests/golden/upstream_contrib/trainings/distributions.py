"""A variational autoencoder with contrib.distributions, bijectors, Bayesian tools, image transformations and other packages."""

import numpy as np
import tensorflow as tf
from job import PREDICT, TRAIN, config, inputs, normal, run
from tensorflow.contrib import distributions, image, layers, losses, resampler, sparsemax

ds = distributions


def scores(x, hidden):
    """Log densities under many distributions."""
    a, b = tf.unstack(tf.nn.softplus(layers.linear(hidden, 2, scope="scores")) + 0.1, axis=1)
    y = x[:, 0]
    found = [
        ds.Normal(a, b).log_prob(y),
        ds.StudentT(a + 2.0, a, b).log_prob(y),
        ds.Gamma(a, b).log_prob(tf.exp(y)),
        ds.Beta(a, b).log_prob(tf.sigmoid(y)),
        ds.Laplace(a, b).log_prob(y),
        ds.Poisson(a).log_prob(tf.round(abs(y))),
        ds.Logistic(a, b).log_prob(y),
        ds.InverseGamma(a, b).log_prob(tf.exp(y)),
        ds.Mixture(ds.Categorical(tf.stack([a, b], 1)), [ds.Normal(a, 1.0), ds.Normal(b, 2.0)]).log_prob(y),
        ds.MixtureSameFamily(ds.Categorical(tf.stack([a, b], 1)), ds.Normal(tf.stack([a, b], 1), tf.stack([b, a], 1))).log_prob(
            y
        ),
        ds.TransformedDistribution(ds.Normal(a, b), ds.bijectors.Exp()).log_prob(tf.exp(y)),
        ds.TransformedDistribution(
            ds.MultivariateNormalDiag(tf.zeros([2])), ds.bijectors.Affine(shift=[0.1, 0.2], scale_diag=[0.5, 2.0])
        ).log_prob(x[:, :2])
        + 0.0 * a,
        ds.MultivariateNormalTriL(tf.zeros([2]), [[1.0, 0.0], [0.3, 0.8]]).log_prob(x[:, :2]) * b,
        ds.Dirichlet(tf.stack([a, b], 1)).log_prob(tf.nn.softmax(x[:, :2])),
        ds.VectorExponentialDiag(scale_diag=tf.stack([a, b], 1)).log_prob(tf.exp(x[:, :2])),
        ds.QuantizedDistribution(ds.Normal(a, b), low=-3.0, high=3.0).log_prob(tf.round(tf.clip_by_value(y, -2, 2))),
        ds.RelaxedBernoulli(0.7, logits=a).log_prob(tf.sigmoid(y)),
    ]
    return tf.add_n([tf.reduce_mean(one) for one in found])


def pictures(x):
    """Images that are turned and sampled."""
    images = tf.reshape(x, [-1, 2, 2, 1])
    turned = image.translate(image.rotate(tf.pad(images, [[0, 0], [1, 1], [1, 1], [0, 0]]), 0.5, "BILINEAR"), [0.5, 0.25])
    points = tf.tanh(x) + 1.5
    return tf.concat(
        [layers.flatten(turned), tf.reshape(resampler.resampler(turned, tf.reshape(points, [-1, 2, 2])), [-1, 2])], 1
    )


def model_fn(features, labels, mode):
    """An autoencoder whose code is a sample."""
    x = features["x"]
    hidden = layers.fully_connected(tf.concat([x, pictures(x)], 1), 6, tf.tanh)
    code = ds.MultivariateNormalDiag(
        layers.linear(hidden, 2, scope="mean"), tf.nn.softplus(layers.linear(hidden, 2, scope="deviation"))
    )
    prior = ds.MultivariateNormalDiag(tf.zeros([2]), tf.ones([2]))
    sample = code.sample(seed=51) if mode == TRAIN else code.mean()
    decoded = ds.Independent(ds.Bernoulli(logits=layers.linear(sample, 4, scope="decoded")), 1)
    share = sparsemax.sparsemax(layers.linear(hidden, 3, scope="share"))
    if mode == PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"mean": decoded.mean(), "share": share})
    likelihood = decoded.log_prob(tf.cast(x > 0, tf.float32))
    loss = tf.reduce_mean(ds.kl_divergence(code, prior) - likelihood) - 0.1 * scores(x, hidden)
    loss += losses.metric_learning.npairs_loss(tf.constant([0, 1, 2, 1]), hidden, hidden + 0.1) * 0.1
    loss += losses.metric_learning.triplet_semihard_loss(tf.constant([0, 1, 1, 0]), tf.nn.l2_normalize(hidden, 1))
    loss += tf.reduce_mean(sparsemax.sparsemax_loss(share, share, tf.one_hot(labels, 3)))
    train_op = tf.train.AdamOptimizer(0.02).minimize(loss, tf.train.get_global_step()) if mode == TRAIN else None
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


run(tf.estimator.Estimator(model_fn, config=config()), inputs({"x": normal(0, 12, 4)}, np.arange(12) % 3))
