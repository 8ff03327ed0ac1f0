"""Asynchronous training over parameter servers: tf.distribute's ParameterServerStrategy and ClusterCoordinator, as Estimator divided the work.

Chief and workers train, each on the batches of its own input_fn, which runs in its own process. The chief's process alone builds the
model; what the workers run is sent to them. Variables live on the parameter servers, one after the other in turn, each slice of a
partitioned variable by itself, as TF1 places them.
"""
