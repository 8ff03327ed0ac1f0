"""The side-by-side run: both paths from the same initial values on the same batches, and a verdict."""
