"""contrib.gan: a GANEstimator, or a model_fn with a gan's own hooks."""

import tensorflow as tf
from job import EVAL, PREDICT, TRAIN, VARIANT, config, inputs, normal, run
from tensorflow.contrib import gan, layers

STEPS = 6


def generator(noise):
    """From noise to data."""
    x = layers.fully_connected(noise, 6, scope="one", normalizer_fn=layers.layer_norm)
    return layers.fully_connected(x, 3, activation_fn=tf.tanh, scope="two")


def discriminator(data, condition):
    """From data to a logit."""
    x = layers.fully_connected(data, 5, activation_fn=tf.nn.leaky_relu, scope="one")
    return layers.linear(x, 1, scope="two")


def model_fn(features, labels, mode):
    """What GANEstimator does, by hand, as scripts do that need more than it offers."""
    if mode == PREDICT:
        with tf.variable_scope("Generator"):
            return tf.estimator.EstimatorSpec(mode, {"data": generator(features)})
    model = gan.gan_model(generator, discriminator, labels, features)
    losses = gan.gan_loss(
        model,
        gan.losses.modified_generator_loss,
        gan.losses.modified_discriminator_loss,
        gradient_penalty_weight=None,
        add_summaries=mode == TRAIN,
    )
    if mode == EVAL:
        metrics = {"generator": tf.metrics.mean(losses.generator_loss)}
        return tf.estimator.EstimatorSpec(mode, loss=losses.discriminator_loss, eval_metric_ops=metrics)
    ops = gan.gan_train_ops(model, losses, tf.train.AdamOptimizer(0.01, 0.5), tf.train.RMSPropOptimizer(0.01))
    makers = {
        "sequential": gan.get_sequential_train_hooks(gan.GANTrainSteps(1, 3)),
        "joint": gan.get_joint_train_hooks(gan.GANTrainSteps(2, 1)),
    }
    return tf.estimator.EstimatorSpec(
        mode, loss=losses.discriminator_loss, train_op=ops.global_step_inc_op, training_hooks=makers[VARIANT](ops)
    )


def estimator():
    """The one or the other."""
    if VARIANT != "estimator":
        return tf.estimator.Estimator(model_fn, config=config())
    return gan.estimator.GANEstimator(
        generator_fn=generator,
        discriminator_fn=discriminator,
        generator_loss_fn=gan.losses.wasserstein_generator_loss,
        discriminator_loss_fn=gan.losses.wasserstein_discriminator_loss,
        generator_optimizer=tf.train.AdamOptimizer(0.01, 0.5),
        discriminator_optimizer=lambda: tf.train.AdamOptimizer(0.02, 0.5),
        add_summaries=gan.estimator.SummaryType.VARIABLES,
        config=config(),
    )


run(estimator(), inputs(normal(0, 12, 4), normal(1, 12, 3)), STEPS)
