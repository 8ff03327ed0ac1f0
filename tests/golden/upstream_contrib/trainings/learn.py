"""Estimators and experiments of contrib.learn."""

import tensorflow as tf
from job import FOLDER, STEPS, VARIANT, normal, report, whole
from tensorflow.contrib import layers, learn
from tensorflow.contrib.learn.python.learn import learn_runner

X, NUMBERS, WORDS = normal(0, 12, 3), whole(1, 3, 12, 1), [[one] for one in "abcabdeafbca"]
TARGET = normal(2, 12, 1)


def config():
    """contrib's own settings."""
    return learn.RunConfig(model_dir=FOLDER, tf_random_seed=3, num_cores=1, save_checkpoints_steps=STEPS)


def model_fn(features, labels, mode, params):
    """A model in the style of contrib.learn."""
    hidden = layers.fully_connected(features["x"], 4, activation_fn=tf.tanh)
    logits = layers.linear(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, logits) if labels is not None else None
    train_op = layers.optimize_loss(loss, None, params["rate"], "Ftrl") if mode == learn.ModeKeys.TRAIN else None
    metrics = {"error": tf.metrics.mean_absolute_error(labels, logits)} if mode == learn.ModeKeys.EVAL else None
    return learn.ModelFnOps(mode, {"logits": logits}, loss, train_op, metrics)


def queue_input_fn():
    """Batches by queues."""
    x, y = tf.train.slice_input_producer([X, TARGET], shuffle=False)
    x, y = tf.train.batch([x, y], 4)
    return {"x": x}, y


def array_input_fn(features, labels, epochs=None):
    """Batches of arrays."""

    def input_fn():
        data = tf.data.Dataset.from_tensor_slices((features, labels)).repeat(epochs).batch(4)
        return data.make_one_shot_iterator().get_next()

    return input_fn


def estimator():
    """An Estimator, trained, evaluated and asked."""
    found = learn.Estimator(model_fn, params={"rate": 0.1}, config=config())
    found.fit(input_fn=queue_input_fn, max_steps=STEPS)
    metrics = found.evaluate(input_fn=queue_input_fn, steps=3)
    predictions = list(found.predict(input_fn=lambda: {"x": tf.constant(X)}))
    report(metrics=metrics, predictions=predictions)


def experiment():
    """An experiment, as the tutorials of 2017 have it."""

    def experiment_fn(run_config, hparams):
        return learn.Experiment(
            learn.Estimator(model_fn, params={"rate": hparams.rate}, config=run_config),
            train_input_fn=queue_input_fn,
            eval_input_fn=queue_input_fn,
            train_steps=STEPS,
            eval_steps=3,
        )

    hparams = tf.contrib.training.HParams(rate=0.1)
    found = learn_runner.run(experiment_fn, run_config=config(), schedule="train_and_evaluate", hparams=hparams)
    report(metrics=found[0])


def canned():
    """Canned models with columns of contrib.layers."""
    word = layers.sparse_column_with_hash_bucket("word", 20)
    number = layers.real_valued_column("x", 3)
    found = learn.DNNLinearCombinedClassifier(
        linear_feature_columns=[word, layers.crossed_column([word, layers.sparse_column_with_integerized_feature("n", 3)], 15)],
        dnn_feature_columns=[number, layers.embedding_column(word, 2)],
        dnn_hidden_units=[4, 3],
        n_classes=3,
        fix_global_step_increment_bug=True,
        config=config(),
    )

    def input_fn():
        features, labels = array_input_fn({"x": X, "word": WORDS, "n": NUMBERS}, NUMBERS, 1 if found.ending else None)()
        sparse = {name: layers.dense_to_sparse(features[name], "" if name == "word" else -1) for name in ("word", "n")}
        return dict(features, **sparse), labels

    found.ending = False
    found.fit(input_fn=input_fn, max_steps=STEPS)
    found.ending = True
    metrics = found.evaluate(input_fn=input_fn, steps=3)
    report(metrics=metrics, predictions=list(found.predict_proba(input_fn=input_fn)))


def mixture():
    """A Gaussian mixture."""
    from tensorflow.contrib import factorization

    found = factorization.GMM(2, initial_clusters=X[:2], config=config())
    found.fit(input_fn=lambda: (tf.constant(X), None), max_steps=STEPS)
    report(clusters=found.clusters(), covariances=found.covariances())


def factors():
    """A matrix factored by alternating least squares."""
    from tensorflow.contrib import factorization

    found = factorization.WALSMatrixFactorization(
        5, 4, 2, regularization_coeff=0.1, max_sweeps=4, model_dir=FOLDER, config=config(),
        row_init=[normal(5, 5, 2)], col_init=[normal(6, 4, 2)],
    )  # fmt: skip

    def input_fn():
        matrix = tf.SparseTensor([[row, column] for row in range(5) for column in range(4)], normal(4, 20), [5, 4])
        return {
            "input_rows": matrix,
            "input_cols": tf.sparse_transpose(matrix),
            "project_row": tf.constant(True),
        }, None

    found.fit(input_fn=input_fn, steps=8)
    report(rows=found.get_row_factors(), columns=found.get_col_factors())


{"estimator": estimator, "experiment": experiment, "canned": canned, "mixture": mixture, "factors": factors}[VARIANT]()
