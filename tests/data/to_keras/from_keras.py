"""A model of Keras that trains as an Estimator."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential()
model.add(tf.keras.layers.InputLayer(input_shape=[4]))
model.add(tf.keras.layers.Dense(6, activation="relu"))
model.add(tf.keras.layers.Dense(3, activation="softmax", name="kind"))
model.compile(loss="categorical_crossentropy", optimizer=tf.keras.optimizers.SGD(lr=0.05), metrics=["accuracy"])
config = tf.estimator.RunConfig(save_checkpoints_steps=100)
estimator = tf.keras.estimator.model_to_estimator(model, config=config)


def input_fn():
    draws = np.random.RandomState(0)
    values = draws.rand(60, 4).astype(np.float32)
    kinds = np.eye(3, dtype=np.float32)[draws.randint(0, 3, 60)]
    return tf.data.Dataset.from_tensor_slices((values, kinds)).batch(15).repeat(2)


estimator.train(input_fn, steps=7)
print("accuracy above 0:", estimator.evaluate(input_fn)["acc"] > 0.0)
print([row["kind"].shape for row in estimator.predict(input_fn)][0])
