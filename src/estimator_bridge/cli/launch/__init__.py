"""``estimator-bridge launch``: its options, and what it prints for a scheduler."""
