"""Batches in parts: micro-batches one after the other, or overlapping in the stages of a pipeline."""
