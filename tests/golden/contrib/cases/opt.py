"""Cases of tf.contrib.opt: three steps on a dense and on a sparse gradient, for reference and for resource variables."""

import tensorflow as tf
from record import floats
from tensorflow.contrib.opt.python.training import sign_decay

opt = tf.contrib.opt


def _losses(scope, use_resource=False):
    with tf.variable_scope(scope, use_resource=use_resource):
        dense = tf.get_variable("dense", [2, 3])
        table = tf.get_variable("table", [5, 2])
    rows = tf.gather(table, tf.constant([1, 3, 1]))
    return tf.reduce_sum((floats(4, 2) @ dense) ** 2) + tf.reduce_sum(rows**2) + tf.reduce_sum(rows), [dense, table]


def _steps(optimizers):
    """A train_op for each optimizer and each kind of variable."""
    step = tf.train.get_or_create_global_step()
    train_ops = []
    for number, make in enumerate(optimizers):
        for use_resource in (False, True):
            loss, variables = _losses("of_%d_%s" % (number, "resource" if use_resource else "reference"), use_resource)
            optimizer = make()
            pairs = optimizer.compute_gradients(loss, variables)
            # Whether a step may change a variable before the gradient has read it is not what is asked.
            with tf.control_dependencies([gradient for gradient, _ in pairs]):
                train_ops.append(optimizer.apply_gradients(pairs, step))
    return {"run": train_ops}


def lazy_adam():
    return _steps([lambda: opt.LazyAdamOptimizer(0.1), lambda: opt.LazyAdamOptimizer(0.2, 0.8, 0.9, 1e-3, name="Lazy")])


def nadam():
    return _steps([lambda: opt.NadamOptimizer(0.1), lambda: opt.NadamOptimizer(0.2, 0.8, 0.9, 1e-3, True, name="Mine")])


def adamax():
    return _steps([lambda: opt.AdaMaxOptimizer(0.1), lambda: opt.AdaMaxOptimizer(0.2, 0.8, 0.9, 1e-3, True, "Mine")])


def adam_with_weight_decay():
    return _steps([lambda: opt.AdamWOptimizer(0.01, 0.1), lambda: opt.AdamWOptimizer(0.1, 0.2, 0.8, 0.9, 1e-3, True, "Mine")])


def momentum_with_weight_decay():
    return _steps(
        [lambda: opt.MomentumWOptimizer(0.01, 0.1, 0.9), lambda: opt.MomentumWOptimizer(0.1, 0.05, 0.5, True, "Mine", True)]
    )


def any_with_weight_decay():
    adagrad = opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)

    class Ftrl(opt.DecoupledWeightDecayExtension, tf.train.FtrlOptimizer):
        pass

    return _steps(
        [
            lambda: adagrad(weight_decay=0.1, learning_rate=0.1),
            lambda: Ftrl(0.1, learning_rate=0.1, l1_regularization_strength=0.01),
            lambda: opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)(
                tf.constant(0.1), learning_rate=0.1
            ),
        ]
    )


def weight_decay_of_some():
    loss, variables = _losses("some")
    optimizer = opt.AdamWOptimizer(0.3, 0.1)
    pairs = optimizer.compute_gradients(loss)
    with tf.control_dependencies([gradient for gradient, _ in pairs]):
        return {"run": optimizer.apply_gradients(pairs, decay_var_list=variables[:1], name="applied")}


def weight_decay_of_some_in_minimize():
    weights = [tf.get_variable(name, [2]) for name in ("first", "second")]
    loss = tf.reduce_sum(weights[0]) + 2 * tf.reduce_sum(weights[1])
    return {"run": opt.MomentumWOptimizer(0.3, 0.1, 0.9).minimize(loss, decay_var_list=weights[:1])}


def add_sign():
    loss, variables = _losses("sparse")
    step = tf.train.get_or_create_global_step()
    decays = [
        sign_decay.get_linear_decay_fn(5),
        sign_decay.get_cosine_decay_fn(4, 2, 1.5),
        sign_decay.get_restart_decay_fn(3, 2, 1),
    ]
    ops = [opt.AddSignOptimizer().minimize(loss, step, variables)]
    for number, decay in enumerate(decays):
        dense = tf.get_variable("dense_%d" % number, [3], use_resource=number == 1)
        optimizer = opt.AddSignOptimizer(0.2, 0.5, 0.8, decay, name="Mine")
        ops.append(optimizer.minimize(tf.reduce_sum(dense**2), step, [dense]))
    return {"run": ops}


def power_sign():
    loss, variables = _losses("sparse")
    step = tf.train.get_or_create_global_step()
    ops = [opt.PowerSignOptimizer().minimize(loss, step, variables)]
    for number in range(2):
        dense = tf.get_variable("dense_%d" % number, [3], use_resource=number == 1)
        optimizer = opt.PowerSignOptimizer(0.2, 2.0, 0.8, sign_decay.get_cosine_decay_fn(10), name="Mine")
        ops.append(optimizer.minimize(tf.reduce_sum(dense**2), step, [dense]))
    return {"run": ops}


def sign_decays():
    steps = [tf.constant(step) for step in (0, 1, 3, 5, 8)]
    decays = {
        "linear": sign_decay.get_linear_decay_fn(5),
        "cosine": sign_decay.get_cosine_decay_fn(5),
        "periods": sign_decay.get_cosine_decay_fn(5, num_periods=3, zero_after=2),
        "restart": sign_decay.get_restart_decay_fn(5),
        "restarts": sign_decay.get_restart_decay_fn(5, num_periods=2, zero_after=1),
    }
    return {name: [decay(step) for step in steps] for name, decay in decays.items()}


def lars():
    return _steps(
        [
            lambda: opt.LARSOptimizer(0.5),
            lambda: opt.LARSOptimizer(0.5, 0.8, 0.01, 0.1, 0.001, name="Mine", skip_list=["table"], use_nesterov=True),
            lambda: opt.LARSOptimizer(0.5, eeta=0.2, skip_list=["dense"]),
        ]
    )


def lars_of_zeros():
    zeros = tf.get_variable("zeros", [2], initializer=tf.zeros_initializer(), trainable=False)
    return {"run": opt.LARSOptimizer(0.5).apply_gradients([(tf.constant([1.0, 2.0]), zeros)])}


def reg_adagrad():
    step = tf.train.get_or_create_global_step()
    train_ops = []
    for use_resource in (False, True):
        loss, variables = _losses("resource" if use_resource else "reference", use_resource)
        optimizer = opt.RegAdagradOptimizer(0.1, 0.2)
        first = optimizer.minimize(loss, step, variables)
        with tf.control_dependencies([first]), optimizer.avoid_updating_slots():
            train_ops.append(optimizer.minimize(loss * 2.0, var_list=variables))
    return {"run": train_ops}


def moving_average():
    loss, variables = _losses("averaged")
    step = tf.train.get_or_create_global_step()
    optimizer = opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), average_decay=0.8, num_updates=step)
    return {"run": optimizer.minimize(loss, step, variables)}


def moving_average_saver():
    """The checkpoint: averages under the variables' names."""
    import tempfile

    weights = tf.get_variable("weights", initializer=tf.constant([1.0, 2.0]))
    resource = tf.get_variable("resource", initializer=tf.constant([3.0]), use_resource=True)
    parts = tf.get_variable("parts", [4], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2))
    optimizer = opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.25), average_decay=0.5, sequential_update=True)
    early = _raised(lambda: opt.MovingAverageOptimizer(optimizer).swapping_saver())
    loss = tf.reduce_sum(weights**2) + tf.reduce_sum(resource**2) + tf.reduce_sum(tf.convert_to_tensor(parts) ** 2)
    train_op = optimizer.minimize(loss)
    saver = optimizer.swapping_saver()
    with tf.Session() as session, tempfile.TemporaryDirectory() as folder:
        session.run(tf.global_variables_initializer())
        session.run([train_op])
        path = saver.save(session, folder + "/model", write_meta_graph=False)
        reader = tf.train.load_checkpoint(path)
        values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    return {"saved": values, "early": early, "alone": _raised(lambda: optimizer.swapping_saver([weights]))}


def variable_clipping():
    step = tf.train.get_or_create_global_step()
    train_ops = []
    for colocate in (False, True):
        loss, variables = _losses("colocated" if colocate else "free")
        dense, table = variables
        optimizer = opt.VariableClippingOptimizer(
            tf.train.AdamOptimizer(0.5),
            {dense: [1], table: [0] if colocate else [1]},
            0.4,
            colocate_clip_ops_with_vars=colocate,
        )
        train_ops.append(optimizer.minimize(loss, step, variables))
    return {"run": train_ops, "slots": optimizer.get_slot_names(), "slot": optimizer.get_slot(dense, "m").name}


def multitask():
    step = tf.train.get_or_create_global_step()
    variables = [tf.get_variable(name, [2]) for name in ("present", "absent")]
    optimizer = opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9))
    absent = tf.constant([0.0, 0.0]) * variables[1]
    pairs = optimizer.compute_gradients(tf.reduce_sum(variables[0] ** 2) + tf.reduce_sum(absent), variables)
    clipped, norm = opt.clip_gradients_by_global_norm(pairs, 0.1)
    return {
        "run": optimizer.apply_gradients(clipped, step),
        "norm": norm,
        "type": _raised(lambda: opt.MultitaskOptimizerWrapper(1)),
    }


def clip_by_global_norm():
    first, second = tf.constant([3.0, 0.0]), tf.constant([[0.0, 4.0]])
    pairs, norm = opt.clip_gradients_by_global_norm([(first, "a"), (None, "b"), (second, "c"), (tf.zeros([2]), "d")], 2.5)
    return {"norm": norm, "pairs": pairs, "default": opt.clip_gradients_by_global_norm([(first, "a")])}


def _raised(call):
    try:
        call()
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__
    return "nothing raised"
