"""Model functions that compute something else than their lines seem to say: none is converted."""

import copy

import tensorflow as tf

units = 4


class Net(object):
    def layer(self, x):
        return tf.layers.dense(x, units)


class Config(object):
    def __init__(self):
        self.hidden, self.heads = 4, 2

    @property
    def size(self):
        return self.hidden * self.heads


def spec(mode, net, labels):
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def a_default_name_that_a_scope_has(features, labels, mode):
    with tf.variable_scope("block"):
        net = tf.layers.dense(features["x"], 4)
    with tf.variable_scope(None, default_name="block"):
        net = tf.layers.dense(net, 4)
    return spec(mode, net, labels)


def a_name_that_is_counted_too(features, labels, mode):
    net = tf.layers.dense(features["x"], 4, name="dense")
    net = tf.layers.dense(net, 4)
    return spec(mode, net, labels)


def a_target_with_another_value(features, labels, mode, params):
    net = features["x"]
    for place, n in enumerate(params["sizes"]):
        if n > 8:
            n = 10
        net = tf.layers.dense(net, n, name="layer_%d" % place)
    return spec(mode, net, labels)


def a_list_that_shrinks(features, labels, mode, params):
    net = features["x"]
    for place in range(2):
        width = params["sizes"][0]
        net = tf.layers.dense(net, width, name="layer_%d" % place)
        params["sizes"].pop(0)
    return spec(mode, net, labels)


def a_list_of_two_names(features, labels, mode, params):
    net, sizes = features["x"], [4, 4]
    more = sizes
    more += [params["last"]]
    for place, size in enumerate(sizes):
        net = tf.layers.dense(net, size, name="layer_%d" % place)
    return spec(mode, net, labels)


def a_default_of_a_scope(features, labels, mode):
    with tf.variable_scope("net") as scope:
        scope.set_initializer(tf.ones_initializer())
        net = tf.layers.dense(features["x"], 4)
    return spec(mode, net, labels)


def two_loops_of_one_name(features, labels, mode):
    net = features["x"]
    for i in range(2):
        width = 4 * (i + 1)
        for i in range(2):
            net = tf.layers.dense(net, width, name="layer_%d" % i)
    return spec(mode, net, labels)


def made(x, units):
    net = Net()
    return net.layer(x) * float(units)


def another_value_of_a_name_in_a_method(features, labels, mode):
    return spec(mode, made(features["x"], 3), labels)


def a_property_of_a_copy(features, labels, mode):
    config = copy.deepcopy(Config())
    net = features["x"]
    for place in range(2):
        config.heads = 1
        net = tf.layers.dense(net, config.size, name="layer_%d" % place)
    return spec(mode, net, labels)


def penalty(scale):
    if scale == 0:
        return 0.0
    total = 0.0
    for variable in tf.trainable_variables():
        total += tf.nn.l2_loss(variable)
    return total * scale


def a_penalty_of_what_all_layers_made(features, labels, mode, params):
    net = tf.layers.dense(features["x"], 1)
    loss = tf.losses.mean_squared_error(labels, net) + penalty(params["scale"])
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def a_penalty_of_global_variables(features, labels, mode):
    net = tf.layers.dense(features["x"], 1)
    kernels = [one for one in tf.global_variables() if "kernel" in one.name]
    loss = tf.losses.mean_squared_error(labels, net) + sum(tf.nn.l2_loss(one) for one in kernels)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def a_variable_of_a_layer_in_a_loop(features, labels, mode):
    net = features["x"]
    for place in range(2):
        net = tf.layers.dense(net, 4, name="layer_%d" % place)
    with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
        kernel = tf.get_variable("layer_0/kernel", [4, 4])
    return spec(mode, net + tf.reduce_sum(kernel), labels)


def a_metric_beside_the_loss(features, labels, mode):
    net = tf.layers.dense(features["x"], 1)
    if net.shape[1] == 1:
        loss = tf.losses.mean_squared_error(labels, net)
        error = tf.metrics.root_mean_squared_error(labels, net)
    else:
        raise ValueError("one answer for each row")
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"error": error})


def add_metric(function, name, labels, net, metrics):
    value = function(labels, net)
    metrics[name] = value


def metrics_that_a_function_fills(features, labels, mode):
    """A loop binds a name of the next one, too, which the loss does not need."""
    net, metrics, loss = tf.layers.dense(features["x"], 1), {}, 0.0
    for name, answers in [("error", labels)]:
        add_metric(tf.metrics.mean_absolute_error, name, answers, net, metrics)
    for answers in [labels]:
        loss += tf.losses.mean_squared_error(answers, net)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def halve(given):
    given["units"] //= 2


def hyperparameters_that_a_function_changes(features, labels, mode, params):
    halve(params)
    return spec(mode, tf.layers.dense(tf.layers.dense(features["x"], params["units"]), 1), labels)


def built(network):
    def model_fn(features, labels, mode):
        return spec(mode, network.layer(features["x"]), labels)

    return tf.estimator.Estimator(model_fn)


ESTIMATORS = [
    tf.estimator.Estimator(a_default_name_that_a_scope_has),
    tf.estimator.Estimator(a_name_that_is_counted_too),
    tf.estimator.Estimator(a_target_with_another_value),
    tf.estimator.Estimator(a_list_that_shrinks),
    tf.estimator.Estimator(a_list_of_two_names),
    tf.estimator.Estimator(a_default_of_a_scope),
    tf.estimator.Estimator(two_loops_of_one_name),
    tf.estimator.Estimator(another_value_of_a_name_in_a_method),
    tf.estimator.Estimator(a_property_of_a_copy),
    tf.estimator.Estimator(a_penalty_of_what_all_layers_made),
    tf.estimator.Estimator(a_penalty_of_global_variables),
    tf.estimator.Estimator(a_variable_of_a_layer_in_a_loop),
    tf.estimator.Estimator(a_metric_beside_the_loss),
    tf.estimator.Estimator(metrics_that_a_function_fills),
    tf.estimator.Estimator(hyperparameters_that_a_function_changes, params={"units": 8}),
    built(Net()),
]
