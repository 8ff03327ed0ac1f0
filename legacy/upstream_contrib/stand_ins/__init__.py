"""Modules that ``tf.contrib`` imports in place of ones that today's TensorFlow has in another form."""
