"""Parallelism beyond data: one model over several parts of a batch."""
