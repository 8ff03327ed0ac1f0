"""Cases of tf.contrib.distributions."""

import tensorflow as tf

ds = tf.contrib.distributions


def logarithms():
    some = [
        ds.Normal(1.0, 2.0),
        ds.Bernoulli(logits=0.5),
        ds.Categorical(logits=[0.1, 0.2]),
        ds.Uniform(-1.0, 3.0),
        ds.Gamma(2.0, 3.0),
        ds.Beta(2.0, 3.0),
        ds.Laplace(0.0, 1.0),
        ds.StudentT(3.0, 0.0, 1.0),
        ds.Exponential(2.0),
    ]
    return [one.prob(1) if isinstance(one, (ds.Bernoulli, ds.Categorical)) else one.log_prob(0.5) for one in some]


def of_vectors():
    counts = tf.constant([1.0, 2.0])
    return [
        ds.Dirichlet([1.0, 2.0]).log_prob([0.4, 0.6]),
        ds.DirichletMultinomial(3.0, [1.0, 2.0]).log_prob(counts),
        ds.Multinomial(3.0, logits=[0.1, 0.2]).log_prob(counts),
    ]


def divergence():
    normal = ds.Normal([0.0, 1.0], 1.0)
    return [ds.kl_divergence(normal, ds.Normal(0.5, 2.0)), normal.reparameterization_type == ds.FULLY_REPARAMETERIZED]
