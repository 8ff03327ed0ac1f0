"""Recordings of both sides: batches, calls, values, and the trace that the judge reads."""
