"""Cases of tf.contrib.predictor, on exports and on an Estimator."""

import tempfile

import tensorflow as tf

predictor = tf.contrib.predictor
_X = [[1.0, 2.0], [3.0, 4.0]]


def _model_fn(features, labels, mode):
    weight = tf.get_variable("weight", initializer=[[0.5], [2.0]])
    y = tf.matmul(features["x"], weight)
    outputs = {
        "serving_default": tf.estimator.export.PredictOutput({"y": y}),
        "double": tf.estimator.export.PredictOutput(2 * y),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=outputs)
    loss = tf.reduce_sum(y)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def _receiver():
    x = tf.placeholder(tf.float32, [None, 2], "x")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def _estimator():
    estimator = tf.estimator.Estimator(_model_fn, tempfile.mkdtemp())
    estimator.train(lambda: tf.data.Dataset.from_tensors(({"x": _X}, 0)), steps=1)
    return estimator


def _refused(error, call):
    try:
        call()
    except error as raised:
        return type(raised).__name__
    return "nothing raised"


def from_estimator():
    estimator = _estimator()
    default = predictor.from_estimator(estimator, _receiver)
    double = predictor.from_estimator(estimator, _receiver, output_key="double", graph=tf.Graph(), config=tf.ConfigProto())
    return [
        default({"x": _X}),
        double({"x": _X[:1]}),
        sorted(default.feed_tensors),
        sorted(double.fetch_tensors),
        default.graph is default.session.graph,
        _refused(KeyError, lambda: predictor.from_estimator(estimator, _receiver, "other")),
        _refused(ValueError, lambda: default({"z": _X})),
    ]


def from_saved_model():
    folder = _estimator().export_savedmodel(tempfile.mkdtemp(), _receiver).decode()
    signature = predictor.from_saved_model(folder)
    names = {key: tensor.name for key, tensor in signature.fetch_tensors.items()}
    graph = tf.Graph()
    return [
        signature({"x": _X}),
        predictor.from_saved_model(folder, "double", tags="serve", graph=graph, config=tf.ConfigProto())({"x": _X}),
        predictor.from_saved_model(folder, input_names={"in": "x:0"}, output_names={"out": names["y"]})({"in": _X}),
        len(graph.get_operations()) > 0,
        "with feed tensors" in repr(signature),
        _refused(ValueError, lambda: predictor.from_saved_model(folder, input_names={"x": "x:0"})),
        _refused(ValueError, lambda: predictor.from_saved_model(folder, "double", input_names={}, output_names={})),
        _refused(RuntimeError, lambda: predictor.from_saved_model(folder, tags="train")),
        _refused(Exception, lambda: predictor.from_saved_model(folder)({"x": None})),
    ]
