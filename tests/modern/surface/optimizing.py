"""Several optimizers, custom ones, wrappers, schedules, and code between compute and apply."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.modern.jobs import ModelFn, embedded, linear, spec, v1
from tests.modern.surface.building import Features, squared, step

trainer = v1.train
Pairs = list[tuple[Any, Any]]


def loss_of(features: Features, labels: Any) -> Any:
    return squared(linear(features["x"]) + embedded(features["words"]), labels)


def minimized_by(make: Callable[[], Any]) -> ModelFn:
    def model_fn(features: Features, labels: Any, mode: str) -> Any:
        loss = loss_of(features, labels)
        return spec(mode, loss, make().minimize(loss, step()))

    return model_fn


def scheduled(features: Features, labels: Any, mode: str) -> Any:
    """Every schedule, each with a separate optimizer and layer."""
    losses, trained = [], []
    for place, (name, rate) in enumerate(SCHEDULES.items()):
        with v1.variable_scope(name.replace(" ", "_")):
            losses.append(squared(linear(features["x"]), labels))
        make = trainer.AdamOptimizer if place % 2 else trainer.GradientDescentOptimizer
        trained.append(make(rate()).minimize(losses[-1], var_list=v1.trainable_variables()[-2:]))
    with tf.control_dependencies(trained):
        return spec(mode, tf.add_n(losses), v1.assign_add(step(), 1).op)


def warmed_up() -> Any:
    """BERT's schedule: linear warm-up, then polynomial decay."""
    rate = trainer.polynomial_decay(tf.constant(0.1), step(), 10, end_learning_rate=0.0)
    done = tf.cast(step(), tf.float32) / 3.0
    return tf.where(tf.cast(step(), tf.int32) < 3, 0.1 * done, rate)


SCHEDULES: dict[str, Callable[[], Any]] = {
    "exponential_decay": lambda: trainer.exponential_decay(0.1, step(), 2, 0.5, staircase=True),
    "polynomial_decay": lambda: trainer.polynomial_decay(0.1, step(), 5, 0.01, power=2.0, cycle=True),
    "piecewise_constant": lambda: trainer.piecewise_constant(step(), [1, 3], [0.1, 0.05, 0.01]),
    "cosine_decay": lambda: trainer.cosine_decay(0.1, step(), 6, alpha=0.1),
    "cosine_decay_restarts": lambda: trainer.cosine_decay_restarts(0.1, step(), 2),
    "linear_cosine_decay": lambda: trainer.linear_cosine_decay(0.1, step(), 6),
    "noisy_linear_cosine_decay": lambda: trainer.noisy_linear_cosine_decay(0.1, step(), 6),
    "inverse_time_decay": lambda: trainer.inverse_time_decay(0.1, step(), 2, 0.5),
    "natural_exp_decay": lambda: trainer.natural_exp_decay(0.1, step(), 2, 0.5),
    "warm-up": warmed_up,
    "a variable": lambda: v1.get_variable("rate", initializer=0.1, trainable=False),
}


def clipped(features: Features, labels: Any, mode: str) -> Any:
    loss = loss_of(features, labels)
    variables = v1.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.05)
    v1.summary.scalar("norm", norm)
    train_op = trainer.RMSPropOptimizer(0.01, momentum=0.9).apply_gradients(zip(gradients, variables, strict=True), step())
    return spec(mode, loss, train_op)


def loss_scaled(features: Features, labels: Any, mode: str) -> Any:
    """Loss scaling for float16; steps with gradients that are not finite are skipped."""
    scale = v1.get_variable("loss_scale", initializer=128.0, trainable=False)
    loss = loss_of(features, labels)
    optimizer = trainer.MomentumOptimizer(0.01, 0.9)
    pairs = [(gradient / scale, variable) for gradient, variable in dense(optimizer.compute_gradients(loss * scale))]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(gradient)) for gradient, _ in pairs])
    pairs = [(tf.where(finite, gradient, tf.zeros_like(gradient)), variable) for gradient, variable in pairs]
    with tf.control_dependencies([optimizer.apply_gradients(pairs, step())]):
        return spec(mode, loss, scale.assign(tf.where(finite, scale * 2.0, scale / 2.0)).op)


def dense(pairs: Pairs) -> Pairs:
    return [(tf.convert_to_tensor(gradient), variable) for gradient, variable in pairs]


def accumulating(features: Features, labels: Any, mode: str) -> Any:
    """Applies the mean of two steps' gradients at every other step."""
    loss = loss_of(features, labels)
    optimizer = trainer.GradientDescentOptimizer(0.1)
    pairs = dense(optimizer.compute_gradients(loss))
    sums = [v1.get_variable(v.op.name + "/sum", v.shape, trainable=False, initializer=v1.zeros_initializer()) for _, v in pairs]
    with tf.control_dependencies([v1.assign_add(total, gradient) for total, (gradient, _) in zip(sums, pairs, strict=True)]):
        full = tf.equal(step() % 2, 1)

    def apply() -> Any:
        means = [(total.read_value() / 2.0, variable) for total, (_, variable) in zip(sums, pairs, strict=True)]
        with tf.control_dependencies([optimizer.apply_gradients(means)]):
            return tf.group(*[v1.assign(total, tf.zeros_like(total)) for total in sums])

    with tf.control_dependencies([v1.cond(full, apply, tf.no_op)]):
        return spec(mode, loss, v1.assign_add(step(), 1).op)


def judged(features: Features, labels: Any) -> tuple[Any, Any]:
    with v1.variable_scope("maker"):
        made = linear(features["x"])
    with v1.variable_scope("judge", reuse=v1.AUTO_REUSE):
        real, fake = linear(labels), linear(made)
    return squared(real, 1.0) + squared(fake, 0.0), squared(fake, 1.0)


def grouped_gan(features: Features, labels: Any, mode: str) -> Any:
    """Both train_ops in one tf.group: neither waits for the other, both read the old values first."""
    judging, fooling = judged(features, labels)
    one, other = trainer.AdamOptimizer(0.05, 0.5), trainer.AdamOptimizer(0.01, 0.5)
    pairs = one.compute_gradients(judging, v1.trainable_variables("judge"))
    others = other.compute_gradients(fooling, v1.trainable_variables("maker"))
    with tf.control_dependencies([gradient for gradient, _ in [*pairs, *others]]):
        return spec(mode, judging + fooling, tf.group(one.apply_gradients(pairs), other.apply_gradients(others, step())))


def alternating_gan(features: Features, labels: Any, mode: str) -> Any:
    """One optimizer at even steps, the other at odd ones."""
    judging, fooling = judged(features, labels)
    with tf.control_dependencies([judging, fooling]):
        applied = v1.cond(
            tf.equal(step() % 2, 0),
            lambda: minimized(trainer.GradientDescentOptimizer(0.05), judging, "judge"),
            lambda: minimized(trainer.GradientDescentOptimizer(0.01), fooling, "maker"),
        )
    with tf.control_dependencies([applied]):
        return spec(mode, judging + fooling, v1.assign_add(step(), 1).op)


def minimized(optimizer: Any, loss: Any, scope: str) -> Any:
    variables = v1.trainable_variables(scope)
    with tf.control_dependencies([optimizer.apply_gradients(zip(tf.gradients(loss, variables), variables, strict=True))]):
        return tf.constant(True)


def averaged(features: Features, labels: Any, mode: str) -> Any:
    """EMA shadows of the trained variables and of the loss, which is not a variable."""
    loss = loss_of(features, labels)
    average = trainer.ExponentialMovingAverage(0.9, zero_debias=True)
    shadows = average.apply([loss])
    with tf.control_dependencies([trainer.AdagradOptimizer(0.1).minimize(loss, step()), shadows]):
        moved = trainer.ExponentialMovingAverage(0.99, step()).apply(v1.trainable_variables())
    with tf.control_dependencies([shadows]):
        return spec(mode, tf.identity(average.average(loss)), moved)


class AdamWeightDecay(tf.compat.v1.train.Optimizer):
    """Adam without bias correction, with decoupled weight decay except for matching names; ``trust`` scales as LAMB does."""

    def __init__(self, rate: Any, excluded: tuple[str, ...] = ("bias",), trust: bool = False) -> None:
        super().__init__(False, "AdamWeightDecay")
        self._rate, self._excluded, self._trust = rate, excluded, trust

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        assignments: list[Any] = []
        for gradient, param in grads_and_vars:
            if gradient is None or param is None:
                continue
            m, v = (self._moment(param, suffix) for suffix in ("adam_m", "adam_v"))
            next_m = tf.multiply(0.9, m) + tf.multiply(1.0 - 0.9, gradient)
            next_v = tf.multiply(0.999, v) + tf.multiply(1.0 - 0.999, tf.square(gradient))
            update = next_m / (tf.sqrt(next_v) + 1e-6)
            if not any(re.search(pattern, param.name) for pattern in self._excluded):
                update += 0.01 * param
            updated = param - self._ratio(param, update) * self._rate * update
            assignments += [param.assign(updated), m.assign(next_m), v.assign(next_v)]
        return tf.group(*assignments, name=name)

    def _moment(self, param: Any, suffix: str) -> Any:
        name, zeros = param.op.name + "/" + suffix, v1.zeros_initializer()
        return v1.get_variable(name, param.shape.as_list(), tf.float32, trainable=False, initializer=zeros)

    def _ratio(self, param: Any, update: Any) -> Any:
        if not self._trust:
            return 1.0
        norms = tf.norm(param, ord=2), tf.norm(update, ord=2)
        return tf.where(norms[0] > 0, tf.where(norms[1] > 0, norms[0] / norms[1], 1.0), 1.0)


def of_bert(features: Features, labels: Any, mode: str) -> Any:
    losses, trained = [], []
    for name, trust in (("plain", False), ("lamb", True)):
        with v1.variable_scope(name):
            losses.append(loss_of(features, labels))
        variables = v1.trainable_variables(name)
        gradients, _ = tf.clip_by_global_norm(tf.gradients(losses[-1], variables), clip_norm=1.0)
        optimizer = AdamWeightDecay(warmed_up(), trust=trust)
        trained.append(optimizer.apply_gradients(zip(gradients, variables, strict=True), step()))
    with tf.control_dependencies(trained):  # BERT increments the step in the same group, in no fixed order
        return spec(mode, sum(losses), step().assign(step() + 1).op)


class HalfRate(tf.compat.v1.train.GradientDescentOptimizer):
    """A subclass that changes how a TensorFlow 1 optimizer applies."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return super()._apply_dense(grad * 0.5, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return super()._resource_apply_dense(grad * 0.5, handle)


class Wrapped(tf.compat.v1.train.Optimizer):
    """A wrapper of another optimizer, as in tf.contrib.opt and tf.contrib.tpu, that averages the trained variables."""

    def __init__(self, inner: Any) -> None:
        super().__init__(False, "Wrapped")
        self._inner, self._average = inner, trainer.ExponentialMovingAverage(0.9)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Pairs:
        return list(self._inner.compute_gradients(*args, **kwargs))

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        pairs = list(grads_and_vars)
        with tf.control_dependencies([self._inner.apply_gradients(pairs, global_step)]):
            return self._average.apply([variable for _, variable in pairs])


def by_parts(features: Features, labels: Any, mode: str) -> Any:
    """A var_list for each optimizer; one optimizer has a separate rate for each variable."""
    loss = loss_of(features, labels)
    pairs = dense(trainer.MomentumOptimizer(0.1, 0.9).compute_gradients(loss))
    first = trainer.MomentumOptimizer(0.1, 0.9, use_nesterov=True).apply_gradients(pairs[:1])
    rest = [trainer.FtrlOptimizer(0.1 / (place + 1)).apply_gradients([pair]) for place, pair in enumerate(pairs[1:])]
    with tf.control_dependencies([first, *rest]):
        return spec(mode, loss, v1.assign_add(step(), 1).op)


def nothing_to_train(features: Features, labels: Any, mode: str) -> Any:
    counts = v1.get_variable("counts", initializer=np.zeros(7, np.float32), trainable=False)
    counted = v1.scatter_add(counts, features["words"], tf.ones_like(features["words"], tf.float32))
    return spec(mode, tf.reduce_mean(labels), tf.group(counted, v1.assign_add(step(), 1)))


MODELS: dict[str, ModelFn] = {
    "learning rates on global_step": scheduled,
    "clip_by_global_norm": clipped,
    "loss scaling": loss_scaled,
    "accumulation": accumulating,
    "GAN in one group": grouped_gan,
    "GAN by turns": alternating_gan,
    "moving averages": averaged,
    "AdamWeightDecay, LAMB": of_bert,
    "subclass": minimized_by(lambda: HalfRate(0.1)),
    "wrapper": minimized_by(lambda: Wrapped(trainer.AdamOptimizer(0.05))),
    "var_lists": by_parts,
    "no optimizer": nothing_to_train,
}
