"""Optimizers as scripts of TensorFlow 1 define them: what they do to a reference and to a resource variable is not always the same."""

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_ops, math_ops, state_ops
from tensorflow.python.training import optimizer, training_ops


class OnlyReference(optimizer.Optimizer):
    """Gradient descent; resource variables are not implemented."""

    def __init__(self, rate, name="OnlyReference"):
        super(OnlyReference, self).__init__(False, name)
        self._rate = rate

    def _prepare(self):
        self._rate_t = ops.convert_to_tensor(self._rate, name="rate")

    def _apply_dense(self, grad, var):
        step = math_ops.cast(self._rate_t, var.dtype.base_dtype) * grad
        return control_flow_ops.group(*[state_ops.assign_sub(var, step)])

    def _apply_sparse(self, grad, var):
        return state_ops.scatter_sub(var, grad.indices, 2.0 * self._rate_t * grad.values, use_locking=self._use_locking)

    def _resource_apply_dense(self, grad, handle):
        raise NotImplementedError("resource variables")

    def _resource_apply_sparse(self, grad, handle, indices):
        raise NotImplementedError("resource variables")


class HeavyBall(tf.train.Optimizer):
    """Momentum by assignments whose results it goes on with; a resource variable would get half the step."""

    def __init__(self, rate, momentum=0.9, name="HeavyBall"):
        super(HeavyBall, self).__init__(False, name)
        self._rate, self._momentum = rate, momentum

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _apply_dense(self, grad, var):
        m = self.get_slot(var, "m")
        m_t = state_ops.assign(m, m * self._momentum, use_locking=self._use_locking)
        m_t = state_ops.assign_add(m_t, grad, use_locking=self._use_locking)
        return tf.assign_sub(var, self._rate * m_t)

    def _apply_sparse(self, grad, var):
        m = self.get_slot(var, "m")
        with tf.control_dependencies([m.assign(self._momentum * m)]):
            m_t = tf.scatter_add(m, grad.indices, grad.values)
        return tf.scatter_update(var, grad.indices, tf.gather(var, grad.indices) - self._rate * tf.gather(m_t, grad.indices))

    def _resource_apply_dense(self, grad, var):
        return var.assign_sub(0.5 * self._rate * grad)

    def _resource_apply_sparse(self, grad, var, indices):
        return var.scatter_sub(tf.IndexedSlices(0.5 * self._rate * grad, indices))


class MaximalAdam(tf.train.Optimizer):
    """Adam with a maximum (AMSGrad), powers of the betas in variables, one method for both kinds of sparse gradients."""

    def __init__(self, rate=0.01, beta1=0.9, beta2=0.99, epsilon=1e-8, name="MaximalAdam"):
        super(MaximalAdam, self).__init__(False, name)
        self._lr, self._beta1, self._beta2, self._epsilon = rate, beta1, beta2, epsilon

    def _powers(self):
        graph = ops.get_default_graph()
        return [self._get_non_slot_variable(name, graph=graph) for name in ("beta1_power", "beta2_power")]

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        self._create_non_slot_variable(self._beta2, "beta2_power", first)
        for var in var_list:
            for name in ("m", "v", "v_hat"):
                self._zeros_slot(var, name, self._name)

    def _apply_dense(self, grad, var):
        power1, power2 = self._powers()
        rate = self._lr * tf.sqrt(1 - power2) / (1 - power1)
        m, v, v_hat = (self.get_slot(var, name) for name in ("m", "v", "v_hat"))
        m_t = m.assign(self._beta1 * m + (1 - self._beta1) * grad)
        v_t = v.assign(self._beta2 * v + (1 - self._beta2) * tf.square(grad))
        v_hat_t = v_hat.assign(tf.maximum(v_t, v_hat))
        var_update = state_ops.assign_sub(var, rate * m_t / (tf.sqrt(v_hat_t) + self._epsilon))
        return control_flow_ops.group(*[var_update, m_t, v_t, v_hat_t])

    _resource_apply_dense = _apply_dense

    def _shared(self, grad, var, indices, scatter_add):
        power1, power2 = self._powers()
        rate = self._lr * tf.sqrt(1 - power2) / (1 - power1)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = state_ops.assign(m, m * self._beta1, use_locking=self._use_locking)
        with ops.control_dependencies([m_t]):
            m_t = scatter_add(m, indices, grad * (1 - self._beta1))
        v_t = state_ops.assign(v, v * self._beta2, use_locking=self._use_locking)
        with ops.control_dependencies([v_t]):
            v_t = scatter_add(v, indices, grad * grad * (1 - self._beta2))
        var_update = state_ops.assign_sub(var, rate * m_t / (tf.sqrt(v_t) + self._epsilon))
        return control_flow_ops.group(*[var_update, m_t, v_t])

    def _apply_sparse(self, grad, var):
        add = lambda x, i, v: state_ops.scatter_add(x, i, v, use_locking=self._use_locking)  # noqa: E731
        return self._shared(grad.values, var, grad.indices, add)

    def _resource_apply_sparse(self, grad, var, indices):
        raise NotImplementedError

    def _finish(self, update_ops, name_scope):
        with ops.control_dependencies(update_ops):
            power1, power2 = self._powers()
            with ops.colocate_with(power1):
                powers = [power1.assign(power1 * self._beta1), power2.assign(power2 * self._beta2)]
        return control_flow_ops.group(*update_ops + powers, name=name_scope)


class Kernels(tf.train.Optimizer):
    """Layer-wise rates (LARS) by TensorFlow's own momentum kernels; Nesterov's for resource variables."""

    def __init__(self, rate=0.1, momentum=0.9, name="Kernels"):
        super(Kernels, self).__init__(False, name)
        self._rate, self._momentum = rate, momentum

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _layer_rate(self, grad, var):
        return self._rate * tf.where(tf.norm(grad) > 0.0, tf.norm(var) / (tf.norm(grad) + 0.1 * tf.norm(var) + 1e-9), 1.0)

    def _apply_dense(self, grad, var):
        mom = self.get_slot(var, "momentum")
        rate = self._layer_rate(grad, var)
        return training_ops.apply_momentum(var, mom, rate, grad, self._momentum, use_locking=False, use_nesterov=False).op

    def _resource_apply_dense(self, grad, var):
        mom = self.get_slot(var, "momentum")
        return training_ops.resource_apply_momentum(
            var.handle, mom.handle, self._layer_rate(grad, var), grad, self._momentum, use_nesterov=True
        )

    def _apply_sparse(self, grad, var):
        mom = self.get_slot(var, "momentum")
        decayed = mom.assign(0.5 * mom)
        return training_ops.sparse_apply_momentum(
            var=var, accum=decayed, lr=self._rate, grad=grad.values, indices=grad.indices, momentum=self._momentum
        )

    def _resource_apply_sparse(self, grad, var, indices):
        raise NotImplementedError


class DecayedAdam(tf.train.AdamOptimizer):
    """Adam that first decays the variable (AdamW), and only reference variables."""

    def _decayed(self, var):
        return state_ops.assign_sub(var, 0.1 * var)

    def _apply_dense(self, grad, var):
        with ops.control_dependencies([self._decayed(var)]):
            return super(DecayedAdam, self)._apply_dense(grad, var)

    def _apply_sparse(self, grad, var):
        with ops.control_dependencies([tf.scatter_sub(var, grad.indices, 0.1 * tf.gather(var, grad.indices))]):
            return super(DecayedAdam, self)._apply_sparse(grad, var)


class CenteredRms(tf.train.RMSPropOptimizer):
    """RMSProp of gradients without their mean over the rows."""

    def _apply_dense(self, grad, var):
        if grad.shape.ndims == 2:
            grad -= tf.reduce_mean(grad, axis=0, keepdims=True)
        return super(CenteredRms, self)._apply_dense(grad, var)


class SmallerSteps(tf.train.GradientDescentOptimizer):
    """Gradient descent that scales what it passes on, by the class's name and not by super."""

    def _apply_dense(self, grad, var):
        return tf.train.GradientDescentOptimizer._apply_dense(self=self, grad=0.5 * grad, var=var)

    def _apply_sparse_duplicate_indices(self, grad, var):
        grad = tf.IndexedSlices(0.25 * grad.values, grad.indices, grad.dense_shape)
        return tf.train.GradientDescentOptimizer._apply_sparse_duplicate_indices(self, grad, var)


class Factored(tf.train.Optimizer):
    """Adafactor: each kind of gradient ends in the method for dense ones of resource variables."""

    def __init__(self, learning_rate=0.1, decay=0.8, name="Factored"):
        super(Factored, self).__init__(False, name)
        self._rate, self._decay = learning_rate, decay

    def _create_slots(self, var_list):
        for var in var_list:
            rows, columns = ([*var.get_shape().as_list(), None])[:2]
            if columns is None:
                self._zeros_slot(var, "v", self._name)
            else:
                self._get_or_make_slot(var, tf.zeros([rows]), "vr", self._name)
                self._get_or_make_slot(var, tf.zeros([columns]), "vc", self._name)

    def _apply_dense(self, grad, var):
        return self._resource_apply_dense(grad, var)

    def _apply_sparse(self, grad, var):
        return self._apply_dense(tf.convert_to_tensor(grad), var)

    def _resource_apply_sparse(self, grad, handle, indices):
        return self._resource_apply_dense(tf.convert_to_tensor(tf.IndexedSlices(grad, indices, tf.shape(handle))), handle)

    def _mean(self, slot, value):
        return self._decay * slot + (1 - self._decay) * value

    def _resource_apply_dense(self, grad, handle):
        var, squared = handle, tf.square(grad) + 1e-30
        scale = tf.maximum(tf.sqrt(tf.reduce_mean(tf.square(var))), 1e-3)
        if len(var.get_shape().as_list()) == 2:
            vr, vc = self.get_slot(var, "vr"), self.get_slot(var, "vc")
            new_vr, new_vc = self._mean(vr, tf.reduce_mean(squared, 1)), self._mean(vc, tf.reduce_mean(squared, 0))
            updates = [tf.assign(vr, new_vr), tf.assign(vc, new_vc)]
            x = grad * tf.expand_dims(tf.rsqrt(new_vr / tf.reduce_mean(new_vr)), 1) * tf.expand_dims(tf.rsqrt(new_vc), 0)
        else:
            v = self.get_slot(var, "v")
            new_v = self._mean(v, squared)
            updates, x = [tf.assign(v, new_v)], grad * tf.rsqrt(new_v)
        x /= tf.maximum(1.0, tf.sqrt(tf.reduce_mean(tf.square(x))))
        return tf.group(tf.assign_sub(var, self._rate * scale * x), *updates)


class Signs(tf.train.Optimizer):
    """PowerSign, by TensorFlow's kernel for dense gradients; no method for sparse ones but by way of a dense one."""

    def __init__(self, rate=0.1, name="Signs"):
        super(Signs, self).__init__(False, name)
        self._rate = rate

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _apply_dense(self, grad, var):
        m = self.get_slot(var, "m")
        log_base, decay = tf.log(2.0), tf.constant(0.5)
        return training_ops.apply_power_sign(var, m, self._rate, log_base, decay, 0.9, grad, use_locking=self._use_locking).op

    def _apply_sparse(self, grad, var):
        return self._apply_dense(tf.convert_to_tensor(grad), var)


class Averaging(tf.train.Optimizer):
    """Passes each gradient on to another optimizer and averages the variables, in a method that both kinds share."""

    def __init__(self, inner, decay=0.9, name="Averaging"):
        super(Averaging, self).__init__(False, name)
        self._inner, self._decay = inner, decay

    def _prepare(self):
        self._inner._prepare()

    def _create_slots(self, var_list):
        self._inner._create_slots(var_list)
        for var in var_list:
            self._get_or_make_slot(var, var.initialized_value(), "average", self._name)

    def _averaged(self, var, update):
        average = self.get_slot(var, "average")
        with tf.control_dependencies([update]):
            return tf.group(update, average.assign(self._decay * average + (1 - self._decay) * var.read_value()))

    def _apply_dense(self, grad, var):
        return self._averaged(var, self._inner._apply_dense(grad, var))

    def _apply_sparse(self, grad, var):
        return self._averaged(var, self._inner._apply_sparse(grad, var))

    def _finish(self, update_ops, name_scope):
        return self._inner._finish(update_ops, name_scope)


class Lookahead(tf.train.Optimizer):
    """Every second step the variables go back half the way to slow copies of them."""

    def __init__(self, inner, name="Lookahead"):
        super(Lookahead, self).__init__(False, name)
        self._inner = inner

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        variables = [var for _, var in grads_and_vars]
        update = self._inner.apply_gradients(grads_and_vars, global_step)
        slow = [tf.Variable(var.initialized_value(), trainable=False, name=var.op.name + "/slow") for var in variables]
        with tf.control_dependencies([update]):
            count = tf.train.get_global_step().read_value()

            def go_back():
                merged = [tf.assign(old, old + 0.5 * (var.read_value() - old)) for old, var in zip(slow, variables)]
                with tf.control_dependencies(merged):
                    return tf.group(*[tf.assign(var, old.read_value()) for old, var in zip(slow, variables)])

            return tf.cond(tf.equal(count % 2, 0), go_back, tf.no_op)


class Accumulating(tf.train.Optimizer):
    """Adds up two steps' gradients, then lets another optimizer apply their mean."""

    def __init__(self, inner, name="Accumulating"):
        super(Accumulating, self).__init__(False, name)
        self._inner = inner

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = [(tf.convert_to_tensor(grad), var) for grad, var in grads_and_vars]
        sums = [tf.get_variable(var.op.name + "/sum", initializer=tf.zeros(var.shape), trainable=False) for _, var in pairs]
        count = tf.get_variable("passes", initializer=0, trainable=False)
        added = [total.assign_add(grad) for total, (grad, _) in zip(sums, pairs)] + [tf.assign_add(count, 1)]
        with tf.control_dependencies(added):
            is_full = tf.equal(count.read_value() % 2, 0)

            def apply():
                means = [(total.read_value() / 2.0, var) for total, (_, var) in zip(sums, pairs)]
                with tf.control_dependencies([self._inner.apply_gradients(means)]):
                    return tf.group(*[total.assign(tf.zeros_like(total)) for total in sums])

            with tf.control_dependencies([tf.cond(is_full, apply, tf.no_op)]):
                return tf.assign_add(global_step, 1).op


class Layerwise(tf.train.Optimizer):
    """LAMB as BERT-like code has it: all in apply_gradients, with moments from get_variable and no method for one variable."""

    def __init__(self, rate=0.01, name="Layerwise"):
        super(Layerwise, self).__init__(False, name)
        self._rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        done = []
        for given, var in grads_and_vars:
            zeros = {"shape": var.shape.as_list(), "trainable": False, "initializer": tf.zeros_initializer()}
            m, v = (tf.get_variable(var.op.name + suffix, **zeros) for suffix in ("/lamb_m", "/lamb_v"))
            grad = tf.convert_to_tensor(given)
            next_m, next_v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * tf.square(grad)
            update = next_m / (tf.sqrt(next_v) + 1e-6) + 0.01 * var
            ratio = tf.where(tf.greater(tf.norm(var), 0), tf.norm(var) / tf.norm(update), 1.0)
            done += [var.assign(var - ratio * self._rate * update), m.assign(next_m), v.assign(next_v)]
        return tf.group(*([*done, global_step.assign(global_step + 1)]), name=name)


class Cyclic(tf.train.MomentumOptimizer):
    """Momentum whose rate restarts (SGDR): a count of its own, and the rate in a variable that each step assigns."""

    def __init__(self, rate=0.1, name="Cyclic"):
        super(Cyclic, self).__init__(rate, 0.9, name=name)
        self._base = rate

    def _create_slots(self, var_list):
        super(Cyclic, self)._create_slots(var_list)
        self._create_non_slot_variable(0.0, "count", var_list[0])

    def _apply_dense(self, grad, var):
        count = self._get_non_slot_variable("count", graph=ops.get_default_graph())
        rate = self._base * 0.5 * (1 + tf.cos(3.14159 * tf.floormod(count, 2.0) / 2.0))
        momentum = self.get_slot(var, "momentum")
        return training_ops.apply_momentum(var, momentum, rate, grad, 0.9, use_nesterov=True)

    def _finish(self, update_ops, name_scope):
        count = self._get_non_slot_variable("count", graph=ops.get_default_graph())
        with tf.control_dependencies(update_ops):
            return tf.group(state_ops.assign_add(count, 1.0), name=name_scope)


class Swapped(tf.train.Optimizer):
    """Stochastic weight averaging: the mean of all values so far in a slot, the step by tf.assign of a new value."""

    def __init__(self, rate=0.1, name="Swapped"):
        super(Swapped, self).__init__(False, name)
        self._rate = rate

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "mean", self._name)

    def _apply_dense(self, grad, var):
        count = tf.cast(tf.train.get_or_create_global_step(), tf.float32)
        mean = self.get_slot(var, "mean")
        new = tf.clip_by_value(var - self._rate * grad, -1.0, 1.0)
        var_t = tf.assign(var, new, use_locking=self._use_locking)
        return tf.group(var_t, tf.assign(mean, (mean * count + var_t) / (count + 1.0)))

    def _apply_sparse(self, grad, var):
        values, indices = grad.values, grad.indices
        mean = self.get_slot(var, "mean")
        var_t = var.scatter_sub(tf.IndexedSlices(self._rate * values, indices))
        with tf.control_dependencies([var_t]):
            return state_ops.scatter_update(mean, indices, tf.gather(var, indices))
