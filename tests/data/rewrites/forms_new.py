"""Rewrites of mlp_old.py in the forms that people give their training; --form names one."""

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras

parser = argparse.ArgumentParser()
parser.add_argument("--form")
FORM = parser.parse_args().form


def data(rows, seed):
    random = np.random.RandomState(seed)
    x = random.randn(rows, 6).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int32)


def dataset(rows, seed):
    return tf.data.Dataset.from_tensor_slices(data(rows, seed)).batch(16)


def generate(rows, seed):
    x, y = data(rows, seed)
    while True:
        for start in range(0, rows, 16):
            yield x[start : start + 16], y[start : start + 16]


class Batches(keras.utils.Sequence):
    """The rows in batches of 16."""

    def __init__(self, rows, seed):
        super().__init__()
        self.x, self.y = data(rows, seed)

    def __len__(self):
        return -(-len(self.x) // 16)

    def __getitem__(self, number):
        return self.x[number * 16 : number * 16 + 16], self.y[number * 16 : number * 16 + 16]


class Net(tf.Module):
    """The network of layers in a module, or of variables that it does not own."""

    def __init__(self):
        super().__init__()
        self.hidden, self.logits = keras.layers.Dense(12, "tanh"), keras.layers.Dense(2)
        self.hidden.build([None, 6])
        self.logits.build([None, 12])

    def __call__(self, x, training=False):
        net = self.hidden(x)
        return self.logits(tf.nn.dropout(net, 0.3) if training else net)


def make_model(training=None):
    inputs = keras.Input([6])
    net = keras.layers.Dense(12, "tanh")(inputs)
    net = keras.layers.Dropout(0.3)(net, training=training)
    return keras.Model(inputs, keras.layers.Dense(2)(net))


def compiled(**given):
    model = make_model(**given)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01, epsilon=1e-8), loss, metrics=["accuracy"])
    return model


def with_fit(model, **given):
    for _ in range(2):
        model.fit(**given, verbose=0)
        model.evaluate(dataset(40, 1), verbose=0)


def with_validation():
    """Validates in fit in place of calls of evaluate; another structure of validation data is not compared."""
    saved = keras.callbacks.ModelCheckpoint("best.weights.h5", save_weights_only=True, save_best_only=True)
    stopped = keras.callbacks.EarlyStopping(patience=9, restore_best_weights=True)
    compiled().fit(dataset(192, 0), epochs=2, validation_data=dataset(40, 1), callbacks=[saved, stopped], verbose=0)


def with_validation_split():
    x, y = data(240, 0)
    model = compiled()
    for _ in range(2):
        model.fit(x, y, batch_size=16, validation_split=0.2, verbose=0)
        model.evaluate(*data(40, 1), batch_size=16, verbose=0)


def with_train_on_batch(as_arrays):
    model = compiled()
    for _ in range(2):
        train = dataset(192, 0)
        for x, y in train.as_numpy_iterator() if as_arrays else train:
            model.train_on_batch(x, y, sample_weight=np.ones(16, np.float32) if as_arrays else None)
        model.evaluate(dataset(40, 1), verbose=0)


def with_longer(on_batch):
    """Trains longer than it is compared, and evaluates behind that."""
    model = compiled()
    if on_batch:
        train = dataset(192, 0).repeat().as_numpy_iterator()
        for _ in range(50):
            model.train_on_batch(*next(train))
    else:
        for x, y in dataset(192, 0).repeat(4):
            with tf.GradientTape() as tape:
                loss = model.compiled_loss(y, model(x, training=True))
            model.optimizer.minimize(loss, model.trainable_variables, tape=tape)
    model.evaluate(dataset(40, 1), verbose=0)


def with_batches(model, rows=16):
    """Evaluates and predicts batch by batch; between the epochs and behind the last one, as the old script does."""
    held_out = dataset(40, 1).unbatch().batch(rows)
    for _ in range(2):
        model.fit(dataset(192, 0), verbose=0)
        shares = [model.test_on_batch(x, y)[1] for x, y in held_out.as_numpy_iterator()]
        print("accuracy of the batches", shares)
    outputs = [model.predict_on_batch(x) for x, _ in held_out]
    assert [len(output) for output in outputs] == [len(x) for x, _ in held_out]


def with_tape(net, variables):
    """A loop over training data after a look at them, each epoch followed by a loop over held-out data."""
    optimizer = keras.optimizers.Adam(0.01, epsilon=1e-8)
    print([x.shape for x, _ in dataset(192, 0).take(1)])

    def loss_of(x, y, training):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=net(x, training)))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(x, y, True)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    mean, accuracy = keras.metrics.Mean("val_loss"), keras.metrics.SparseCategoricalAccuracy("accuracy")
    for _ in range(2):
        for x, y in dataset(192, 0):
            step(x, y)
        for x, y in dataset(40, 1):
            mean.update_state(loss_of(x, y, FORM == "noisy_evaluation"))
            accuracy.update_state(y, net(x, False))
        print("held out", mean.result(), accuracy.result())
        if FORM != "kept_metrics":
            mean.reset_state()
            accuracy.reset_state()


def with_loose_variables():
    init = keras.initializers.GlorotUniform()
    shapes = {"hidden/kernel": [6, 12], "hidden/bias": [12], "logits/kernel": [12, 2], "logits/bias": [2]}
    weights = {name: tf.Variable(init(shape), name=name) for name, shape in shapes.items()}

    def net(x, training):
        hidden = tf.tanh(x @ weights["hidden/kernel"] + weights["hidden/bias"])
        hidden = tf.nn.dropout(hidden, 0.3) if training else hidden
        return hidden @ weights["logits/kernel"] + weights["logits/bias"]

    with_tape(net, list(weights.values()))


def with_bias(in_callback):
    """Gives the bias of the logits its first value, as ``--sets`` of the old script."""
    model = compiled()

    def set_bias(logs=None):
        if not model.optimizer.iterations:
            model.layers[-1].bias.assign([0.5, -0.5])

    if not in_callback:
        set_bias()
    callbacks = [keras.callbacks.LambdaCallback(on_train_begin=set_bias)] if in_callback else []
    with_fit(model, x=dataset(192, 0), callbacks=callbacks)


def with_model_again(forgets=()):
    """Goes on with a model that it has saved; ``forgets`` names what is lost."""
    for number in range(2):
        model = compiled() if "values" in forgets or not number else keras.models.load_model("saved.keras")
        if number and "slots" in forgets:
            model.compile(keras.optimizers.Adam(0.01, epsilon=1e-8), model.loss, metrics=["accuracy"])
        model.fit(dataset(192, 0), verbose=0)
        model.evaluate(dataset(40, 1), verbose=0)
        model.save("saved.keras")


def with_strategy():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = compiled()
    with_fit(model, x=dataset(192, 0))


def with_module():
    net = Net()
    with_tape(net, list(net.trainable_variables))


class Subclass(keras.Model):
    """A model with two arguments, which only the script's own call can build."""

    def __init__(self):
        super().__init__()
        self.hidden, self.drop, self.logits = keras.layers.Dense(12, "tanh"), keras.layers.Dropout(0.3), keras.layers.Dense(2)

    def call(self, x, scale, training=False):
        return self.logits(self.drop(self.hidden(x * scale), training=training))


def with_dictionaries(wrap):
    """A loop over batches that are one dictionary, features and labels alike."""
    model, optimizer = Subclass(), keras.optimizers.legacy.Adam(0.01, epsilon=1e-8)

    @wrap
    def step(x, y):
        with tf.GradientTape() as tape:
            outputs = model(x, tf.constant(1.0), training=True)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, outputs, from_logits=True))
        optimizer.minimize(loss, model.trainable_variables, tape=tape)

    for batch in dataset(192, 0).map(lambda x, y: {"label": y, "x": x}).repeat(2):
        step(batch["x"], batch["label"])


def with_function(loops):
    """A tf.function for an epoch, or one that takes its batch itself."""
    model, optimizer = make_model(), keras.optimizers.Adam(0.01, epsilon=1e-8)

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=True), from_logits=True))
        optimizer.minimize(loss, model.trainable_variables, tape=tape)

    @tf.function
    def epoch(batches):
        for x, y in batches:
            train(x, y)

    @tf.function
    def step(batches):
        train(*next(batches))

    for _ in range(2):
        if loops:
            epoch(dataset(192, 0))
        else:
            batches = iter(dataset(192, 0))
            for _ in range(12):
                step(batches)


def with_sample_weight():
    x, y = data(192, 0)
    with_fit(compiled(), x=x, y=y, sample_weight=np.ones(192, np.float32), batch_size=16)


FORMS = {
    "arrays": lambda: with_fit(compiled(), **dict(zip("xy", data(192, 0), strict=True)), batch_size=16),
    "generator": lambda: with_fit(compiled(), x=generate(192, 0), steps_per_epoch=12),
    "sequence": lambda: with_fit(compiled(), x=Batches(192, 0)),
    "class_weight": lambda: with_fit(compiled(), x=dataset(192, 0), class_weight={0: 1.0, 1: 1.0}),
    "validation": with_validation,
    "validation_split": with_validation_split,
    "train_on_batch": lambda: with_train_on_batch(as_arrays=False),
    "longer_on_batch": lambda: with_longer(on_batch=True),
    "longer_loop": lambda: with_longer(on_batch=False),
    "train_on_arrays": lambda: with_train_on_batch(as_arrays=True),
    "on_batch": lambda: with_batches(compiled()),
    "on_larger_batches": lambda: with_batches(compiled(), rows=40),
    "on_batch_wrong": lambda: with_batches(compiled(training=True)),
    "module": with_module,
    "noisy_evaluation": with_module,
    "kept_metrics": with_module,
    "loose_variables": with_loose_variables,
    "strategy": with_strategy,
    "bias": lambda: with_bias(in_callback=False),
    "bias_in_callback": lambda: with_bias(in_callback=True),
    "again": with_model_again,
    "again_without_slots": lambda: with_model_again(["slots"]),
    "again_without_values": lambda: with_model_again(["values"]),
    "dictionaries": lambda: with_dictionaries(tf.function),
    "eager": lambda: with_dictionaries(lambda step: step),
    "iterator": lambda: with_function(loops=False),
    "epoch": lambda: with_function(loops=True),
    "sample_weight": with_sample_weight,
}
FORMS[FORM]()
