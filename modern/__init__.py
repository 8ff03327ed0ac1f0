"""The same verbs on tf_keras and tf.distribute: an Estimator job executed by today's training loop."""
