"""Trains with hooks that feed, write and read, and writes what they saw: python train.py FILE.json [NAME ...].

The script of TensorFlow 1 runs unchanged on 1.15.5, which recorded recorded.json, and on either path.
"""

import json
import sys
import tempfile

import numpy as np
import own_hooks as own
import tensorflow as tf

RANDOM = np.random.RandomState(0)
X = RANDOM.rand(24, 3).astype(np.float32)
Y = X.sum(1, keepdims=True)


def rows(epochs=None, batch_size=4):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(epochs).batch(batch_size)


def model_fn(features, labels, mode, params):
    hooks = []
    rate = 0.1
    if params.get("fed rate"):
        rate = tf.placeholder(tf.float32, [])
        hooks = [own.FeedingRate(rate)]
    kept = tf.placeholder_with_default(1.0, [], name="kept")
    tf.reduce_sum(features["x"], name="features")
    weight = tf.get_variable("weight", [3, 1], initializer=tf.zeros_initializer())
    predicted = tf.matmul(features["x"] * kept, weight, name="predicted")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": predicted})
    loss = tf.identity(tf.reduce_mean(tf.square(predicted - labels)), name="model_loss")
    train_op = tf.train.AdamOptimizer(rate).minimize(loss, tf.train.get_global_step())
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, predicted)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks, eval_metric_ops=metrics)


def layer(inputs, width, name):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        weight = tf.get_variable("weight", [int(inputs.shape[-1]), width], initializer=tf.constant_initializer(0.1))
        return tf.matmul(inputs, weight) + tf.get_variable("bias", [width], initializer=tf.zeros_initializer())


def gan_fn(features, labels, mode, params):
    entropy = tf.nn.sigmoid_cross_entropy_with_logits
    noise = tf.random_normal([tf.shape(features)[0], 3], seed=3)
    with tf.variable_scope("generator"):
        made = layer(tf.nn.relu(layer(noise, 4, "one")), 3, "other")
    with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
        real, other = (layer(tf.tanh(layer(given, 4, "one")), 1, "other") for given in (features, made))
    losses = [
        tf.reduce_mean(entropy(labels=label, logits=of))
        for label, of in ((tf.ones_like(real), real), (tf.zeros_like(other), other))
    ]
    critic_loss = tf.add_n(losses, name="critic_loss")
    loss = tf.reduce_mean(entropy(labels=tf.ones_like(other), logits=other))
    step = tf.train.get_global_step()

    def train_op(of, scope, *counted):
        return tf.train.AdamOptimizer(0.05, 0.5).minimize(of, *counted, var_list=tf.trainable_variables(scope))

    hooks = []
    if params["how"] == "hooks":
        both = train_op(loss, "generator"), train_op(critic_loss, "critic")
        hooks = [own.RunningTrainOps(both[0], 1), own.RunningTrainOps(both[1], 2)]
        train = step.assign_add(1)
    elif params["how"] == "one after the other in a hook":
        with tf.control_dependencies([train_op(critic_loss, "critic")]):
            hooks = [own.RunningTrainOps(train_op(loss, "generator"), 2)]
        train = step.assign_add(1)
    elif params["how"] == "one after the other":
        with tf.control_dependencies([train_op(critic_loss, "critic")]):
            train = train_op(loss, "generator", step)
    else:
        hooks = [own.Alternating(train_op(critic_loss, "critic"))]
        train = step.assign_add(1)  # 1.15.5 runs two updates at once in no order
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, training_hooks=hooks)


def updating_fn(features, labels, mode, params):
    """Reads a variable, updates it twice, and uses what it has read after each update."""
    weight = tf.get_variable("weight", [3, 1], initializer=tf.constant_initializer(0.4))
    sums = tf.get_variable("sums", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], weight) - labels)) + tf.reduce_sum(tf.square(weight))
    same, row = tf.identity(weight), tf.reshape(weight, [3])
    with tf.control_dependencies([loss, same, row]):
        halved = weight.assign(weight * 0.5)
    with tf.control_dependencies([halved]):
        added = sums.assign_add(same + 10.0 * tf.expand_dims(tf.stop_gradient(row), 1))
    with tf.control_dependencies([added]):
        trained = tf.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[weight])
    with tf.control_dependencies([trained]):
        update = sums.assign_add(100.0 * tf.reshape(row, [3, 1]))
    step = tf.train.get_global_step()
    if params["how"] == "in a hook":
        hooks, update = [own.RunningTrainOps(update, 2)], step.assign_add(1)
    else:
        hooks, update = [], tf.group(update, step.assign_add(1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update, training_hooks=hooks)


def estimator(fn=model_fn, **params):
    config = tf.estimator.RunConfig(tempfile.mkdtemp(), save_checkpoints_steps=4, log_step_count_steps=None)
    return tf.estimator.Estimator(fn, config=config, params=params)


def trained(made, input_fn=None, **kwargs):
    made.train(input_fn or rows(), **kwargs)
    for name in sorted(made.get_variable_names()):
        own.see(name, made.get_variable_value(name))
    return made


def gan(how):
    trained(estimator(gan_fn, how=how), lambda: tf.data.Dataset.from_tensor_slices(X).repeat().batch(8), steps=4)


def initialised(epochs, batch_size):
    hook = own.InitialisingIterators()

    def input_fn():
        features, labels = tf.placeholder(X.dtype, X.shape), tf.placeholder(Y.dtype, Y.shape)
        dataset = tf.data.Dataset.from_tensor_slices(({"x": features}, labels)).repeat(epochs).batch(batch_size)
        iterator = dataset.make_initializable_iterator()
        hook.initialise = lambda session: session.run(iterator.initializer, feed_dict={features: X, labels: Y})
        return iterator.get_next()

    return {"input_fn": input_fn, "hooks": [hook]}


def seen_by_evaluate(made, **kwargs):
    results = made.evaluate(**kwargs)
    own.see("results", *[results[key] for key in sorted(results)])


def fed_rate():
    trained(estimator(**{"fed rate": True}), steps=5)


def fed_now_and_then():
    seen_by_evaluate(
        trained(estimator(), hooks=[own.FeedingNowAndThen()], steps=7), input_fn=rows(1), hooks=[own.FeedingNowAndThen()]
    )


def fed_batches():
    def input_fn():
        return {"x": tf.placeholder(tf.float32, [None, 3], name="x")}, tf.placeholder(tf.float32, [None, 1], name="y")

    starts = iter(range(0, 24, 4))

    def feed():
        start = next(starts)
        return {"x:0": X[start : start + 4], "y:0": Y[start : start + 4]}

    trained(estimator(), input_fn, hooks=[tf.train.FeedFnHook(feed)], steps=5)


def assigned():
    trained(estimator(), hooks=[own.Assigning()], steps=20)


def saved():
    made = estimator()
    trained(made, hooks=[own.Saving(tempfile.mkdtemp())], steps=7, saving_listeners=[own.Counting()])
    trained(made, hooks=[own.SavingAtSteps(made.model_dir, save_steps=100)], steps=7)


def read_on():
    made = trained(estimator(), rows(2), hooks=[own.ReadingOn()])
    seen_by_evaluate(made, input_fn=rows(1), hooks=[own.ReadingOn()])
    logged = tf.train.LoggingTensorHook(
        ["model_loss:0"], at_end=True, formatter=lambda values: own.see("logged", *values.values()) or ""
    )
    final = tf.train.FinalOpsHook({"loss": "model_loss:0"})
    trained(made, hooks=[logged, final], steps=2)
    own.see("final", final.final_ops_values["loss"])


def looked():
    trained(estimator(), hooks=[own.Looking()], steps=4)


def initialised_iterators():
    made = estimator()
    trained(made, steps=7, **initialised(None, 5))
    seen_by_evaluate(made, **initialised(1, 4))
    own.see("predicted", [one["y"] for one in made.predict(**initialised(1, 7))])


CASES = {
    "alternating": lambda: gan("alternating"),
    "assigned": assigned,
    "fed batches": fed_batches,
    "fed now and then": fed_now_and_then,
    "fed rate": fed_rate,
    "initialised iterators": initialised_iterators,
    "looked": looked,
    "one after the other": lambda: gan("one after the other"),
    "one after the other in a hook": lambda: gan("one after the other in a hook"),
    "read on": read_on,
    "saved": saved,
    "train ops": lambda: gan("hooks"),
    "updates": lambda: trained(estimator(updating_fn, how="in the step"), steps=3),
    "updates in a hook": lambda: trained(estimator(updating_fn, how="in a hook"), steps=3),
}


def run(name):
    del own.SEEN[:]
    CASES[name]()
    return list(own.SEEN)


if __name__ == "__main__":
    tf.logging.set_verbosity("ERROR")
    seen = {name: run(name) for name in sys.argv[2:] or sorted(CASES)}
    with open(sys.argv[1], "w") as file:
        json.dump(seen, file, indent=1, sort_keys=True)
