"""Schedulers that start a cluster's tasks on many machines: what each of them is given, in which every task is a lone ``launch``."""
