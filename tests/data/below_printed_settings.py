"""Trains with the settings that are printed above it; its argument is their model_dir."""

import sys

import numpy as np

x = np.ones([64, 2], np.float32)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4).repeat()
with strategy.scope():
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[2])])
    model.compile("sgd", "mse")
checkpoint = tf.train.Checkpoint(model=model)
model.fit(data, verbose=0, callbacks=make_callbacks(checkpoint, data), **fit_arguments(0))
assert int(model.optimizer.iterations.numpy()) == 12, model.optimizer.iterations
assert tf.config.threading.get_intra_op_parallelism_threads() == 2
assert strategy.num_replicas_in_sync == 2
assert [path.rsplit("-")[-1] for path in tf.train.get_checkpoint_state(sys.argv[1]).all_model_checkpoint_paths] == ["0", "5", "10", "12"]
