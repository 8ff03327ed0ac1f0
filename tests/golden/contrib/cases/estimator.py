"""Cases of tf.contrib.estimator."""

import itertools
import os
import tempfile

import tensorflow as tf
from record import floats

estimator = tf.contrib.estimator
_MODES = tf.estimator.ModeKeys
_SGD = tf.train.GradientDescentOptimizer


def _refused(error, call):
    try:
        call()
    except error as raised:
        return type(raised).__name__
    return "nothing raised"


def _spec(head, mode, logits, labels, features=None, **options):
    """A head's EstimatorSpec, as values: predictions, loss, outputs' names, metrics after one update."""
    if mode == _MODES.TRAIN:
        tf.train.get_or_create_global_step()
        options = dict({"train_op_fn": lambda loss: tf.no_op()}, **options)
    spec = head.create_estimator_spec(features=features or {}, mode=mode, logits=logits, labels=labels, **options)
    told = {"predictions": {str(key): value for key, value in (spec.predictions or {}).items()}}
    if spec.loss is not None:
        told["loss"] = spec.loss
    if spec.export_outputs:
        told["outputs"] = {key: type(output).__name__ for key, output in spec.export_outputs.items()}
    if spec.eval_metric_ops:
        told["metrics"] = {key: update for key, (_, update) in spec.eval_metric_ops.items()}
    return told


def _summarized(head, logits, labels, **options):
    told = _spec(head, _MODES.TRAIN, logits, labels, **options)
    return [told["loss"], head.logits_dimension, head.name]


def _logits(width):
    return floats(4, width, scale=3)


def binary_classification_head():
    plain = estimator.binary_classification_head()
    named = estimator.binary_classification_head("w", [0.3, 0.6], ["no", "yes"], tf.losses.Reduction.SUM, None, "mine")
    strings, weights = tf.constant([["yes"], ["no"], ["yes"], ["no"]]), {"w": tf.constant([[1.0], [2.0], [0.0], [1.0]])}
    own = estimator.binary_classification_head(loss_fn=lambda labels, logits: (labels - logits) ** 2)
    return [
        _spec(plain, _MODES.EVAL, _logits(1), tf.constant([[1], [0], [1], [1]])),
        _spec(named, _MODES.EVAL, _logits(1), strings, weights),
        _spec(plain, _MODES.PREDICT, _logits(1), None),
        _summarized(own, _logits(1), tf.constant([[1], [0], [1], [1]])),
    ]


def multi_class_head():
    plain = estimator.multi_class_head(3)
    named = estimator.multi_class_head(3, "w", ["a", "b", "c"], tf.losses.Reduction.SUM, name="mine")
    weights = {"w": tf.constant([[1.0], [2.0], [0.0], [1.0]])}
    return [
        _spec(plain, _MODES.EVAL, _logits(3), tf.constant([[1], [0], [2], [1]])),
        _spec(named, _MODES.EVAL, _logits(3), tf.constant([["a"], ["c"], ["b"], ["a"]]), weights),
        _spec(plain, _MODES.PREDICT, _logits(3), None),
        _summarized(named, _logits(3), tf.constant([["a"], ["c"], ["b"], ["a"]]), features=weights),
    ]


def regression_heads():
    plain = estimator.regression_head()
    wide = estimator.regression_head("w", 2, tf.losses.Reduction.SUM, None, tf.exp, "mine")
    poisson = estimator.poisson_regression_head(compute_full_loss=False)
    full = estimator.poisson_regression_head("w", 2, tf.losses.Reduction.SUM, name="poisson")
    logistic = estimator.logistic_regression_head("w", name="logistic")
    weights = {"w": tf.constant([[1.0], [2.0], [0.0], [1.0]])}
    ones, twos = tf.constant([[1.0], [0.5], [2.0], [0.0]]), tf.constant([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0], [2.0, 2.0]])
    return [
        _spec(plain, _MODES.EVAL, _logits(1), ones),
        _spec(wide, _MODES.EVAL, _logits(2), twos, weights),
        _spec(wide, _MODES.PREDICT, _logits(2), None),
        _spec(poisson, _MODES.EVAL, _logits(1), ones),
        _spec(full, _MODES.EVAL, _logits(2), twos, weights),
        _spec(logistic, _MODES.EVAL, _logits(1), ones / 2.0, weights),
        _summarized(logistic, _logits(1), ones / 2.0, features=weights),
    ]


_DENSE = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]


def _sparse(values):
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 0]], values, [4, 2])


def multi_label_head():
    plain = estimator.multi_label_head(3)
    named = estimator.multi_label_head(3, "w", [0.3, 0.6], ["a", "b", "c"], tf.losses.Reduction.SUM, None, ["a", "c"], "mine")
    own = estimator.multi_label_head(
        3,
        loss_fn=lambda labels, logits: tf.reduce_sum((tf.to_float(labels) - logits) ** 2, 1, keepdims=True),
        classes_for_class_based_metrics=[1],
    )
    weights = {"w": tf.constant([[1.0], [2.0], [0.5], [1.0]])}
    return [
        _spec(plain, _MODES.EVAL, _logits(3), tf.constant(_DENSE)),
        _spec(named, _MODES.EVAL, _logits(3), _sparse(["a", "c", "b", "b"]), weights),
        _spec(named, _MODES.EVAL, _logits(3), tf.constant(_DENSE), weights, regularization_losses=[tf.constant(0.5)]),
        _spec(own, _MODES.EVAL, _logits(3), _sparse([0, 2, 1, 1])),
        _spec(named, _MODES.PREDICT, _logits(3), None),
        _spec(own, _MODES.PREDICT, _logits(3), None),
        own.create_loss({}, _MODES.TRAIN, _logits(3), tf.constant(_DENSE))[0],
        list(named.create_loss(weights, _MODES.TRAIN, _logits(3), tf.constant(_DENSE))),
    ]


def multi_label_head_in_training():
    named = estimator.multi_label_head(3, "w", loss_reduction=tf.losses.Reduction.SUM, name="mine")
    weights = {"w": tf.constant([[1.0], [2.0], [0.5], [1.0]])}
    own = tf.get_variable("own", [4, 3])
    step = tf.train.get_or_create_global_step()
    spec = named.create_estimator_spec(
        weights, _MODES.TRAIN, own, tf.constant(_DENSE), _SGD(0.5), regularization_losses=[tf.reduce_sum(own**2)]
    )
    return {"run": spec.train_op, "loss": spec.loss, "step": step.name}


def multi_label_head_refused():
    head, plain = estimator.multi_label_head, estimator.multi_label_head(3)
    logits = _logits(3)
    return [
        _refused(ValueError, lambda: head(1)),
        _refused(ValueError, lambda: head(3, thresholds=[1.0])),
        _refused(ValueError, lambda: head(3, label_vocabulary="abc")),
        _refused(ValueError, lambda: head(3, label_vocabulary=["a"])),
        _refused(ValueError, lambda: head(3, loss_reduction="none")),
        _refused(ValueError, lambda: head(3, classes_for_class_based_metrics=["a"])),
        _refused(ValueError, lambda: head(3, classes_for_class_based_metrics=[3])),
        _refused(ValueError, lambda: plain.create_loss({}, _MODES.TRAIN, logits, None)),
        _refused(ValueError, lambda: plain.create_estimator_spec({}, _MODES.TRAIN, logits, tf.constant(_DENSE))),
        _refused(ValueError, lambda: _spec(plain, _MODES.TRAIN, logits, tf.constant(_DENSE), optimizer=_SGD(1.0))),
    ]


def _two_heads(weights=None):
    return estimator.multi_head([estimator.multi_class_head(3, name="kind"), estimator.regression_head(name="size")], weights)


def _two_labels():
    return {"kind": tf.constant([[1], [0], [2], [1]]), "size": tf.constant([[1.0], [0.5], [2.0], [0.0]])}


def multi_head():
    plain, weighted = _two_heads(), _two_heads([0.5, 2.0])
    by_head = {"kind": _logits(3), "size": _logits(1)}
    return [
        _spec(plain, _MODES.EVAL, _logits(4), _two_labels()),
        _spec(weighted, _MODES.EVAL, by_head, _two_labels()),
        _spec(weighted, _MODES.PREDICT, _logits(4), None),
        _summarized(weighted, _logits(4), _two_labels()),
        weighted.create_loss({}, _MODES.TRAIN, _logits(4), _two_labels())[0],
        weighted.create_loss({}, _MODES.TRAIN, by_head, _two_labels())[1],
        _refused(ValueError, lambda: estimator.multi_head([])),
        _refused(ValueError, lambda: estimator.multi_head([estimator.regression_head()])),
        _refused(ValueError, lambda: _two_heads([1.0])),
        _refused(ValueError, lambda: _spec(plain, _MODES.EVAL, _logits(5), _two_labels())),
    ]


def multi_head_in_training():
    own = tf.get_variable("own", [4, 4])
    tf.train.get_or_create_global_step()
    spec = _two_heads([0.5, 2.0]).create_estimator_spec({}, _MODES.TRAIN, own, _two_labels(), _SGD(0.5))
    return {"run": spec.train_op, "loss": spec.loss}


def clip_gradients_by_norm():
    weight = tf.get_variable("weight", [2, 2])
    made = estimator.clip_gradients_by_norm(tf.train.MomentumOptimizer(0.5, 0.9), 0.25)
    step = made.minimize(tf.reduce_sum(weight**2 * 5.0), tf.train.get_or_create_global_step())
    return {
        "run": step,
        "name": made.get_name(),
        "slots": made.get_slot_names(),
        "slot": made.get_slot(weight, "momentum").name,
    }


def _input_fn():
    features = {"x": tf.constant([[1.0, 2.0], [3.0, 4.0], [0.5, 1.0], [2.0, 2.0]]), "row": tf.constant([[7], [8], [9], [10]])}
    features["bag"] = tf.SparseTensor([[0, 0], [2, 1]], [3, 4], [4, 2])
    return features, tf.constant([[1.0], [2.0], [0.0], [1.0]])


def _model_fn(features, labels, mode, params=None):
    weight = tf.get_variable("weight", initializer=[[0.5], [2.0]])
    y = tf.matmul(features["x"], weight)
    outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
    if mode == _MODES.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, y)
    inner = _SGD(0.01) if params else tf.train.MomentumOptimizer(0.01, 0.9)
    optimizer = inner if (params or {}).get("one tower") else estimator.TowerOptimizer(inner)
    step = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"mean": tf.metrics.mean(y), "error": tf.metrics.mean_squared_error(labels, y)}
    return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, step, metrics)


def _values(made):
    return {name: made.get_variable_value(name) for name in sorted(made.get_variable_names())}


def extenders():
    made = tf.estimator.Estimator(_model_fn, tempfile.mkdtemp())
    made.train(_input_fn, steps=1)
    added = estimator.add_metrics(made, lambda predictions, labels: {"sum": tf.metrics.mean(predictions["y"] + labels)})
    rows = estimator.forward_features(made, "row")
    bags = estimator.forward_features(made, ["row", "bag"], {"bag": -1})
    other = estimator.forward_features(made, ["other"])
    every = estimator.forward_features(made)
    return [
        added.evaluate(_input_fn, steps=1),
        list(itertools.islice(rows.predict(_input_fn), 4)),
        list(itertools.islice(bags.predict(_input_fn), 4)),
        _refused(ValueError, lambda: next(other.predict(_input_fn))),
        _refused(ValueError, lambda: next(every.predict(_input_fn))),
        _refused(TypeError, lambda: estimator.forward_features(made, [1])),
    ]


def replicate_model_fn():
    told = []
    for devices, reduction in (
        (["/cpu:0"], tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS),
        (["/cpu:0", "/cpu:0"], tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS),
        (["/cpu:0", "/device:CPU:0"], tf.losses.Reduction.SUM),
    ):
        replicated = estimator.replicate_model_fn(_model_fn, reduction, devices)
        made = tf.estimator.Estimator(replicated, tempfile.mkdtemp())
        made.train(_input_fn, steps=3)
        told.append([_values(made), made.evaluate(_input_fn, steps=2), [row["y"] for row in made.predict(_batch)]])
    return told


def _batch():
    return tf.data.Dataset.from_tensors({"x": tf.constant([[1.0, 2.0], [3.0, 4.0]])})


def replicated_graph():
    tf.train.create_global_step()
    features, labels = _input_fn()
    replicated = estimator.replicate_model_fn(_model_fn, devices=["/cpu:0", "/cpu:0"])
    spec = replicated(features, labels, _MODES.TRAIN)
    return {"run": spec.train_op, "loss": spec.loss, "name": spec.loss.name, "y": spec.predictions["y"].name}


def replicated_sparse():
    def model_fn(features, labels, mode, params, config):
        table = tf.get_variable("table", [5, 2])
        loss = tf.reduce_sum(tf.gather(table, features)) * params["scale"]
        first = estimator.TowerOptimizer(lambda: tf.train.AdagradOptimizer(0.5))
        second = estimator.TowerOptimizer(lambda: _SGD(0.1))
        steps = [first.minimize(loss, tf.train.get_global_step()), second.minimize(loss * 0.5)]
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(*steps))

    tf.train.create_global_step()
    replicated = estimator.replicate_model_fn(model_fn, devices=["/cpu:0", "/cpu:0"])
    spec = replicated(tf.constant([1, 3, 3, 0]), None, _MODES.TRAIN, params={"scale": 2.0})
    return {"run": spec.train_op, "loss": spec.loss}


def replication_refused():
    def plain(features, labels, mode):
        weight = tf.get_variable("weight", initializer=[[0.5], [2.0]])
        loss = tf.reduce_sum(tf.matmul(features["x"], weight))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=_SGD(0.1).minimize(loss, tf.train.get_global_step()))

    def call(model_fn, devices):
        with tf.Graph().as_default():
            tf.train.create_global_step()
            features, labels = _input_fn()
            estimator.replicate_model_fn(model_fn, devices=["/cpu:0"] * devices)(features, labels, _MODES.TRAIN)

    return [
        _refused(ValueError, lambda: call(plain, 2)),
        _refused(ValueError, lambda: call(_model_fn, 3)),
        _refused(ValueError, lambda: estimator.replicate_model_fn(plain, "none")),
    ]


def tower_optimizer_alone():
    weight = tf.get_variable("weight", [2])
    made = estimator.TowerOptimizer(tf.train.MomentumOptimizer(0.5, 0.9))
    step = made.minimize(tf.reduce_sum(weight**2), tf.train.get_or_create_global_step())
    names = [variable.name for variable in made.variables()]
    told = [made.get_name(), made.get_slot_names(), made.get_slot(weight, "momentum").name, names]
    tf.get_default_graph().clear_collection("replicate_model_fn_graph_states")  # TensorFlow 1.15's own
    return {"run": step, "told": told}


def _sequences():
    words = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]], [0, 1, 2, 1, 1, 0], [3, 3])
    return {"word": words, "size": tf.constant([[0.5], [1.0], [2.0]])}, tf.constant([[1], [0], [1]])


def _sequence_columns():
    word = tf.contrib.feature_column.sequence_categorical_column_with_identity("word", 3)
    return [
        tf.feature_column.embedding_column(word, 2, initializer=tf.constant_initializer([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]]))
    ]


def _constant_cell(mode):
    cells = [tf.nn.rnn_cell.GRUCell(2, kernel_initializer=tf.constant_initializer(0.25)) for _ in range(2)]
    return tf.nn.rnn_cell.MultiRNNCell(cells)


def rnn():
    context = [tf.feature_column.numeric_column("size")]
    told = []
    for options in (
        {"rnn_cell_fn": _constant_cell, "context_feature_columns": context},
        {"num_units": [3], "n_classes": 3, "optimizer": _SGD(0.1)},
        {"num_units": [3, 2], "cell_type": "lstm", "optimizer": "Adam"},
        {"num_units": [2], "cell_type": tf.nn.rnn_cell.GRUCell, "label_vocabulary": None},
    ):
        made = estimator.RNNClassifier(_sequence_columns(), model_dir=tempfile.mkdtemp(), **options)
        made.train(_sequences, steps=2)
        names = {name: list(made.get_variable_value(name).shape) for name in sorted(made.get_variable_names())}
        told.append([names, sorted(made.evaluate(_sequences, steps=1))])
    return told


def rnn_values():
    """With constant initial values, the logits' kernel included by warm start of none: two steps of training."""
    head = estimator.regression_head()
    made = estimator.RNNEstimator(head, _sequence_columns(), rnn_cell_fn=_constant_cell, model_dir=tempfile.mkdtemp())
    features, labels = _sequences()
    tf.train.create_global_step()
    spec = made.model_fn(features, tf.cast(labels, tf.float32), _MODES.TRAIN, made.config)
    return {"run": spec.train_op, "loss": spec.loss}


def rnn_refused():
    columns = _sequence_columns()
    return [
        _refused(ValueError, lambda: estimator.RNNClassifier(columns, num_units=[1], rnn_cell_fn=_constant_cell)),
        _refused(ValueError, lambda: estimator.RNNClassifier(columns, cell_type="lstm", rnn_cell_fn=_constant_cell)),
        _refused(ValueError, lambda: estimator.RNNEstimator(None, columns, num_units=[1], return_sequences=True)),
    ]


def exports():
    made = tf.estimator.Estimator(_model_fn, tempfile.mkdtemp())
    made.train(_input_fn, steps=1)
    features, labels = {"x": tf.constant([[1.0, 2.0]])}, tf.constant([[1.0]])
    serving = tf.estimator.export.build_raw_serving_input_receiver_fn(features, 2)
    supervised = estimator.build_raw_supervised_input_receiver_fn(features, labels, 2)
    of_input_fn = estimator.build_supervised_input_receiver_fn_from_input_fn(_input_fn)
    one = estimator.export_saved_model_for_mode(made, tempfile.mkdtemp(), of_input_fn, mode=_MODES.EVAL)
    both = estimator.export_all_saved_models(
        made, tempfile.mkdtemp(), {_MODES.PREDICT: serving, _MODES.TRAIN: supervised}, as_text=False
    )
    return [_tags(one), _tags(both)]


def _tags(folder):
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    with open(os.path.join(folder.decode(), "saved_model.pb"), "rb") as file:
        saved.ParseFromString(file.read())
    return sorted(
        [list(graph.meta_info_def.tags), sorted(graph.signature_def), sorted(next(iter(graph.signature_def.values())).inputs)]
        for graph in saved.meta_graphs
    )


def saved_model_estimator():
    made = tf.estimator.Estimator(_model_fn, tempfile.mkdtemp(), params={"slots": False})
    made.train(_input_fn, steps=1)
    features, labels = {"x": tf.constant([[1.0, 2.0]])}, tf.constant([[1.0]])
    receivers = {
        mode: estimator.build_raw_supervised_input_receiver_fn(features, labels, 4) for mode in (_MODES.TRAIN, _MODES.EVAL)
    }
    folder = estimator.export_all_saved_models(made, tempfile.mkdtemp(), receivers).decode()
    again = estimator.SavedModelEstimator(folder, tempfile.mkdtemp())

    def input_fn():
        features, labels = _input_fn()
        return {"x": features["x"]}, labels

    again.train(input_fn, steps=1)
    return [again.evaluate(input_fn, steps=1), _values(again)]


def logit_fns():
    column = tf.feature_column.numeric_column("x", shape=(2,))
    features = {"x": floats(3, 2)}
    with tf.variable_scope("dnn"):
        dnn = estimator.dnn_logit_fn_builder(2, [3], [column], tf.nn.relu, None, None, False)
        deep = estimator.call_logit_fn(dnn, features, _MODES.EVAL, None, None)
    with tf.variable_scope("linear"):
        linear = estimator.call_logit_fn(estimator.linear_logit_fn_builder(1, [column]), features, _MODES.EVAL, None, None)
    own = estimator.call_logit_fn(lambda features, params: features["x"] * params["a"], features, _MODES.EVAL, {"a": 2.0}, None)
    return [
        deep,
        linear,
        own,
        _refused(ValueError, lambda: estimator.call_logit_fn(lambda features: 1, features, "", {}, None)),
    ]


def early_stopping_and_memory():
    """By 1.15 these had moved away from the package."""
    try:
        from tensorflow.contrib.estimator import InMemoryEvaluatorHook, read_eval_metrics, stop_if_higher_hook
    except ImportError:
        from tensorflow_estimator.python.estimator.early_stopping import read_eval_metrics, stop_if_higher_hook
        from tensorflow_estimator.python.estimator.hooks.hooks import InMemoryEvaluatorHook

    one = {"one tower": True}
    made = tf.estimator.Estimator(_model_fn, tempfile.mkdtemp(), params=one)
    made.train(_input_fn, steps=2)
    made.evaluate(_input_fn, steps=1)
    read = read_eval_metrics(made.eval_dir())
    other = tf.estimator.Estimator(_model_fn, tempfile.mkdtemp(), params=one)
    stop = stop_if_higher_hook(other, "loss", -1.0, eval_dir=made.eval_dir(), run_every_secs=None, run_every_steps=1)
    other.train(_input_fn, steps=5, hooks=[stop])
    stopped_at = other.get_variable_value("global_step")
    memory = InMemoryEvaluatorHook(made, _input_fn, steps=1, every_n_iter=1)
    made.train(_input_fn, steps=1, hooks=[memory])
    again = read_eval_metrics(made.eval_dir())
    return [list(map(str, read)), list(read.values()), stopped_at, len(again), made.get_variable_value("global_step")]
