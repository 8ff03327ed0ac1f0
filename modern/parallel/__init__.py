"""Parallelism beyond data: one model over several devices, and over several parts of a batch."""
