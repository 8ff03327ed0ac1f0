"""A canned regression with the default optimizer, trained in three parts."""

import pandas as pd
import tensorflow as tf

ROWS = pd.DataFrame({"x": [0.1 * number for number in range(40)], "y": [1.0 + number % 5 for number in range(40)]})


def main():
    regressor = tf.estimator.DNNRegressor([6], [tf.feature_column.numeric_column("x"), tf.feature_column.numeric_column("y")])
    target = ROWS.x * 2 + ROWS.y
    for _ in range(3):
        regressor.train(tf.estimator.inputs.pandas_input_fn(ROWS, target, batch_size=8, num_epochs=1, shuffle=False))
        results = regressor.evaluate(tf.estimator.inputs.pandas_input_fn(ROWS, target, batch_size=16, shuffle=False))
    print("step", results["global_step"])


if __name__ == "__main__":
    main()
