"""Asynchronous training over parameter servers, by tf.distribute's ParameterServerStrategy and ClusterCoordinator.

Chief and workers train, each on the batches of its own input_fn, which runs in its own process. Only the chief builds the model; it
sends functions to the workers. Variables are placed on the parameter servers in turn, each slice of a partitioned variable by itself,
as TF1 places them.
"""
