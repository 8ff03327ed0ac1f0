"""Each function has one thing that no fixer converts, named in the comment above it; its Estimator stays, too."""

import tensorflow as tf


# mark: tf.layers.dense
def dense_loss(features, labels):
    logits = tf.layers.dense(features["x"], 1, name="logits")
    return logits, tf.losses.mean_squared_error(labels, logits)


# mark: dense_loss
def by_own_function(features, labels, mode):
    loss = sum(dense_loss(features, labels)[1] for _ in range(2))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.layers.dense
def two_activations_of_shared_variables(features, labels, mode):
    net = tf.layers.dense(features["x"], 4, name="shared")
    net += tf.layers.dense(features["y"], 4, tf.nn.relu, name="shared", reuse=True)
    loss = tf.reduce_mean(net - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.layers.dense
def one_layer_in_each_turn(features, labels, mode):
    net = features["x"]
    for _ in range(2):
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            net = tf.layers.dense(net, 4)
    loss = tf.reduce_mean(net - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.layers.dense
def a_size_that_changes(features, labels, mode):
    size = next(iter({4}))
    net = tf.layers.dense(features["x"], size)
    size = next(iter({2}))
    loss = tf.reduce_mean(tf.layers.dense(net, size) - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = {"rate": 0.1}


# mark: config
def settings_named_as_an_argument(features, labels, mode):
    outputs = tf.layers.dense(features["x"], 1)
    loss = tf.reduce_mean(outputs - labels)
    train_op = tf.train.AdamOptimizer(config["rate"]).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.keras.layers.Dropout(0.5)
def a_network_that_only_its_parts_describe(features, labels, mode):
    values = tf.keras.layers.Input([4])
    model = tf.keras.Model(values, tf.keras.layers.Dropout(0.5)(values))
    loss = tf.losses.mean_squared_error(labels, model(features["x"], training=mode == tf.estimator.ModeKeys.TRAIN))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.layers.dense
def a_penalty_of_what_evaluations_do_not_train(features, labels, mode):
    net = tf.layers.dense(features["x"], 2, trainable=mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.reduce_mean(net - labels) + tf.add_n([tf.nn.l2_loss(one) for one in tf.trainable_variables()])
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.train.AdamOptimizer().minimize
def updates_in_a_block_of_the_network(features, labels, mode):
    with tf.device("/cpu:0"):
        net = tf.layers.dense(features["x"], 1)
        if mode != tf.estimator.ModeKeys.PREDICT:
            with tf.name_scope("losses"):
                loss = tf.losses.mean_squared_error(labels, net)
            with tf.name_scope("train"):
                train_op = tf.train.AdamOptimizer().minimize(tf.sqrt(loss), tf.train.get_global_step())
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=net)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: eval
def a_network_by_its_text(features, labels, mode):
    logits = tf.layers.dense(features["x"], 3) + eval("features['x']")
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: EstimatorSpec(scaffold=...)
def own_scaffold(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features["x"], 1) - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=tf.train.Scaffold(init_fn=print))


# mark: the model function
def another_order_in_evaluation(features, labels, mode):
    net = features["x"]
    if mode == tf.estimator.ModeKeys.EVAL:
        net = tf.square(net)
        net = 1.0 + net
        net = tf.layers.dense(net, 1)
        loss = tf.losses.mean_squared_error(labels, net)
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    net = 1.0 + net
    net = tf.square(net)
    net = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.contrib.layers.layer_norm
def a_layer_of_contrib(features, labels, mode):
    loss = tf.reduce_mean(tf.contrib.layers.layer_norm(features["x"]) - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.layers.dense
def a_layer_in_a_while_loop(features, labels, mode):
    net = features["x"]
    left = 2
    while left:
        net = tf.layers.dense(net, 4)
        left -= 1
    loss = tf.reduce_mean(net - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.layers.dense
def a_layer_as_large_as_the_batch(features, labels, mode):
    width = features["x"].shape[1]
    logits = tf.layers.dense(features["x"], width)
    loss = tf.reduce_mean(logits - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: the model function
def other_inputs_in_prediction(features, labels, mode):
    if mode == tf.estimator.ModeKeys.PREDICT:
        x = features["y"]
        logits = tf.layers.dense(x, 1)
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    x = features["x"]
    logits = tf.layers.dense(x, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: tf.Variable
def a_variable_in_each_step(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features["x"], 1) * tf.Variable(1.0) - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def answers_twice(values, mode):
    return values if mode == tf.estimator.ModeKeys.PREDICT else values * 2.0


# mark: the model function
def another_network_in_prediction(features, labels, mode):
    net = answers_twice(features["x"], mode)
    logits = tf.layers.dense(net, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": logits})
    loss = tf.reduce_mean(logits - labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: the model function
def a_penalty_of_a_layer_that_nothing_reads(features, labels, mode):
    penalty = tf.contrib.layers.l2_regularizer(0.1)
    net = tf.layers.dense(features["x"], 4, kernel_regularizer=penalty)
    unread = tf.layers.dense(net, 4, kernel_regularizer=penalty)
    loss = tf.reduce_mean(tf.layers.dense(net, 1) - labels) + tf.losses.get_regularization_loss()
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# mark: input_fn
def input_fn():
    rows = tf.data.Dataset.from_tensors(({"x": [[1.0, 2.0]]}, [[1.0]]))
    iterator = rows.make_one_shot_iterator()
    features, _ = iterator.get_next()
    _, labels = iterator.get_next()
    return features, labels


# mark: tf.train.string_input_producer
# mark: tf.TextLineReader
# mark: tf.train.batch
def queued_input_fn():
    names = tf.train.string_input_producer(["rows.csv"])
    _, line = tf.TextLineReader().read(names)
    return {"x": tf.train.batch([line], 2)}, tf.zeros([2])


# mark: tf.FIFOQueue
# mark: tf.train.QueueRunner
# mark: tf.train.add_queue_runner
def own_queue():
    queue = tf.FIFOQueue(4, [tf.float32])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([1.0])]))
    return queue.dequeue()


# mark: tf.train.Server.create_local_server
server = tf.train.Server.create_local_server()
described = tf.train.ServerDef(protocol="grpc")
# mark: tf.placeholder_with_default
size = tf.placeholder_with_default(8, [])
ESTIMATORS = [
    tf.estimator.Estimator(other_inputs_in_prediction),
    tf.estimator.Estimator(a_variable_in_each_step),
    tf.estimator.Estimator(another_network_in_prediction),
    tf.estimator.Estimator(by_own_function),
    tf.estimator.Estimator(two_activations_of_shared_variables),
    tf.estimator.Estimator(one_layer_in_each_turn),
    tf.estimator.Estimator(a_size_that_changes),
    tf.estimator.Estimator(settings_named_as_an_argument),
    tf.estimator.Estimator(a_network_that_only_its_parts_describe),
    tf.estimator.Estimator(a_penalty_of_what_evaluations_do_not_train),
    tf.estimator.Estimator(updates_in_a_block_of_the_network),
    tf.estimator.Estimator(a_network_by_its_text),
    tf.estimator.Estimator(own_scaffold),
    tf.estimator.Estimator(another_order_in_evaluation),
    tf.estimator.Estimator(a_layer_of_contrib),
    tf.estimator.Estimator(a_layer_in_a_while_loop),
    tf.estimator.Estimator(a_layer_as_large_as_the_batch),
]
run_config = tf.estimator.RunConfig().replace(model_dir="trained")
# mark: run_config.task_type
print(run_config.model_dir, run_config.task_type)
