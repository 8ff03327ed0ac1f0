"""Rewrites Estimator scripts as Keras ones: each fixer converts one kind of code and marks what it cannot convert."""
