"""Comparisons of scripts that train as a cluster: each side is launched as one, and each task has a trace of its own."""
