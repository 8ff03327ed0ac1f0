"""Makes tests/golden/columns/columns.json with TensorFlow 1.15.5: python make_columns.py."""

import json
import os

import tensorflow as tf
from columns import cases

v1 = tf.compat.v1
TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "columns", "columns.json")


def layer(kind, features, columns):
    if kind == "dense":
        return v1.feature_column.input_layer(features, columns)
    if kind == "linear":
        return v1.feature_column.linear_model(features, columns, units=2, sparse_combiner="mean")
    return tf.keras.experimental.SequenceFeatures(columns, name="sequence_features")(features)


def recorded(kind, make):
    """The layer's values, and the shapes of its variables by name."""
    with tf.Graph().as_default(), v1.Session() as session:
        features = {
            key: tf.SparseTensor(*cases.sparse(feature)) if isinstance(feature, list) else tf.constant(feature)
            for key, feature in cases.FEATURES.items()
        }
        result = layer(kind, features, make())
        variables = v1.global_variables()
        session.run(v1.tables_initializer())
        for variable in variables:
            variable.load(cases.value(variable.shape.as_list()), session)
        parts = session.run(result)
        parts = [part.tolist() for part in (parts if kind == "sequence" else [parts])]
        return {"values": parts, "variables": {variable.op.name: variable.shape.as_list() for variable in variables}}


assert tf.VERSION == "1.15.5", tf.VERSION
golden = {name: recorded(*case) for name, case in cases.CASES.items()}
with open(TARGET, "w") as file:
    json.dump(golden, file, indent=None, sort_keys=True, separators=(",", ":"))
    file.write("\n")
