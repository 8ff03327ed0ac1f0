"""A canned classifier: three classes, two columns, dropout."""

import sys

import numpy as np
import tensorflow as tf


def main():
    # Data
    random = np.random.RandomState(1)
    size = random.rand(90).astype(np.float32)
    kind = random.choice(["a", "b", "c"], 90)
    label = (3 * size).astype(np.int32) if len(sys.argv) < 2 else (size > 0.5).astype(np.int32)
    kinds = tf.feature_column.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"])

    columns = [tf.feature_column.numeric_column("size"), tf.feature_column.indicator_column(kinds)]

    # The model
    classifier = tf.estimator.DNNClassifier(
        hidden_units=[8, 6],
        feature_columns=columns,
        n_classes=3 if len(sys.argv) < 2 else 2,
        dropout=0.2,
        optimizer=tf.train.AdamOptimizer(0.01),
    )
    features = {"size": size, "kind": kind}
    train_input_fn = tf.estimator.inputs.numpy_input_fn(features, label, batch_size=16, num_epochs=None, shuffle=True)
    classifier.train(train_input_fn, steps=20)
    results = classifier.evaluate(tf.estimator.inputs.numpy_input_fn(features, label, batch_size=16, shuffle=False))
    spec = tf.feature_column.make_parse_example_spec(columns)
    classifier.export_saved_model("exported", tf.estimator.export.build_parsing_serving_input_receiver_fn(spec))
    print("accuracy above 0:", results["accuracy"] > 0)


if __name__ == "__main__":
    main()
