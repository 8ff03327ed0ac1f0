"""``estimator-bridge fleet``: init, check, compare, report."""
