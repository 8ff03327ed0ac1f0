"""Schedulers that start a cluster's tasks on many machines, each task under a ``launch`` of its own."""
